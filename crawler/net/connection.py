"""One TLS connection: dialled, encrypted, written to and read from, all under the deadline of the current request."""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
import time
from collections.abc import Callable

from crawler.net.addresses import Endpoint
from crawler.net.deadline import Deadline
from crawler.net.http1 import BadResponse
from crawler.net.hub import SocketWaiter
from crawler.net.tls import TlsSessions

RECORD = 16 * 1024  # bytes of data in one TLS record, at most
PIECE = 64 * 1024  # bytes read at once, some records; the buffer of a kept connection stays as large as that
MOST_OVERHEAD = 256 * 1024  # bytes of TLS messages without data: certificates, session tickets
MOST_UNBROKEN = 512 * 1024  # bytes that are read before other requests go on, if their server sends that fast

Origin = tuple[str, int]


def _at_once(done: Callable[[None], None]) -> None:
    done(None)


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
            # OpenSSL is given the name in this form.
            origin[0].encode("idna")
        except UnicodeError as error:
            raise BadHostName from error
        plain = self._dial_any(endpoints, deadline)
        try:
            stream = self._encrypt(plain, origin[0], deadline)
        except BaseException:
            plain.close()
            raise
        return Connection(origin, stream, plain.fileno(), self._waiter, self.sessions)

    def dial(self, endpoints: list[Endpoint], deadline: Deadline) -> socket.socket:
        """The first of these endpoints that answers, not encrypted. Raises OSError (also TimeoutError)."""
        return self._dial_any(endpoints, deadline)

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

    def _encrypt(self, plain: socket.socket, host: str, deadline: Deadline) -> TlsStream:
        """The stream over this socket after its handshake, with an earlier session of the host if there is one."""
        try:
            stream = TlsStream(plain, self._context, host, self.sessions.pop(host))
        except ValueError as error:
            raise BadHostName from error
        give_up = time.monotonic() + self._timeout
        while (to_write := stream.shake_hands()) is not None:
            seconds = deadline.left(give_up - time.monotonic())
            self._waiter.wait(plain.fileno(), seconds, to_write=to_write)
        return stream


