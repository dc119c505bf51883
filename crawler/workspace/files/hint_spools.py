"""Logs that are only ever tailed, as spools: `spool/releases`, `spool/feed` and `spool/orders`."""

from __future__ import annotations

from pathlib import Path

from crawler.workspace.files import spool
from crawler.workspace.log import Cursor


class HintSpool:
    """See `crawler.workspace.door.HintLog`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def writer(self, *, segment_bytes: int, durable: bool = False) -> spool.Writer:
        return spool.Writer(self._folder, segment_bytes=segment_bytes, durable=durable)

    def reader(self) -> spool.Reader:
        return spool.Reader(self._folder, spool.end_of(self._folder))

    def whole_reader(self) -> spool.Reader:
        return spool.Reader(self._folder)

    def recent_reader(self) -> spool.Reader:
        return spool.Reader(self._folder, Cursor(spool.end_of(self._folder).segment, 0))

    def remove_before(self, segment: int) -> None:
        spool.remove_segments_before(self._folder, segment)
