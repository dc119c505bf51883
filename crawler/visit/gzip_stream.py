"""PURE. gzip, decoded piece by piece: of a transfer (`Content-Encoding`), and of a file that is compressed itself."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

PIECE = 64 * 1024
MOST_PARTS = 10_000  # gzip members or zstd frames of one layer; each costs its own set-up


class BadEncoding(Exception):
    """The body does not match its Content-Encoding."""


class TooCostly(Exception):
    """A body that takes more work to decode than any honest one."""


class Gzip:
    """gzip, several members too; garbage after the last member is ignored, as browsers do."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self._members = 0
        self.is_finished = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        if self.is_finished:
            if self._members < 0 or not data:
                return
            self._begin_member()
        while True:
            try:
                out = self._stream.decompress(data, PIECE)
            except zlib.error as error:
                if self._members == 0:
                    raise BadEncoding("the gzip data is broken") from error
                self._members, self.is_finished = -1, True
                return
            if out:
                yield out
            if self._stream.eof:
                self._members += 1
                data = self._stream.unused_data
                if not data:
                    self.is_finished = True
                    return
                self._begin_member()
                continue
            data = self._stream.unconsumed_tail
            if not data and len(out) < PIECE:
                return

    def _begin_member(self) -> None:
        if self._members > MOST_PARTS:
            raise TooCostly(f"more than {MOST_PARTS:,} gzip members in one body")
        self._stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self.is_finished = False
