"""Requests on the wire. The only file that knows the HTTP library (urllib3) and TLS.

urllib3 makes the connections: TCP, TLS, verification. What comes back is read by `crawler.net.http1` and
`crawler.net.codings` rather than by http.client, because that is three times cheaper per answer, and because every
read can then look at one deadline and every buffer has a limit.

`HttpClient.send` never raises for anything that a server, a network or a name server does.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import ada_url
from urllib3.connection import HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.util.ssl_ import create_urllib3_context

from crawler.model.messages import Answer, BodyWanted, Failure, Request, Response
from crawler.model.settings import NetworkSettings
from crawler.net.addresses import AddressResolver, Endpoint, Unresolvable
from crawler.net.codings import BadEncoding, Collector, codings
from crawler.net.http1 import BadResponse, Body, EarlyClose, Head, Source, TooLarge, read_head
from crawler.net.hub import BlockingWaiter, SocketWaiter
from crawler.visit.content_types import SNIFF_LENGTH, is_html, media_type

ACCEPT = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.1"
ACCEPT_ENCODING = "gzip, deflate, br, zstd"
RECEIVE = 64 * 1024
LONGEST_IDLE = 90.0  # seconds; servers that keep a connection for longer are rare
DRAIN_BYTES = 64 * 1024  # an unwanted body this short is read to its end, which is cheaper than a new connection
DRAIN_SECONDS = 1.0
KEPT_SESSIONS = 2048  # TLS sessions, for a cheap handshake with a host met before
MOST_ADDRESSES = 4  # of one host are tried

Origin = tuple[str, int]
_WANTS = (ssl.SSLWantReadError, ssl.SSLWantWriteError)  # what a step over TLS says that has to wait


class Deadline:
    """The end of one request, whatever it is doing. `left` raises TimeoutError when it has come."""

    __slots__ = ("_end", "_per_read")

    def __init__(self, total: float, per_read: float) -> None:
        self._end = time.monotonic() + total
        self._per_read = per_read

    def left(self, most: float | None = None) -> float:
        """Seconds that the next step may take."""
        seconds = min(self._end - time.monotonic(), self._per_read if most is None else most)
        if seconds <= 0:
            raise TimeoutError
        return seconds

    def shorten(self, total: float) -> None:
        self._end = min(self._end, time.monotonic() + total)


class _Plain(socket.socket):
    """A TCP socket that knows how long it may take to become a TLS one."""

    deadline: Deadline
    handshake_timeout: float


class _Socket(ssl.SSLSocket):
    """A TLS socket that never blocks: what has to be waited for is waited for in the transport's own way."""

    def shake_hands(self, waiting: SocketWaiter, sessions: _Sessions, deadline: Deadline, most: float) -> None:
        """With the session of an earlier connection to the same host, if there is one."""
        if (session := sessions.take(self.server_hostname)) is not None:
            self.session = session
        give_up = time.monotonic() + most
        while True:
            try:
                return self.do_handshake()
            except _WANTS as want:
                seconds = deadline.left(give_up - time.monotonic())
                waiting.wait(self.fileno(), seconds, to_write=isinstance(want, ssl.SSLWantWriteError))


