"""The result logs as spools: a folder for each writer under `spool/results`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from crawler.workspace.atomic import sync_file, write_atomically
from crawler.workspace.files import spool
from crawler.workspace.files.layout import Layout, safe_name
from crawler.workspace.log import BEGINNING, Cursor, Damage, Line, OnDamage


class ResultSpools:
    """See `crawler.workspace.door.ResultLogs`."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def writers(self) -> list[str]:
        try:
            return sorted(entry.name for entry in os.scandir(self._layout.results) if entry.is_dir())
        except FileNotFoundError:
            return []

    def writer(
        self,
        name: str,
        *,
        segment_bytes: int,
        before_sync: Callable[[], None] | None = None,
        gathers: bool = False,
    ) -> spool.Writer:
        folder = self._layout.results_of(name)
        if before_sync is None:
            return spool.Writer(folder, segment_bytes=segment_bytes)
        return spool.Writer(folder, segment_bytes=segment_bytes, before_sync=before_sync)

    def reader(
        self,
        name: str,
        start: Cursor = BEGINNING,
        on_damage: OnDamage | None = None,
        *,
        will_sync: bool = False,
        is_live_only: bool = False,
    ) -> spool.Reader:
        return spool.Reader(self._layout.results_of(name), start, on_damage, will_sync=will_sync)

    def end(self, name: str) -> Cursor:
        return spool.end_of(self._layout.results_of(name))

    def unread_bytes(self, positions: Mapping[str, Cursor]) -> int:
        size = 0
        for name in self.writers():
            reader = self.reader(name, positions.get(name, BEGINNING))
            try:
                size += reader.unread_bytes()
            finally:
                reader.close()
        return size

    def is_line_end(self, name: str, cursor: Cursor) -> bool:
        """A line ends there (its newline may be damaged), or the segment does (with a torn line, if its writer was
        killed), or the segment has been removed since.
        """
        folder = self._layout.results_of(name)
        if cursor > spool.end_of(folder):
            return False
        try:
            with spool.segment_path(folder, cursor.segment).open("rb") as file:
                file.seek(max(cursor.offset - 1, 0))
                around = file.read(2)
        except FileNotFoundError:
            return True
        return cursor.offset == 0 or around[:1] in (b"\n", b"}") or len(around) == 1

    def segments(self, name: str) -> list[int]:
        return spool.segments(self._layout.results_of(name))

    def segment_lines(self, name: str, number: int, on_damage: OnDamage | None = None) -> Iterator[Line]:
        return spool.segment_lines(self._layout.results_of(name), number, on_damage)

    def last_line(self, name: str, number: int) -> Line | None:
        last: Line | None = None
        for line in self.segment_lines(name, number):
            last = line
        return last

    def segment_damage(self, name: str, line: Line, reason: str) -> Damage:
        return spool.line_damage(self._layout.results_of(name), line, reason)

    def segment_bytes(self, name: str, number: int) -> int:
        try:
            return spool.segment_path(self._layout.results_of(name), number).stat().st_size
        except FileNotFoundError:
            return 0

    def make_durable(self, name: str, numbers: Iterable[int]) -> None:
        for number in numbers:
            with suppress(FileNotFoundError):
                sync_file(spool.segment_path(self._layout.results_of(name), number))

    def remove_segment(self, name: str, number: int) -> None:
        spool.remove_segment(self._layout.results_of(name), number)

    def archive(self, segments: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
        """They are files already."""
        return iter(())

    def quarantine(self, name: str, damage: Damage) -> str:
        path = self._layout.quarantine / f"{safe_name(name)}-{damage.segment:012d}-{damage.offset:012d}.bad"
        write_atomically(path, damage.raw)
        return str(path)
