"""Connections over real sockets: dialling, the handshake, and who closes what when something goes wrong."""

from __future__ import annotations

import gc
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.net.connection import BadHostName, Connection, Connector
from crawler.net.deadline import Deadline
from crawler.net.hub import BlockingWaiter
from crawler.net.idle import IdleConnections
from crawler.net.tls import tls_context
from tests.hostile import HostileServer

REQUEST = b"HEAD /plain HTTP/1.1\r\nHost: tricks.test\r\n\r\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HostileServer]:
    with HostileServer(tmp_path) as running:
        yield running


@pytest.fixture
def connector(server: HostileServer) -> Connector:
    return Connector(tls_context(server.network()), BlockingWaiter(), 60.0)


def patience() -> Deadline:
    return Deadline(60.0, 60.0)


def connect(connector: Connector, server: HostileServer, host: str = "tricks.test") -> Connection:
    return connector.connect((host, 443), [("127.0.0.1", server.port)], patience())


def refused() -> tuple[str, int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address: tuple[str, int] = listener.getsockname()
        return address


def test_a_request_goes_out_and_its_answer_comes_in(connector: Connector, server: HostileServer) -> None:
    connection = connect(connector, server)
    connection.send(REQUEST, patience())
    assert connection.receive().startswith(b"HTTP/1.1 200")
    connection.close()


def test_the_next_endpoint_is_dialled_when_one_refuses(connector: Connector, server: HostileServer) -> None:
    endpoints = [refused(), ("127.0.0.1", server.port)]
    connector.connect(("tricks.test", 443), endpoints, patience()).close()


def test_a_refusal_says_more_than_a_timeout(connector: Connector) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        silent = listener.getsockname()
        crowd = [socket.socket() for _ in range(8)]  # fills the queue, so that the kernel answers nobody else
        for one in crowd:
            one.setblocking(False)
            one.connect_ex(silent)
        hasty = Connector(connector._context, BlockingWaiter(), 0.3)
        with pytest.raises(ConnectionRefusedError):
            hasty.connect(("tricks.test", 443), [silent, refused()], patience())
        with pytest.raises(TimeoutError):
            hasty.connect(("tricks.test", 443), [silent], patience())
        for one in crowd:
            one.close()


@pytest.mark.parametrize("host", ["a" * 70 + ".test", "a..b", ""])
def test_a_name_that_fits_no_certificate_is_named(connector: Connector, server: HostileServer, host: str) -> None:
    with pytest.raises(BadHostName):
        connect(connector, server, host)


@pytest.mark.parametrize("host", ["tricks.test", "a..b"])
def test_a_failed_handshake_leaves_no_socket_to_the_collector(connector: Connector, host: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,  # accepts no one, and so says nothing
        warnings.catch_warnings(record=True) as seen,
    ):
        warnings.simplefilter("always", ResourceWarning)
        with pytest.raises((TimeoutError, BadHostName)):
            connector.connect((host, 443), [listener.getsockname()], Deadline(0.05, 60.0))
        gc.collect()
    assert [str(warning.message) for warning in seen] == []


def test_the_deadline_ends_a_read(connector: Connector, server: HostileServer) -> None:
    connection = connect(connector, server)
    connection.send(REQUEST.replace(b"/plain", b"/silent"), Deadline(0.05, 60.0))
    with pytest.raises(TimeoutError):
        connection.receive()
    connection.close()


def test_a_session_is_kept_only_after_an_answer(connector: Connector, server: HostileServer) -> None:
    connect(connector, server).close()
    assert connector.sessions.pop("tricks.test") is None
    connection = connect(connector, server)
    connection.send(REQUEST, patience())
    connection.receive()
    connection.reuse_until(0.0)
    connection.close()
    assert connector.sessions.pop("tricks.test") is not None


def test_a_connection_that_rested_too_long_is_closed(connector: Connector, server: HostileServer) -> None:
    idle = IdleConnections(10)
    connection = connect(connector, server)
    connection.reuse_until(0.0)
    idle.put(connection)
    assert idle.pop(connection.origin) is None
    assert (len(idle), connection._stream._sock.fileno()) == (0, -1)


def test_at_the_end_connections_are_closed_without_keeping_their_sessions(
    connector: Connector, server: HostileServer
) -> None:
    idle = IdleConnections(10)
    connection = connect(connector, server)
    connection.send(REQUEST, patience())
    connection.receive()
    connection.reuse_until(float("inf"))
    idle.put(connection)
    idle.close()
    assert (len(idle), connection._stream._sock.fileno()) == (0, -1)
    assert connector.sessions.pop("tricks.test") is None


def test_connections_of_other_origins_are_not_handed_out(connector: Connector, server: HostileServer) -> None:
    idle = IdleConnections(10)
    connection = connect(connector, server)
    connection.send(REQUEST, patience())
    connection.receive()  # with it, the session tickets that a server sends before its first answer
    connection.reuse_until(float("inf"))
    idle.put(connection)
    assert idle.pop(("tricks.test", 8443)) is None
    assert idle.pop(("tricks.test", 443)) is connection
    connection.close()