class _Sessions:
    """The newest TLS session of each host. A ticket is used once: TLS 1.3 hands out a new one each time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, ssl.SSLSession] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, host: str | None) -> ssl.SSLSession | None:
        with self._lock:
            return self._kept.pop(host, None) if host is not None else None

    def keep(self, sock: ssl.SSLSocket) -> None:
        try:
            session = sock.session
        except ValueError:
            return
        if session is None or sock.server_hostname is None:
            return
        with self._lock:
            self._kept[sock.server_hostname] = session
            while len(self._kept) > KEPT_SESSIONS:
                self._kept.popitem(last=False)


class _Context(ssl.SSLContext):
    """The one TLS context of a transport."""

    sslsocket_class = _Socket
    sessions: _Sessions
    waiting: SocketWaiter

    def wrap_socket(self, sock: socket.socket, *rest: Any, **options: Any) -> ssl.SSLSocket:
        """As urllib3 asks for it: with the handshake made."""
        assert isinstance(sock, _Plain)
        made = super().wrap_socket(sock, *rest, **(options | {"do_handshake_on_connect": False}))
        assert isinstance(made, _Socket)
        try:
            made.shake_hands(self.waiting, self.sessions, sock.deadline, sock.handshake_timeout)
        except BaseException:
            made.close()
            raise
        return made


def _tls_context(network: NetworkSettings, waiting: SocketWaiter) -> _Context:
    context = _Context(ssl.PROTOCOL_TLS_CLIENT)
    model = create_urllib3_context()
    context.options |= model.options
    context.verify_flags |= model.verify_flags
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.sessions = _Sessions()
    context.waiting = waiting
    context.load_default_certs()
    if context.cert_store_stats()["x509_ca"] == 0:
        with suppress(ImportError):  # comes with requests; only a machine without a trust store needs it
            import certifi

            context.load_verify_locations(cafile=certifi.where())
    if network.ca_bundle is not None:
        context.load_verify_locations(cafile=str(network.ca_bundle))
    return context


class _Handshake(Exception):
    """TLS did not come about. The cause says why."""


class Connection(HTTPSConnection):
    """A TLS connection to addresses that were already checked; the host is only a name here.

    Invariant: no name is looked up, so the address that was checked is the one connected to.
    """

    def __init__(self, origin: Origin, context: _Context) -> None:
        super().__init__(origin[0], port=origin[1], ssl_context=context, socket_options=[])
        self.origin = origin
        self._waiting = context.waiting
        self.has_answered = False
        self.reusable_until = 0.0
        self._endpoints: list[Endpoint] = []
        self._deadline: Deadline | None = None
        self._connect_timeout = 0.0

    def open(self, endpoints: list[Endpoint], deadline: Deadline, connect_timeout: float) -> None:
        """Connect and shake hands. Raises OSError (TimeoutError too) or `_Handshake`."""
        self._endpoints, self._deadline, self._connect_timeout = endpoints, deadline, connect_timeout
        try:
            self.connect()
        except BaseException:
            # While the handshake goes on, urllib3 holds the bare socket; nobody else would close it.
            self.close()
            raise

    def connect(self) -> None:
        try:
            super().connect()
        except (ssl.SSLError, HTTPError, ValueError) as error:  # ValueError: a name that no certificate can have
            raise _Handshake from error

    def _new_conn(self) -> socket.socket:
        assert self._deadline is not None
        errors: list[OSError] = []
        give_up = time.monotonic() + self._connect_timeout
        for place, endpoint in enumerate(self._endpoints):
            share = max(0.001, (give_up - time.monotonic()) / (len(self._endpoints) - place))
            try:
                return self._dial(endpoint, self._deadline, share)
            except OSError as error:
                errors.append(error)
        # Of several, the error that says most: a refusal is a server's own word.
        errors.sort(
            key=lambda error: (
                not isinstance(error, ConnectionRefusedError),
                not isinstance(error, TimeoutError),
            )
        )
        raise errors[0]

    def _dial(self, endpoint: Endpoint, deadline: Deadline, seconds: float) -> socket.socket:
        family = socket.AF_INET6 if ":" in endpoint[0] else socket.AF_INET
        sock = _Plain(family, socket.SOCK_STREAM)
        sock.deadline, sock.handshake_timeout = deadline, self._connect_timeout
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            problem = sock.connect_ex(endpoint)
            self._waiting.attach(sock.fileno())
            if problem == errno.EINPROGRESS:
                self._waiting.wait(sock.fileno(), deadline.left(seconds), to_write=True)
                problem = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if problem:
                raise OSError(problem, os.strerror(problem))
        except BaseException:
            sock.close()
            raise
        return sock

    def give_up(self) -> None:
        """Close, and remember the TLS session if there was an answer over it."""
        sock = self.sock
        if self.has_answered and isinstance(sock, _Socket) and isinstance(self.ssl_context, _Context):
            self.ssl_context.sessions.keep(sock)
        self.close()


class _Idle:
    """Connections at rest, at most `limit`; the one that rested longest goes first."""

    def __init__(self, limit: int) -> None:
        self._limit = max(0, limit)
        self._resting: OrderedDict[int, Connection] = OrderedDict()
        self._by_origin: dict[Origin, list[Connection]] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def take(self, origin: Origin) -> Connection | None:
        while True:
            with self._lock:
                connections = self._by_origin.get(origin)
                if not connections:
                    return None
                connection = connections[-1]
                self._forget(connection)
            # Readable at rest means closed by the other side, or bytes that belong to no request.
            if time.monotonic() < connection.reusable_until and connection.is_connected:
                return connection
            connection.give_up()

    def put(self, connection: Connection) -> None:
        surplus: list[Connection] = []
        with self._lock:
            if self._is_closed:
                surplus.append(connection)
            else:
                self._resting[id(connection)] = connection
                self._by_origin.setdefault(connection.origin, []).append(connection)
                while len(self._resting) > self._limit:
                    oldest = next(iter(self._resting.values()))
                    self._forget(oldest)
                    surplus.append(oldest)
        for one in surplus:
            one.give_up()

    def _forget(self, connection: Connection) -> None:
        del self._resting[id(connection)]
        connections = self._by_origin[connection.origin]
        connections.remove(connection)
        if not connections:
            del self._by_origin[connection.origin]

    def __len__(self) -> int:
        return len(self._resting)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            connections = list(self._resting.values())
            self._resting.clear()
            self._by_origin.clear()
        for connection in connections:
            connection.close()


class HttpClient:
    """Sends requests and keeps connections for the next ones. Safe to use from many threads, or in a `Hub`.

    Invariants: a connection carries one request at a time; it goes back to rest only after its answer was
    read to the last byte and nothing else came; one `send` is at most one request on the wire.
    """

    def __init__(
        self,
        network: NetworkSettings,
        user_agent_header: str,
        *,
        resolver: AddressResolver | None = None,
        waiting: SocketWaiter | None = None,
    ) -> None:
        self._network = network
        self._resolver = resolver or AddressResolver(network)
        self._waiting = waiting or BlockingWaiter()
        self._context = _tls_context(network, self._waiting)
        self._idle = _Idle(network.max_idle_connections)
        agent = user_agent_header.encode("utf-8").decode("latin-1")
        if any(ord(character) < 32 or ord(character) == 127 for character in agent):
            raise ValueError("the user agent has control characters in it")
        self._common = f"User-Agent: {agent}\r\nAccept: {ACCEPT}\r\nAccept-Encoding: {ACCEPT_ENCODING}\r\n\r\n".encode(
            "latin-1"
        )

    @property
    def idle_connections(self) -> int:
        return len(self._idle)

    def send(self, request: Request) -> Answer:
        """Put one request on the wire and bring back what became of it."""
        start = time.monotonic()
        failure: tuple[str, str]
        try:
            return self._exchange(request, start)
        except Unresolvable as error:
            failure = error.slug, error.words
        except _Handshake as error:
            failure = _tls_failure(error.__cause__)
        except TimeoutError:
            failure = "timeout", "no complete answer in time"
        except ssl.SSLError as error:
            failure = _tls_failure(error)
        except EarlyClose as error:
            failure = ("early-close" if error.got else "connection-reset"), str(error)
        except BadResponse as error:
            failure = "bad-response", str(error)
        except TooLarge as error:
            failure = "too-large", str(error)
        except BadEncoding as error:
            failure = "bad-encoding", str(error)
        except OSError as error:
            failure = _connection_failure(error)
        except (HTTPError, UnicodeError, ValueError, MemoryError) as error:
            failure = "bad-response", f"could not be read ({type(error).__name__})"
        return Failure(*failure, elapsed=time.monotonic() - start)

    def close(self) -> None:
        """Close what is at rest; what is in use closes when its request ends."""
        self._idle.close()

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exchange(self, request: Request, start: float) -> Response:
        network = self._network
        origin, line = _request_line(request)
        deadline = Deadline(network.total_timeout / 1000, network.read_timeout / 1000)
        connection = self._idle.take(origin)
        if connection is None:
            endpoints = self._resolver.known(*origin)
            if endpoints is None:
                endpoints = self._waiting.run_in_thread(lambda: self._resolver.addresses(*origin))
            connection = Connection(origin, self._context)
            connection.open(endpoints[:MOST_ADDRESSES], deadline, network.connect_timeout / 1000)
        is_kept = False
        try:
            stream = _Stream(connection.sock, self._waiting, deadline)
            stream.send(line + self._common)
            response, is_kept, keep = _read(request, stream.receive, deadline, start)
            connection.has_answered = True
            connection.reusable_until = time.monotonic() + keep
            return response
        finally:
            if is_kept:
                self._idle.put(connection)
            else:
                connection.give_up()


def _request_line(request: Request) -> tuple[Origin, bytes]:
    """The origin, and the request up to its Host header. Nothing in a parsed URL can break out of its line."""
    href = ada_url.normalize_url(request.url)  # one call: the URL object's members cost one each
    if not href.startswith("https://"):
        raise BadResponse("only https is spoken here")
    if not request.method.isalpha():
        raise BadResponse("not a method")
    slash = href.index("/", 8)
    authority = href[8:slash].rpartition("@")[2]
    target = href[slash:].partition("#")[0]
    line = f"{request.method} {target} HTTP/1.1\r\nHost: {authority}\r\n"
    host, port = authority, 443
    if ":" in authority and not authority.endswith("]"):
        host, _, digits = authority.rpartition(":")
        port = int(digits)
    return (host.strip("[]").rstrip("."), port), line.encode("ascii")


class _Stream:
    """The bytes of one exchange, out and in. Raises TimeoutError when it has taken too long."""

    __slots__ = ("_deadline", "_descriptor", "_may_be_there", "_sock", "_waiting")

    def __init__(self, sock: Any, waiting: SocketWaiter, deadline: Deadline) -> None:
        self._sock = sock
        self._descriptor: int = sock.fileno()
        self._waiting = waiting
        self._deadline = deadline
        self._may_be_there = False

    def send(self, data: bytes) -> None:
        while True:
            try:
                sent = self._sock.send(data)
            except _WANTS as want:
                self._may_be_there = True
                self._wait(to_write=isinstance(want, ssl.SSLWantWriteError))
            else:
                if sent == len(data):
                    return
                data = data[sent:]

    def receive(self) -> bytes:
        """The next bytes; none at the end of the connection."""
        if not self._may_be_there:  # no server answers before it was asked
            self._may_be_there = True
            self._wait()
        while True:
            try:
                data: bytes = self._sock.read(RECEIVE)
                return data
            except _WANTS as want:
                self._wait(to_write=isinstance(want, ssl.SSLWantWriteError))

    def _wait(self, *, to_write: bool = False) -> None:
        self._waiting.wait(self._descriptor, self._deadline.left(), to_write=to_write)


def _read(
    request: Request, receive: Callable[[], bytes], deadline: Deadline, start: float
) -> tuple[Response, bool, float]:
    """The response, whether the connection can be kept, and for how long."""
    source = Source(receive)
    head = read_head(source)
    body = Body(source, head, request.method)
    content, is_cut = b"", False
    if body.length == 0:
        for _ in body.pieces():
            pass
    elif _is_wanted(request, head):
        content, is_cut = _collect(request, head, body)
    else:
        _drain(body, deadline)
    response = Response(head.status, head.headers, content, is_cut, time.monotonic() - start)
    return response, body.is_exact and head.is_keep_alive, _keep_seconds(head)


def _is_wanted(request: Request, head: Head) -> bool:
    if request.wanted is BodyWanted.ANYTHING:
        return True
    if request.wanted is not BodyWanted.HTML or not 200 <= head.status <= 299:
        return False
    content_type = head.headers.get("content-type")
    return media_type(content_type) is None or is_html(content_type)


def _collect(request: Request, head: Head, body: Body) -> tuple[bytes, bool]:
    applied = codings(head.headers.get("content-encoding")) + codings(",".join(body.transfer_codings))
    collector = Collector(applied, request.limit)
    is_unsure = request.wanted is BodyWanted.HTML and media_type(head.headers.get("content-type")) is None
    most_on_wire = request.limit + request.limit // 8 + RECEIVE
    on_wire = 0
    try:
        for piece in body.pieces():
            on_wire += len(piece)
            if not collector.feed(piece):
                break
            if on_wire > most_on_wire:
                collector.is_cut = True
                break
            if is_unsure and collector.size >= SNIFF_LENGTH:
                if not is_html(None, collector.prefix(SNIFF_LENGTH)):
                    break
                is_unsure = False
    except TooLarge:
        if not collector.size:
            raise
        collector.is_cut = True
    if applied and on_wire and not collector.size and not collector.is_whole:
        raise BadEncoding("the compressed body ended before anything came out of it")
    return collector.body(), collector.is_cut


def _drain(body: Body, deadline: Deadline) -> None:
    """Read a short unwanted body to its end, to keep the connection. Failing costs nothing but that."""
    if body.length is None and not body.is_chunked:
        return
    if body.length is not None and body.length > DRAIN_BYTES:
        return
    deadline.shorten(DRAIN_SECONDS)
    size = 0
    try:
        for piece in body.pieces():
            size += len(piece)
            if size > DRAIN_BYTES:
                return
    except (OSError, BadResponse, TooLarge, EarlyClose):
        body.is_exact = False


def _keep_seconds(head: Head) -> float:
    """How long the server says it keeps the connection, less a second for the way."""
    hint = head.headers.get("keep-alive")
    if hint is not None:
        _, found, rest = hint.lower().partition("timeout=")
        digits = rest.partition(",")[0].strip()
        if found and digits.isascii() and digits.isdigit():
            return min(LONGEST_IDLE, int(digits[:6]) - 1.0)
    return LONGEST_IDLE


VERIFY_WORDS = {
    9: "the certificate is not valid yet",
    10: "the certificate has expired",
    18: "the certificate is self-signed",
    19: "the certificate chain ends in an unknown self-signed certificate",
    20: "the certificate is from an unknown issuer",
    21: "the certificate is from an unknown issuer, or its chain is incomplete",
    23: "the certificate was revoked",
    24: "the certificate is from an issuer that is no authority",
    26: "the certificate is not meant for servers",
    62: "the certificate is for another host",
    64: "the certificate is for another address",
    66: "the certificate's key is too weak",
    68: "the certificate's signature is too weak",
}
REASON_WORDS = {
    "UNSUPPORTED_PROTOCOL": "the server speaks only an old version of TLS",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the server speaks only an old version of TLS",
    "WRONG_SSL_VERSION": "the server speaks only an old version of TLS",
    "VERSION_TOO_LOW": "the server speaks only an old version of TLS",
    "WRONG_VERSION_NUMBER": "the server does not speak TLS on this port",
    "HTTP_REQUEST": "the server does not speak TLS on this port",
    "RECORD_LAYER_FAILURE": "the server does not speak TLS on this port",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the server and this crawler have no common way to encrypt",
    "NO_CIPHERS_AVAILABLE": "the server and this crawler have no common way to encrypt",
    "DH_KEY_TOO_SMALL": "the server's key exchange is too weak",
    "EE_KEY_TOO_SMALL": "the certificate's key is too weak",
    "UNSAFE_LEGACY_RENEGOTIATION_DISABLED": "the server needs unsafe renegotiation",
    "TLSV1_UNRECOGNIZED_NAME": "the server does not know this host",
    "UNEXPECTED_EOF_WHILE_READING": "the server closed the connection during the handshake",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the server wants a client certificate",
}


def _tls_failure(error: BaseException | None) -> tuple[str, str]:
    """Slug and words for what TLS did not like, from codes, not from texts."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "tls", VERIFY_WORDS.get(error.verify_code) or f"the certificate is not trusted ({error.verify_message})"
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "tls", "the server closed the connection during the handshake"
    if isinstance(error, ssl.SSLError):
        reason = error.reason or ""
        words = REASON_WORDS.get(reason) or reason.lower().replace("_", " ") or "the handshake failed"
        return "tls", words
    return "tls", "the handshake failed"


CONNECTION_WORDS: dict[int, tuple[str, str]] = {
    errno.ECONNREFUSED: ("connection-refused", "the server refuses connections"),
    errno.ECONNRESET: ("connection-reset", "the server reset the connection"),
    errno.EPIPE: ("connection-reset", "the server closed the connection"),
    errno.ECONNABORTED: ("connection-reset", "the connection was aborted"),
    errno.EHOSTUNREACH: ("connection-failed", "there is no route to the server"),
    errno.ENETUNREACH: ("connection-failed", "there is no route to the server's network"),
    errno.EADDRNOTAVAIL: ("connection-failed", "no local address or port is free for this"),
    errno.EMFILE: ("connection-failed", "too many open files"),
    errno.ETIMEDOUT: ("timeout", "the server did not answer"),
}


def _connection_failure(error: OSError) -> tuple[str, str]:
    known = CONNECTION_WORDS.get(error.errno or 0)
    return known or ("connection-failed", (error.strerror or type(error).__name__).lower())
