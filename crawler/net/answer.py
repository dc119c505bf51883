"""One answer, read from a connection: its head, and as much of its body as the request wants."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from crawler.model.content_types import SNIFF_LENGTH, is_html, media_type
from crawler.model.messages import ERROR_PAGE_SIZE, ERROR_PAGES, BodyWanted, Request, Response
from crawler.net.codings import BadEncoding, Collector, TooCostly, codings, most_compressed
from crawler.net.deadline import Deadline
from crawler.net.http1 import BadResponse, Body, EarlyClose, Head, Source, TooLarge, read_head

SMALL_BODY = 400 * 1024  # bytes that are read without a reservation of memory
LONGEST_IDLE = 90.0  # seconds; few servers keep a connection for longer
DRAIN_BYTES = 64 * 1024  # an unwanted body this short is read to its end, which is cheaper than a new connection
DRAIN_SECONDS = 1.0
ERROR_PAGE_SECONDS = 5.0  # for the page that comes with an error; without it the error is the same


class BodyMemory(Protocol):
    """A budget of memory for bodies."""

    def grow(self, size: int, limit: int, *, is_robots: bool = False) -> int:
        """Reserve memory for a body of `size` bytes, which may grow to `limit`; waits until there is some.

        Returns the size up to which this need not be called again. The caller's caller releases it.
        """


def read_answer(
    request: Request,
    receive: Callable[[], bytes],
    tick: Callable[[], None],
    memory: BodyMemory | None,
    deadline: Deadline,
    start: float,
) -> tuple[Response, bool, float]:
    """The response, whether the connection can be kept, and for how long.

    `tick` is called now and then while a body is decoded: it looks at the deadline and lets other requests go on.
    """
    source = Source(receive)
    head = read_head(source)
    body = Body(source, head, request.method)
    content, is_cut, is_truncated = b"", False, False
    if body.length == 0:
        for _ in body.pieces():
            pass
    elif _is_wanted(request, head):
        content, is_cut, is_truncated = _collect(request, head, body, tick, _growth(request, memory, deadline))
    elif _is_error_page(request, head):
        content = _collect_error_page(request, head, body, tick, deadline)
    else:
        _drain(body, deadline)
    elapsed = time.monotonic() - start
    response = Response(head.status, head.headers, content, is_cut, elapsed, is_truncated, time.time())
    return response, body.is_exact and head.is_keep_alive, _keep_seconds(head)


def _is_wanted(request: Request, head: Head) -> bool:
    if request.wanted is BodyWanted.ANYTHING:
        return True
    if request.wanted is BodyWanted.NOTHING or not 200 <= head.status <= 299:
        return False
    if request.wanted is BodyWanted.FILE:
        return True
    content_type = head.headers.get("content-type")
    return media_type(content_type) is None or is_html(content_type)


def _is_error_page(request: Request, head: Head) -> bool:
    return (
        request.wanted is BodyWanted.HTML and head.status in ERROR_PAGES and is_html(head.headers.get("content-type"))
    )


def _collect_error_page(
    request: Request, head: Head, body: Body, tick: Callable[[], None], deadline: Deadline
) -> bytes:
    """The beginning of an error's page. Nothing that is wrong with it changes the answer, which is the error."""
    deadline.shorten(ERROR_PAGE_SECONDS)
    try:
        content, is_cut, _ = _collect(replace(request, limit=ERROR_PAGE_SIZE), head, body, tick, None)
    except (OSError, BadResponse, TooLarge, EarlyClose, BadEncoding, TooCostly):
        body.is_exact = False
        return b""
    if is_cut:
        body.is_exact = False  # the rest of it is still to come
    return content


def _growth(request: Request, memory: BodyMemory | None, deadline: Deadline) -> Callable[[int], int] | None:
    """The reservation of memory for this request's body. The wait for it is no fault of the server."""
    if memory is None:
        return None

    def grow(size: int) -> int:
        before = time.monotonic()
        covered = memory.grow(size, request.limit, is_robots=request.wanted is BodyWanted.ANYTHING)
        deadline.extend(time.monotonic() - before)
        return covered

    return grow


def _collect(
    request: Request, head: Head, body: Body, tick: Callable[[], None], grow: Callable[[int], int] | None
) -> tuple[bytes, bool, bool]:
    """The body, whether it was cut at the limit, and whether its compressed stream ended too early."""
    applied = codings(head.headers.get("content-encoding")) + codings(",".join(body.transfer_codings))
    collector = Collector(applied, request.limit, tick, grow, SMALL_BODY)
    is_unsure = request.wanted is BodyWanted.HTML and media_type(head.headers.get("content-type")) is None
    most_on_wire = most_compressed(request.limit)
    on_wire = 0
    is_to_the_end = False
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
        else:
            is_to_the_end = True
    except TooLarge:
        if not collector.size or body.is_complete:
            raise
        collector.is_cut = True
    if applied and on_wire and not collector.size and not collector.is_whole:
        raise BadEncoding("the compressed body ended before anything came out of it")
    is_truncated = bool(applied and on_wire and is_to_the_end and not collector.is_whole)
    return collector.body(), collector.is_cut, is_truncated


def _drain(body: Body, deadline: Deadline) -> None:
    """Read a short unwanted body to its end, to keep the connection. If that fails, the connection is closed."""
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
    """Seconds for which the server keeps the connection by its own word, less one for the network."""
    hint = head.headers.get("keep-alive")
    if hint is not None:
        _, found, rest = hint.lower().partition("timeout=")
        digits = rest.partition(",")[0].strip()
        if found and digits.isascii() and digits.isdigit():
            return min(LONGEST_IDLE, int(digits[:6]) - 1.0)
    return LONGEST_IDLE