class TlsStream:
    """TLS over a non-blocking socket, through buffers in memory.

    OpenSSL never reads the socket itself: it is given one piece of at most `PIECE` bytes at a time. Reading the socket,
    `SSL_read` returns only once there is data for the caller, and a server that sends session tickets without end would
    keep it busy for ever. Given one piece, it returns after that. This costs 10 µs a page (HEAD and GET of 40 KB: 156
    against 146 µs): it copies, and saves the second `recv` for each record.

    Invariant: at most `MOST_OVERHEAD` bytes are read between two pieces of data for the caller.
    """

    __slots__ = ("_incoming", "_outgoing", "_overhead", "_read", "_recv", "_sock", "_tls", "_unsent", "received")

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, host: str, session: ssl.SSLSession | None) -> None:
        self._sock = sock
        self._recv = sock.recv
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host, session=session)
        self._read = self._tls.read
        self._overhead = 0
        self._unsent = b""
        self.received = 0  # bytes, as they came

    @property
    def session(self) -> ssl.SSLSession | None:
        return self._tls.session

    @property
    def is_empty(self) -> bool:
        """Is there nothing that has come and was not read?"""
        return not self._incoming.pending and not self._tls.pending()

    def shake_hands(self) -> bool | None:
        """Go on with the handshake. None: it is done. Else wait for the socket; True: until it is writable."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                if not self.flush():
                    return True
                if not self._fill():
                    return False
            except ssl.SSLError:
                self.flush()  # the alert that tells the server why
                raise
            else:
                return None if self.flush() else True

    def write(self, data: bytes) -> bool:
        """Encrypt these bytes, which `flush` sends. False: wait until the socket is readable, then try again."""
        while True:
            try:
                self._tls.write(data)
                return True
            except ssl.SSLWantReadError:  # the server began another handshake
                self.flush()
                if not self._fill():
                    return False

    def flush(self) -> bool:
        """Send all that is encrypted. False: wait until the socket is writable, then call it again."""
        while self._unsent or self._outgoing.pending:
            data = self._unsent or self._outgoing.read()
            try:
                sent = self._sock.send(data)
            except BlockingIOError:
                self._unsent = data
                return False
            self._unsent = data[sent:]
        return True

    def read(self) -> bytes | None:
        """The next bytes; none at the end of the connection; None: wait until the socket is readable."""
        if not self._incoming.pending and not self._fill():  # else the exception costs more than all the rest
            return None
        while True:
            try:
                data = self._read(RECORD)
            except ssl.SSLWantReadError:
                self.flush()  # the answer to a key update, say; what cannot be sent now goes with the next request
                if not self._fill():
                    return None
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""
            else:
                self._overhead = 0
                return data

    def close(self) -> None:
        self._sock.close()

    def _fill(self) -> bool:
        """Give OpenSSL the bytes that have come. False: there are none now."""
        try:
            data = self._recv(PIECE)
        except BlockingIOError:
            return False
        if not data:
            self._incoming.write_eof()
            return True
        self.received += len(data)
        self._overhead += len(data)
        if self._overhead > MOST_OVERHEAD:
            raise BadResponse(f"more than {MOST_OVERHEAD // 1024} KiB of TLS messages without any data")
        self._incoming.write(data)
        return True


class Connection:
    """An encrypted connection. It carries one request at a time, under the deadline given to `send`."""

    __slots__ = (
        "_deadline",
        "_descriptor",
        "_has_answered",
        "_may_be_readable",
        "_sessions",
        "_stream",
        "_waiter",
        "_way_given_at",
        "origin",
        "reusable_until",
    )

    def __init__(
        self, origin: Origin, stream: TlsStream, descriptor: int, waiter: SocketWaiter, sessions: TlsSessions
    ) -> None:
        self.origin = origin
        self.reusable_until = 0.0
        self._stream = stream
        self._descriptor = descriptor
        self._waiter = waiter
        self._sessions = sessions
        self._deadline: Deadline | None = None
        self._may_be_readable = False
        self._has_answered = False
        self._way_given_at = 0  # of the bytes received

    def send(self, data: bytes, deadline: Deadline) -> None:
        """Send a request. Raises OSError; TimeoutError after the deadline."""
        self._deadline = deadline
        self._may_be_readable = False
        while not self._stream.write(data):
            self._wait()
        while not self._stream.flush():
            self._may_be_readable = True
            self._wait(to_write=True)

    def receive(self) -> bytes:
        """The next bytes; none at the end of the connection. Raises OSError; TimeoutError after the deadline."""
        if not self._may_be_readable:  # no server answers before it was asked
            self._may_be_readable = True
            self._wait()
        if self._stream.received > self._way_given_at + MOST_UNBROKEN:
            self.give_way()
        while (data := self._stream.read()) is None:
            self._wait()
        return data

    def give_way(self) -> None:
        """Let other requests go on, which wait while one with a fast server is read. Raises TimeoutError."""
        assert self._deadline is not None
        self._way_given_at = self._stream.received
        self._waiter.wait_for_callback(_at_once, self._deadline.left())

    def _wait(self, *, to_write: bool = False) -> None:
        assert self._deadline is not None
        self._way_given_at = self._stream.received
        self._waiter.wait(self._descriptor, self._deadline.left(), to_write=to_write)

    def is_quiet(self) -> bool:
        """Is nothing to be read? At rest that would be the server's close, or bytes that belong to no request."""
        if not self._stream.is_empty:
            return False
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
            self._sessions.keep(self.origin[0], self._stream.session)
        self.drop()

    def drop(self) -> None:
        """Close without keeping the session, which takes 0.2 ms: where no other connection will follow."""
        self._stream.close()
