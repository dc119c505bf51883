"""Released jobs on disk: one small segment for each window, in one folder for each domain, beside its bookmark.

A segment is written once and whole, read by the fetcher that holds the domain, and removed as soon as none of its
pages waits any more. Nothing here is synced: jobs that a crash loses are released again from the frontier table.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from crawler.model.records import Job, dump
from crawler.workspace.atomic import write_atomically
from crawler.workspace.bookmarks import Bookmark, dump_bookmark, parse_bookmark
from crawler.workspace.door import WorkspaceError
from crawler.workspace.files.layout import Layout
from crawler.workspace.files.leases import try_lease
from crawler.workspace.files.spool import Writer, end_of, remove_segment, segment_lines, segments
from crawler.workspace.log import LogError
from crawler.workspace.reading import parse_lines

BOOKMARK = "bookmark.json"
_EPOCH = 1_000_000  # segment numbers in an epoch


def read_bookmark(folder: Path) -> Bookmark:
    """The bookmark of a domain's job folder; the beginning if there is none that can be read."""
    return _find_bookmark(folder) or Bookmark()


def _find_bookmark(folder: Path) -> Bookmark | None:
    try:
        return parse_bookmark((folder / BOOKMARK).read_bytes())
    except OSError:
        return None


def write_bookmark(folder: Path, bookmark: Bookmark, *, is_first: bool = True) -> None:
    """Replace the bookmark, durably. See `Workspace.save_bookmark`."""
    try:
        write_atomically(folder / BOOKMARK, dump_bookmark(bookmark), sync_name=is_first)
    except FileNotFoundError:
        pass  # the whole folder is gone: all its jobs are done


@dataclass(frozen=True, slots=True)
class JobWindowFile:
    """One released window, as found after a restart."""

    folder: Path
    number: int
    jobs: Sequence[Job]

    def remove(self) -> None:
        remove_segment(self.folder, self.number)


class JobSpools:
    """The scheduler's end of `spool/jobs`. Segment numbers are never used twice, because bookmarks outlive segments."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._epoch = 0
        self._in_epoch = 0
        self._to_clean: set[str] = set()  # folders that may be empty
        self._begin_epoch()

    def write(self, domain: str, jobs: Sequence[Job]) -> int:
        """Release these jobs; returns their segment's number. Raises WorkspaceError or LogError."""
        try:
            writer = Writer(self._layout.jobs_of(domain), first=self._next_number(), durable=False)
            end = writer.append_all(dump(job) for job in jobs)
            writer.close()
        except LogError:
            raise
        except OSError as problem:
            raise WorkspaceError(f"cannot write jobs: {problem.strerror}: {problem.filename}") from None
        return end.segment

    def windows(self) -> Iterator[JobWindowFile]:
        """Every segment that is there, with those of its jobs that can be read."""
        for folder in self._folders():
            self._to_clean.add(folder.name)
            for number in segments(folder):
                # A job that cannot be read is released again.
                jobs = [job for job, _ in parse_lines(segment_lines(folder, number), Job)]
                yield JobWindowFile(folder, number, jobs)

    def remove(self, domain: str, number: int) -> None:
        """None of this segment's pages waits any more."""
        folder = self._layout.jobs_of(domain)
        self._to_clean.add(folder.name)
        remove_segment(folder, number)

    def is_worked_off(self, domain: str) -> bool:
        """Has a fetcher's bookmark passed every job of this domain?"""
        folder = self._layout.jobs_of(domain)
        bookmark = _find_bookmark(folder)
        return bookmark is not None and bookmark.jobs >= end_of(folder)

    def remove_all(self) -> None:
        """Remove every segment: at the end of a run all jobs are done."""
        for folder in self._folders():
            self._to_clean.add(folder.name)
            for number in segments(folder):
                remove_segment(folder, number)
        self.clean()

    def clean(self) -> None:
        """Remove folders without jobs, unless a fetcher is still in one: it writes its bookmark there."""
        for name in list(self._to_clean):
            folder = self._layout.jobs / name
            if segments(folder):
                self._to_clean.discard(name)
                continue
            lease = try_lease(self._layout.leases / f"{name}.lock")
            if lease is None:
                continue
            shutil.rmtree(folder, ignore_errors=True)
            self._to_clean.discard(name)
            lease.release()

    def _folders(self) -> list[Path]:
        try:
            return sorted(Path(entry.path) for entry in os.scandir(self._layout.jobs) if entry.is_dir())
        except FileNotFoundError:
            return []

    def _begin_epoch(self) -> None:
        """Begin with numbers that no segment ever had."""
        newest = max((number for folder in self._folders() for number in segments(folder)), default=0)
        self._epoch = max(self._epoch, newest // _EPOCH)
        try:
            stored = int(orjson.loads(self._layout.scheduler_file.read_bytes())["epoch"])
            self._epoch = max(self._epoch, stored)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        self._epoch += 1
        self._in_epoch = 0
        write_atomically(self._layout.scheduler_file, orjson.dumps({"v": 1, "epoch": self._epoch}))

    def _next_number(self) -> int:
        self._in_epoch += 1
        if self._in_epoch >= _EPOCH:
            self._begin_epoch()
            self._in_epoch = 1
        return self._epoch * _EPOCH + self._in_epoch
