"""The TLS settings: the same authorities are trusted under every version of Python."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import certifi
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from crawler.model.settings import NetworkSettings
from crawler.net.tls import KEPT_SESSIONS, TlsSessions, tls_context

ROOT = Path(__file__).parents[3]
Key = ec.EllipticCurvePrivateKey


def certificate(subject: str, issuer: str, key: Key, signer: Key, extension: x509.ExtensionType) -> x509.Certificate:
    """A certificate with this one extension: in particular without key usage and authority key identifier."""
    builder = x509.CertificateBuilder(serial_number=x509.random_serial_number())
    builder = builder.subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject)]))
    builder = builder.issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]))
    now = datetime.now(UTC)
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    is_critical = isinstance(extension, x509.BasicConstraints)
    return builder.public_key(key.public_key()).add_extension(extension, is_critical).sign(signer, hashes.SHA256())


@pytest.fixture
def old_authority(tmp_path: Path) -> Path:
    """Writes ca.pem and server.pem of an authority without a key usage extension."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca = certificate("An Old CA", "An Old CA", ca_key, ca_key, x509.BasicConstraints(ca=True, path_length=None))
    names = x509.SubjectAlternativeName([x509.DNSName("old.test")])
    leaf = certificate("old.test", "An Old CA", key, ca_key, names)
    (tmp_path / "ca.pem").write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "server.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + leaf.public_bytes(serialization.Encoding.PEM)
    )
    return tmp_path


@pytest.fixture
def port(old_authority: Path) -> Iterator[int]:
    """A server under that authority, which shakes hands with all comers until the test ends."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(old_authority / "server.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    plain, _ = listener.accept()
                except OSError:
                    return
                try:
                    with context.wrap_socket(plain, server_side=True) as sock:
                        sock.recv(1)
                except OSError:
                    plain.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(30)


def shake_hands(context: ssl.SSLContext, port: int, host: str = "old.test") -> None:
    with (
        socket.create_connection(("127.0.0.1", port), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname=host),
    ):
        pass


def test_an_authority_without_key_usage_is_trusted_if_the_user_names_it(old_authority: Path, port: int) -> None:
    shake_hands(tls_context(NetworkSettings(ca_bundle=old_authority / "ca.pem")), port)


def test_strict_verification_would_refuse_it(old_authority: Path, port: int) -> None:
    """Otherwise the tests beside this one prove nothing."""
    context = tls_context(NetworkSettings(ca_bundle=old_authority / "ca.pem"))
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(context, port)


def test_it_is_not_trusted_unnamed_nor_for_another_host(old_authority: Path, port: int) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(tls_context(NetworkSettings()), port)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(tls_context(NetworkSettings(ca_bundle=old_authority / "ca.pem")), port, "new.test")


def interpreter(version: str) -> str:
    """Another version of Python on this machine. Skips where there is none."""
    places = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    for place in places:
        if place and subprocess.run([place, "-c", "import ssl"], capture_output=True).returncode == 0:
            return str(place)
    pytest.skip(f"Python {version} is not installed")


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_other_versions_of_python_trust_the_same(version: str, old_authority: Path, port: int) -> None:
    """The settings module imports orjson, which that interpreter may lack: an empty module replaces it."""
    (old_authority / "orjson.py").write_text("")
    code = (
        "import socket, sys\n"
        "from pathlib import Path\n"
        "from crawler.model.settings import NetworkSettings\n"
        "from crawler.net.tls import tls_context\n"
        f"context = tls_context(NetworkSettings(ca_bundle=Path({str(old_authority / 'ca.pem')!r})))\n"
        f"plain = socket.create_connection(('127.0.0.1', {port}), timeout=60)\n"
        "with context.wrap_socket(plain, server_hostname='old.test') as sock:\n"
        "    print(sys.version_info[:2], sock.version())\n"
    )
    # certifi is pure Python, so this environment's serves the other interpreter too.
    (old_authority / "certifi").symlink_to(Path(certifi.__file__).parent)
    paths = os.pathsep.join([str(old_authority), str(ROOT)])
    done = subprocess.run(
        [interpreter(version), "-c", code],
        env={"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"({version.replace('.', ', ')})")


def test_the_oldest_protocol_is_tls_1_2() -> None:
    context = tls_context(NetworkSettings())
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_a_machine_without_a_trust_store_gets_certifi_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "none.pem").touch()
    (tmp_path / "none").mkdir()
    code = (
        "from crawler.model.settings import NetworkSettings\n"
        "from crawler.net.tls import tls_context\n"
        "print(tls_context(NetworkSettings()).cert_store_stats()['x509_ca'])\n"
    )
    places = {"SSL_CERT_FILE": str(tmp_path / "none.pem"), "SSL_CERT_DIR": str(tmp_path / "none")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | places, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 50


def test_sessions_are_kept_for_a_bounded_number_of_hosts() -> None:
    session = object()
    sessions = TlsSessions()
    for number in range(KEPT_SESSIONS + 10):
        sessions.keep(f"h{number}.test", session)  # type: ignore[arg-type]
    assert len(sessions._kept) == KEPT_SESSIONS
    assert sessions.pop("h0.test") is None
    assert sessions.pop("h10.test") is session
    assert sessions.pop("h10.test") is None
