"""Connections to the engine: what is said where there is none, and that they are encrypted off this machine."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from crawler.engine.engine_connection import EngineError, EngineUnreachable, connect
from tests.postgres_server import in_database, own_database


def test_a_connection_says_what_it_is_for() -> None:
    with own_database() as url, connect(url, "test") as connection:
        (name,) = connection.execute("SELECT current_setting('application_name')").fetchone() or ("",)
        assert name == "sumi-ripple test"


def test_both_ends_give_up_a_peer_that_says_nothing_any_more_within_the_time() -> None:
    """The engine's end too: by its own settings it keeps the locks of a machine that was cut off for two hours."""
    with own_database() as url:
        for dead_after in (30, 6):
            with connect(url, "test", dead_after=dead_after) as connection:
                told = dict(connection.execute("SELECT name, setting FROM pg_settings WHERE name ~ '^tcp_'").fetchall())
                ours = {
                    f"tcp_{name}".replace("tcp_tcp", "tcp"): v for name, v in connection.info.get_parameters().items()
                }
                for end in (told, ours):
                    idle, interval, count = (
                        int(end[f"tcp_keepalives_{word}"]) for word in ("idle", "interval", "count")
                    )
                    assert 0 < idle + interval * count <= dead_after, "a quiet connection"
                    assert int(end["tcp_user_timeout"]) == dead_after * 1000, "one with an answer on its way"


def test_of_several_hosts_the_one_that_takes_writes_is_meant() -> None:
    with own_database() as url:
        head, _, tail = url.partition("@")
        host = tail.partition("/")[0]
        with connect(f"{head}@{host},{tail}", "test") as connection:
            assert connection.info.get_parameters()["target_session_attrs"] == "read-write"
            connection.execute("SELECT 1")
        with connect(f"{head}@{host},{tail}?target_session_attrs=any", "test") as connection:
            assert "target_session_attrs" not in connection.info.get_parameters(), "the settings of the URL win"


def test_an_engine_that_is_not_there_is_named_without_the_password() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # bound, and nobody listens
        port = probe.getsockname()[1]
        with pytest.raises(EngineUnreachable) as refused:
            connect(f"postgresql://crawl:s3cr3t@127.0.0.1:{port}/terrain", "test")
    text = str(refused.value)
    assert f"cannot reach the engine terrain on 127.0.0.1, port {port}: " in text
    assert "\n" not in text and "s3cr3t" not in text
    assert refused.value.__cause__ is None and refused.value.__suppress_context__


def test_a_wrong_password_and_a_missing_database_are_told_apart_and_not_shown() -> None:
    with own_database() as url:
        head, _, tail = url.partition("://")[2].partition("@")
        user = head.partition(":")[0]
        with pytest.raises(EngineUnreachable, match=r"password authentication failed.*~/\.pgpass") as refused:
            connect(f"postgresql://{user}:s3cr3t@{tail}", "test")
        assert "s3cr3t" not in str(refused.value)
        with pytest.raises(EngineUnreachable, match=r'database "nowhere" does not exist'):
            connect(in_database(url, "nowhere"), "test")


def test_a_url_that_postgresql_does_not_read_is_not_repeated() -> None:
    with pytest.raises(EngineError, match="is no URL that PostgreSQL reads") as refused:
        connect("postgresql://crawl:s3%cr3t@127.0.0.1/terrain", "test")
    assert "cr3t" not in str(refused.value)
    with pytest.raises(EngineError, match=r"is no URL of a PostgreSQL database: .* as %25") as refused:
        connect("postgresql://crawl:s3@cr3t@127.0.0.1/terrain", "test")
    assert "cr3t" not in str(refused.value)


@pytest.fixture
def heard() -> list[bytes]:
    """What that server was told after it had refused."""
    return []


@pytest.fixture
def plain_server(heard: list[bytes]) -> str:
    """A server on another machine, as far as its name says, that refuses to speak TLS; returns its host and port."""
    server = socket.create_server(("127.0.0.1", 0))

    def refuse() -> None:
        with server:
            for _ in range(3):
                with server.accept()[0] as client:
                    client.recv(8)
                    client.sendall(b"N")
                    heard.append(client.recv(1000))

    threading.Thread(target=refuse, daemon=True).start()
    return f"db.internal:{server.getsockname()[1]}"


def test_off_this_machine_nothing_is_sent_without_tls(plain_server: str) -> None:
    url = f"postgresql://crawl:s3cr3t@{plain_server}/terrain?hostaddr=127.0.0.1"
    with pytest.raises(EngineUnreachable, match="server does not support SSL") as refused:
        connect(url, "test")
    assert "?sslrootcert=FILE" in str(refused.value) and "s3cr3t" not in str(refused.value)


@pytest.mark.parametrize("way", ["environment", "service"])
def test_where_the_environment_leads_off_this_machine_nothing_is_sent_without_tls(
    plain_server: str, heard: list[bytes], way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The URL names no host. The address is that of this machine, and the name another one's."""
    host, _, port = plain_server.partition(":")
    monkeypatch.setenv("PGPASSWORD", "s3cr3t")
    if way == "service":
        services = tmp_path / "services"
        services.write_text(f"[far]\nhost={host}\nhostaddr=127.0.0.1\nport={port}\n")
        monkeypatch.setenv("PGSERVICEFILE", str(services))
        url, named = "postgresql://crawl@/terrain?service=far", "service far"
    else:
        for name, value in {"PGHOST": host, "PGHOSTADDR": "127.0.0.1", "PGPORT": port}.items():
            monkeypatch.setenv(name, value)
        url, named = "postgresql://crawl@/terrain", f"{host}, port {port}"
    with pytest.raises(EngineUnreachable, match="server does not support SSL") as refused:
        connect(url, "test")
    assert f"terrain on {named}" in str(refused.value)
    assert not b"".join(heard)


def test_a_host_on_this_machine_is_not_led_elsewhere_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens at the other address of this machine; the password would go there in clear text."""
    with own_database() as url:
        monkeypatch.setenv("PGHOSTADDR", "127.0.0.77")
        monkeypatch.setenv("PGHOST", "db.internal")
        with connect(url, "test") as connection:
            assert connection.info.hostaddr == "127.0.0.1"


def test_the_settings_of_the_url_win(plain_server: str) -> None:
    """Who says so in the URL speaks without TLS, and on this machine everybody does."""
    for host in (plain_server, plain_server.replace("db.internal", "127.0.0.1")):
        mode = "&sslmode=disable" if host == plain_server else ""
        with pytest.raises(EngineUnreachable) as refused:
            connect(f"postgresql://crawl@{host}/terrain?hostaddr=127.0.0.1{mode}", "test")
        assert "SSL was required" not in str(refused.value)
