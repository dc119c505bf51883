"""The HTTP client of the crawler: one `send` is at most one request on the wire, and never raises.

Sockets and `ssl` are used directly. An HTTP library would hide the deadline that every step must keep, re-send on a
dead connection without a word (one request is one entry in the ledger), and cost two to three times the CPU
(docs/dependencies.md).
"""

from __future__ import annotations

import re
import time

import ada_url

from crawler.model.messages import Answer, Failure, Request, Response
from crawler.model.settings import NetworkSettings
from crawler.net.answer import BodyMemory, read_answer
from crawler.net.connection import Connector, Origin
from crawler.net.deadline import Deadline
from crawler.net.failures import EXPECTED, describe
from crawler.net.http1 import BadResponse
from crawler.net.hub import BlockingWaiter, SocketWaiter
from crawler.net.idle import IdleConnections
from crawler.net.resolver import AddressResolver
from crawler.net.tls import tls_context

ACCEPT = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.1"
ACCEPT_ENCODING = "gzip, deflate, br, zstd"
MOST_ADDRESSES = 4  # addresses of one host that are tried
_NOT_IN_A_VALUE = re.compile(r"[^\t\x20-\x7e\x80-\xff]")  # of a header


class HttpClient:
    """Sends requests and keeps connections for the next ones. Safe to use from many threads, or in a `Hub`.

    Invariants: a connection carries one request at a time; it is kept only after its answer was read to the last
    byte and nothing else came; one `send` is at most one request on the wire.
    """

    def __init__(
        self,
        network: NetworkSettings,
        user_agent_header: str,
        *,
        resolver: AddressResolver | None = None,
        waiter: SocketWaiter | None = None,
        memory: BodyMemory | None = None,
    ) -> None:
        agent = user_agent_header.encode("utf-8").decode("latin-1")
        if any(ord(character) < 32 or ord(character) == 127 for character in agent):
            raise ValueError("the user agent contains control characters")
        self._total_timeout = network.total_timeout / 1000
        self._read_timeout = network.read_timeout / 1000
        self._connect_timeout = network.connect_timeout / 1000
        self._resolver = resolver or AddressResolver(network)
        self._waiter = waiter or BlockingWaiter()
        self._memory = memory
        self._connector = Connector(tls_context(network), self._waiter, self._connect_timeout)
        self._idle = IdleConnections(network.max_idle_connections)
        self._common = f"User-Agent: {agent}\r\nAccept: {ACCEPT}\r\nAccept-Encoding: {ACCEPT_ENCODING}\r\n\r\n".encode(
            "latin-1"
        )

    @property
    def idle_connections(self) -> int:
        return len(self._idle)

    def send(self, request: Request) -> Answer:
        """Put one request on the wire and return its answer, or the reason why there is none."""
        start = time.monotonic()
        try:
            return self._exchange(request, start)
        except EXPECTED as error:
            slug, words = describe(error)
            return Failure(slug, words, elapsed=time.monotonic() - start)

    def forget_failed_names(self) -> None:
        """Look names up again that were not found."""
        self._resolver.forget_failures()

    def close(self) -> None:
        """Close the connections at rest and cancel look-ups. A connection in use closes when its request ends."""
        self._idle.close()
        self._resolver.close()

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exchange(self, request: Request, start: float) -> Response:
        origin, line = _request_line(request)
        deadline = Deadline(self._total_timeout, self._read_timeout)
        connection = self._idle.pop(origin)
        if connection is None:
            endpoints = self._resolver.addresses(*origin, self._waiter, deadline.left(self._connect_timeout))
            connection = self._connector.connect(origin, endpoints[:MOST_ADDRESSES], deadline)
        is_kept = False
        try:
            connection.send(line + self._common, deadline)
            response, is_kept, keep = read_answer(
                request, connection.receive, connection.give_way, self._memory, deadline, start
            )
            connection.reuse_until(time.monotonic() + keep)
            return response
        finally:
            if is_kept:
                self._idle.put(connection)
            else:
                connection.close()


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
    conditions = "".join([f"{name}: {_checked(value)}\r\n" for name, value in request.conditions])
    host, port = authority, 443
    if ":" in authority and not authority.endswith("]"):
        host, _, digits = authority.rpartition(":")
        port = int(digits)
    return (host.strip("[]").rstrip("."), port), line.encode("ascii") + conditions.encode("latin-1")


def _checked(value: str) -> str:
    """The value of a header, which cannot break out of its line (RFC 9110, 5.5)."""
    if _NOT_IN_A_VALUE.search(value):
        raise BadResponse("a header's value with control characters")
    return value
