"""PURE. Content codings, decoded piece by piece with a limit on the output.

A body goes through a chain of stages, outermost coding first. Every stage hands on pieces of at most `PIECE`
bytes, so memory stays flat however far the input expands; the end of the chain stops at the limit.

Work is bounded in every layer, not only at the end of the chain: 190 KB can hold 40 GB of empty deflate blocks inside
two layers of gzip, from which nothing ever comes out. What one layer hands on to the next is compressed data, and may
be no longer than compressed data on the wire; there are at most three layers; a layer has a limited number of parts.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import brotli  # type: ignore[import-untyped]

from crawler.visit.gzip_stream import MOST_PARTS, PIECE, BadEncoding, Gzip, TooCostly

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["PIECE", "STAGES", "BadEncoding", "Collector", "TooCostly", "codings", "most_compressed"]

MOST_CODINGS = 3  # browsers stop early, too, and no honest server needs more than two
TICK = 1024 * 1024  # bytes of work between two looks at the deadline
ZSTD_WINDOW_LOG = 23  # 8 MiB, the largest window that RFC 9659 allows


class Stage(Protocol):
    """One coding. `is_finished` tells whether the compressed stream reached its own end."""

    is_finished: bool

    def pieces(self, data: bytes) -> Iterator[bytes]: ...


class Deflate:
    """`deflate`: zlib as the standard wants it, or raw deflate as many servers send it."""

    def __init__(self) -> None:
        self._stream: Any = None
        self._head = b""
        self.is_finished = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        if self.is_finished:
            return
        if self._stream is None:
            self._head += data
            if len(self._head) < 2:
                return
            data = self._head
            self._stream = zlib.decompressobj(zlib.MAX_WBITS if _is_zlib(data) else -zlib.MAX_WBITS)
        while True:
            try:
                out = self._stream.decompress(data, PIECE)
            except zlib.error as error:
                raise BadEncoding("the deflate data is broken") from error
            if out:
                yield out
            data = self._stream.unconsumed_tail
            if self._stream.eof:
                self.is_finished = True
                return
            if not data and len(out) < PIECE:
                return


def _is_zlib(head: bytes) -> bool:
    return head[0] & 0x0F == 8 and head[0] >> 4 <= 7 and (head[0] << 8 | head[1]) % 31 == 0


class Brotli:
    def __init__(self) -> None:
        self._stream = brotli.Decompressor()
        self.is_finished = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        if self.is_finished:
            return
        while True:
            try:
                out = self._stream.process(data, output_buffer_limit=PIECE)
            except brotli.error as error:
                raise BadEncoding("the brotli data is broken") from error
            if out:
                yield out
            data = b""
            if self._stream.is_finished():
                self.is_finished = True
                return
            # It may accept input while it still holds output.
            if not out and self._stream.can_accept_more_data():
                return


class Zstd:
    """zstd, several frames too."""

    def __init__(self) -> None:
        self._frames = 0
        self._begin_frame()

    def _begin_frame(self) -> None:
        self._frames += 1
        if self._frames > MOST_PARTS:
            raise TooCostly(f"more than {MOST_PARTS:,} zstd frames in one body")
        options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG}
        self._stream = zstd.ZstdDecompressor(options=options)
        self.is_finished = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        if self.is_finished:
            if not data:
                return
            self._begin_frame()
        while True:
            try:
                out = self._stream.decompress(data, max_length=PIECE)
            except zstd.ZstdError as error:
                raise BadEncoding("the zstd data is broken") from error
            if out:
                yield out
            data = b""
            if self._stream.eof:
                data = self._stream.unused_data
                if not data:
                    self.is_finished = True
                    return
                self._begin_frame()
            elif self._stream.needs_input:
                return


STAGES: dict[str, type[Gzip] | type[Deflate] | type[Brotli] | type[Zstd]] = {
    "gzip": Gzip,
    "x-gzip": Gzip,
    "deflate": Deflate,
    "br": Brotli,
    "zstd": Zstd,
}


def codings(header: str | None) -> list[str]:
    """The codings of a Content-Encoding that must be decoded, in the order they were applied.

    Unknown names (`none`, `utf-8`, …) are ignored, as browsers ignore them.
    """
    if not header:
        return []
    names = [name.strip().lower() for name in header.split(",")]
    return [name for name in names if name in STAGES]


def most_compressed(limit: int) -> int:
    """The longest compressed form of a body of at most `limit` bytes that is read."""
    return limit + limit // 8 + PIECE


class Collector:
    """The end of the chain: the decoded body, never longer than `limit`. `is_cut` once there was more.

    `tick` is called after every megabyte of work, in whatever layer; it may raise. `grow` is called with the body's
    size whenever that exceeds what `grow` returned before, first with more than `free` bytes; it may wait.
    """

    def __init__(
        self,
        applied: Iterable[str],
        limit: int,
        tick: Callable[[], None] | None = None,
        grow: Callable[[int], int] | None = None,
        free: int = 0,
    ) -> None:
        names = list(applied)
        if len(names) > MOST_CODINGS:
            raise BadEncoding(f"{len(names)} codings on top of each other")
        self._stages: list[Stage] = [STAGES[name]() for name in reversed(names)]
        self._limit = limit
        self._tick = tick
        self._grow = grow
        self._covered = free if grow is not None else limit
        self._work = 0  # bytes since the last tick
        # Bytes that each layer but the last may still hand on.
        self._allowance = [most_compressed(limit)] * len(self._stages)
        self._parts: list[bytes] = []
        self.size = 0
        self.is_cut = False

    def feed(self, data: bytes) -> bool:
        """Decode these bytes. False: the limit is reached and no more are wanted."""
        if not self._stages:
            return self._keep(data)
        return self._run(0, data)

    def _run(self, index: int, data: bytes) -> bool:
        is_last = index + 1 == len(self._stages)
        self._count(len(data))
        for piece in self._stages[index].pieces(data):
            self._count(len(piece))
            if not is_last:
                self._allowance[index] -= len(piece)
                if self._allowance[index] < 0:
                    raise TooCostly("compressed data inside of compressed data that is longer than the body may be")
            if not (self._keep(piece) if is_last else self._run(index + 1, piece)):
                return False
        return True

    def _count(self, size: int) -> None:
        self._work += size
        if self._work >= TICK:
            self._work = 0
            if self._tick is not None:
                self._tick()

    def _keep(self, piece: bytes) -> bool:
        room = self._limit - self.size
        if len(piece) > room:
            self.is_cut = True
            piece = piece[:room]
        if piece:
            if self._grow is not None and self.size + len(piece) > self._covered:
                self._covered = self._grow(self.size + len(piece))
            self._parts.append(piece)
            self.size += len(piece)
        return not self.is_cut

    @property
    def is_whole(self) -> bool:
        """Did every compressed stream reach its end?"""
        return all(stage.is_finished for stage in self._stages)

    def prefix(self, length: int) -> bytes:
        """The first decoded bytes so far."""
        return b"".join(self._parts[: length + 1])[:length] if self._parts else b""

    def body(self) -> bytes:
        return b"".join(self._parts) if len(self._parts) != 1 else self._parts[0]
