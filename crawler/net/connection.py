"""One TLS connection: dialled, encrypted, written to and read from, all under the deadline of the current request."""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
import time

from crawler.net.addresses import Endpoint
from crawler.net.deadline import Deadline
from crawler.net.hub import SocketWaiter
from crawler.net.tls import TlsSessions

RECEIVE = 64 * 1024

Origin = tuple[str, int]
_WOULD_BLOCK = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


class BadHostName(Exception):
    """A host name that no certificate can contain."""


class Connector:
    """Makes connections, each to addresses that were already checked; the host is only a name here.

    Invariant: no name is looked up, so the address that was checked is the one connected to.
    """

    def __init__(self, context: ssl.SSLContext, waiter: SocketWaiter, timeout: float) -> None:
        self._context = context
        self._waiter = waiter
        self._timeout = timeout  # seconds for dialling, and again for the handshake
        self.sessions = TlsSessions()

    def connect(self, origin: Origin, endpoints: list[Endpoint], deadline: Deadline) -> Connection:
        """The first of these endpoints that answers, encrypted. Raises OSError (also TimeoutError) or BadHostName."""
        try:
            # wrap_socket encodes it the same way, but loses the socket when that fails.
            origin[0].encode("idna")
        except UnicodeError as error:
            raise BadHostName from error
        plain = self._dial_any(endpoints, deadline)
        try:
            sock = self._encrypt(plain, origin[0], deadline)
        except BaseException:
            plain.close()
            raise
        return Connection(origin, sock, self._waiter, self.sessions)

    def _dial_any(self, endpoints: list[Endpoint], deadline: Deadline) -> socket.socket:
        errors: list[OSError] = []
        give_up = time.monotonic() + self._timeout
        for place, endpoint in enumerate(endpoints):
            share = max(0.001, (give_up - time.monotonic()) / (len(endpoints) - place))
            try:
                return self._dial(endpoint, deadline, share)
            except OSError as error:
                errors.append(error)
        # Of several errors the one that says most is raised: a refusal is an answer of the server itself.
        errors.sort(
            key=lambda error: (
                not isinstance(error, ConnectionRefusedError),
                not isinstance(error, TimeoutError),
            )
        )
        raise errors[0]

    def _dial(self, endpoint: Endpoint, deadline: Deadline, seconds: float) -> socket.socket:
        family = socket.AF_INET6 if ":" in endpoint[0] else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            problem = sock.connect_ex(endpoint)
            self._waiter.attach(sock.fileno())
            if problem == errno.EINPROGRESS:
                self._waiter.wait(sock.fileno(), deadline.left(seconds), to_write=True)
                problem = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if problem:
                raise OSError(problem, os.strerror(problem))
        except BaseException:
            sock.close()
            raise
        return sock

    def _encrypt(self, plain: socket.socket, host: str, deadline: Deadline) -> ssl.SSLSocket:
        """The same socket after its handshake, with the session of an earlier connection to the host if there is one.

        `wrap_socket` moves the descriptor: from then on `plain` owns nothing.
        """
        try:
            sock = self._context.wrap_socket(
                plain, server_hostname=host, do_handshake_on_connect=False, session=self.sessions.pop(host)
            )
        except ValueError as error:
            raise BadHostName from error
        give_up = time.monotonic() + self._timeout
        try:
            while True:
                try:
                    sock.do_handshake()
                    return sock
                except _WOULD_BLOCK as want:
                    seconds = deadline.left(give_up - time.monotonic())
                    self._waiter.wait(sock.fileno(), seconds, to_write=isinstance(want, ssl.SSLWantWriteError))
        except BaseException:
            sock.close()
            raise


class Connection:
    """An encrypted connection. It carries one request at a time, under the deadline given to `send`."""

    __slots__ = (
        "_deadline",
        "_descriptor",
        "_has_answered",
        "_may_be_readable",
        "_sessions",
        "_sock",
        "_waiter",
        "origin",
        "reusable_until",
    )

    def __init__(self, origin: Origin, sock: ssl.SSLSocket, waiter: SocketWaiter, sessions: TlsSessions) -> None:
        self.origin = origin
        self.reusable_until = 0.0
        self._sock = sock
        self._descriptor = sock.fileno()
        self._waiter = waiter
        self._sessions = sessions
        self._deadline: Deadline | None = None
        self._may_be_readable = False
        self._has_answered = False

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Send a request. Raises OSError; TimeoutError after the deadline."""
        self._deadline = deadline
        self._may_be_readable = False
        while True:
            try:
                sent = self._sock.send(data)
            except _WOULD_BLOCK as want:
                self._may_be_readable = True
                self._wait(to_write=isinstance(want, ssl.SSLWantWriteError))
            else:
                if sent == len(data):
                    return
                data = data[sent:]

    def receive(self) -> bytes:
        """The next bytes; none at the end of the connection. Raises OSError; TimeoutError after the deadline."""
        if not self._may_be_readable:  # no server answers before it was asked
            self._may_be_readable = True
            self._wait()
        while True:
            try:
                return self._sock.read(RECEIVE)
            except _WOULD_BLOCK as want:
                self._wait(to_write=isinstance(want, ssl.SSLWantWriteError))

    def _wait(self, *, to_write: bool = False) -> None:
        assert self._deadline is not None
        self._waiter.wait(self._descriptor, self._deadline.left(), to_write=to_write)

    def is_quiet(self) -> bool:
        """Is nothing to be read? At rest that would be the server's close, or bytes that belong to no request."""
        poller = select.poll()
        poller.register(self._descriptor, select.POLLIN)
        return not poller.poll(0)

    def reuse_until(self, moment: float) -> None:
        """The answer was read to its end: another request may follow until then."""
        self.reusable_until = moment
        self._has_answered = True

    def close(self) -> None:
        """Close, and keep the TLS session if there was an answer over it."""
        if self._has_answered:
            self._sessions.keep(self.origin[0], self._sock)
        self._sock.close()
