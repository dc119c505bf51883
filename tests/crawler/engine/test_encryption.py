"""TLS to a real engine: the connection is encrypted, its server checked, and no message shows the password."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
import trustme

from crawler.engine.engine_connection import EngineUnreachable, connect
from crawler.engine.server_facts import server_facts
from tests.postgres_server import PostgresServer, own_server

NAME = "db.internal"  # another machine, as far as its name says


class Encrypted(NamedTuple):
    server: PostgresServer
    authority: Path
    stranger: Path  # an authority that did not sign the server's certificate

    def url(self, host: str = NAME, **settings: object) -> str:
        """The server under this name, reached on this machine."""
        parts = urlsplit(self.server.url())
        query = "&".join(f"{name}={value}" for name, value in {"hostaddr": "127.0.0.1", **settings}.items())
        return f"postgresql://{parts.username}:{self.password}@{host}:{parts.port}/postgres?{query}"

    @property
    def password(self) -> str:
        return str(urlsplit(self.server.url()).password)

    def refusal(self, url: str) -> str:
        """The sentence with which a connection is refused."""
        with pytest.raises(EngineUnreachable) as refused:
            connect(url, "test").close()
        said = str(refused.value)
        assert "\n" not in said and self.password not in said
        assert refused.value.__cause__ is None and refused.value.__suppress_context__
        return said


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    folder = tmp_path_factory.mktemp("authorities")
    authority, stranger = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    stranger.cert_pem.write_to_path(folder / "stranger.pem")
    issued = authority.issue_cert(NAME)
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    with own_server(is_durable=False, certificate=(chain, issued.private_key_pem.bytes())) as server:
        yield Encrypted(server, folder / "authority.pem", folder / "stranger.pem")


def test_off_this_machine_the_connection_is_encrypted_and_the_named_authority_checked(encrypted: Encrypted) -> None:
    with connect(encrypted.url(sslrootcert=encrypted.authority), "test") as connection:
        assert server_facts(connection).encryption.startswith("TLSv1.")


def test_on_this_machine_it_is_encrypted_where_the_url_asks_for_it(encrypted: Encrypted) -> None:
    with connect(encrypted.url("127.0.0.1", sslmode="disable"), "test") as connection:
        assert server_facts(connection).encryption == ""
    asked = {"sslmode": "verify-ca", "sslrootcert": encrypted.authority}
    with connect(encrypted.url("127.0.0.1", **asked), "test") as connection:
        assert server_facts(connection).encryption.startswith("TLSv1.")
    assert "certificate" in encrypted.refusal(encrypted.url("127.0.0.1", **{**asked, "sslmode": "verify-full"}))


def test_a_certificate_of_a_strange_authority_is_refused(encrypted: Encrypted) -> None:
    of_system = encrypted.refusal(encrypted.url())
    of_stranger = encrypted.refusal(encrypted.url(sslrootcert=encrypted.stranger))
    for said in (of_system, of_stranger):
        assert "cannot reach the engine postgres on " in said and "certificate verify failed" in said
        assert "?sslrootcert=FILE" in said
    with connect(encrypted.url(sslmode="require"), "test") as connection:
        assert server_facts(connection).encryption.startswith("TLSv1."), "the check is given up, the encryption is not"


def test_a_certificate_for_another_name_is_refused(encrypted: Encrypted) -> None:
    said = encrypted.refusal(encrypted.url("db.elsewhere", sslrootcert=encrypted.authority))
    assert NAME in said and "db.elsewhere" in said and "does not match" in said


def test_an_authority_that_is_not_there_is_named(encrypted: Encrypted, tmp_path: Path) -> None:
    said = encrypted.refusal(encrypted.url(sslrootcert=tmp_path / "none.pem"))
    assert "none.pem" in said and "does not exist" in said


def test_a_wrong_password_is_refused_after_the_check(encrypted: Encrypted) -> None:
    wrong = encrypted.url(sslrootcert=encrypted.authority).replace(encrypted.password, "s3cr3t")
    said = encrypted.refusal(wrong)
    assert "password authentication failed" in said and "s3cr3t" not in said
