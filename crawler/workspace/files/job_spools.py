"""Released jobs on disk: one small segment for each window, in one folder for each domain, beside its bookmark.

A segment is written once and whole, read by the fetcher that holds the domain, and removed as soon as none of its
pages waits any more. Nothing here is synced: jobs that a crash loses are released again from the frontier table.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from crawler.model.records import Job, dump
from crawler.workspace.atomic import read_own, write_atomically
from crawler.workspace.bookmarks import Bookmark, dump_bookmark, is_whole, parse_bookmark, parse_bookmarks
from crawler.workspace.door import WorkspaceError
from crawler.workspace.files.layout import Layout
from crawler.workspace.files.leases import remove_lease, try_lease
from crawler.workspace.files.spool import Writer, end_of, remove_segment, segment_lines, segments
from crawler.workspace.log import LogError
from crawler.workspace.reading import parse_lines
from crawler.workspace.seals import sealed, unsealed

BOOKMARK = "bookmark.json"
_EPOCH = 1_000_000  # segment numbers in an epoch
_MOST_EPOCHS = 900_000  # the name of a segment has twelve digits

log = logging.getLogger("sumi.workspace")


def read_bookmark(folder: Path, newest: int | None = None, *, reports_damage: bool = False) -> Bookmark:
    """The newest sound bookmark of a domain's job folder; the beginning if there is none.

    `newest` is the greatest number that a segment can have: a bookmark past it is damaged, whatever its checksum says
    (those of older programs have none).
    """
    try:
        content = read_own(folder / BOOKMARK)
    except OSError:
        return Bookmark()
    found = parse_bookmarks(content)
    sound = [each for each in found if newest is None or each.jobs.segment <= newest]
    if reports_damage and (not is_whole(content) or sound != found):
        log.warning("The bookmark %s is damaged; the jobs are read from the one before", folder / BOOKMARK)
    return sound[0] if sound else Bookmark()


def write_bookmark(folder: Path, bookmark: Bookmark, *, is_first: bool = True) -> None:
    """Replace the bookmark, durably. The one before is kept with it. See `Workspace.save_bookmarks`."""
    try:
        before = parse_bookmark(read_own(folder / BOOKMARK))
    except OSError:
        before = None
    try:
        write_atomically(folder / BOOKMARK, dump_bookmark(bookmark, before), sync_name=is_first)
    except FileNotFoundError:
        pass  # the whole folder is gone: all its jobs are done


def newest_number(layout: Layout) -> int | None:
    """The greatest number that a segment of jobs can have now; None: not known."""
    epoch = _stored_epoch(layout)
    return None if epoch is None else (epoch + 1) * _EPOCH


def _stored_epoch(layout: Layout) -> int | None:
    """The epoch that the last scheduler began; None if nothing sound says so."""
    try:
        epoch = int(orjson.loads(unsealed(read_own(layout.scheduler_file)) or b"")["epoch"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return epoch if 0 <= epoch < _MOST_EPOCHS else None


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
        bookmark = read_bookmark(folder, self._epoch * _EPOCH + self._in_epoch)
        return (folder / BOOKMARK).exists() and bookmark.jobs >= end_of(folder)

    def remove_all(self) -> None:
        """Remove every segment: at the end of a run all jobs are done."""
        for folder in self._folders():
            self._to_clean.add(folder.name)
            for number in segments(folder):
                remove_segment(folder, number)
        self.clean()

    def clean(self) -> None:
        """Remove folders without jobs, and their leases, unless a fetcher is still in one: it writes its bookmark."""
        for name in list(self._to_clean):
            folder = self._layout.jobs / name
            if segments(folder):
                self._to_clean.discard(name)
                continue
            path = self._layout.leases / f"{name}.lock"
            lease = try_lease(path)
            if lease is None:
                continue
            shutil.rmtree(folder, ignore_errors=True)
            self._to_clean.discard(name)
            remove_lease(path, lease)

    def _folders(self) -> list[Path]:
        try:
            return sorted(Path(entry.path) for entry in os.scandir(self._layout.jobs) if entry.is_dir())
        except FileNotFoundError:
            return []

    def _begin_epoch(self) -> None:
        """Begin with numbers that no segment ever had."""
        stored = _stored_epoch(self._layout)
        folders = self._folders()
        used = [number for folder in folders for number in segments(folder)]
        if stored is None:  # then the bookmarks tell which numbers were used
            used += [read_bookmark(folder).jobs.segment for folder in folders]
        epochs = [number // _EPOCH for number in used if number // _EPOCH < _MOST_EPOCHS]
        self._epoch = max(self._epoch, stored or 0, *epochs) + 1 if epochs else max(self._epoch, stored or 0) + 1
        self._in_epoch = 0
        write_atomically(self._layout.scheduler_file, sealed(orjson.dumps({"v": 1, "epoch": self._epoch})))

    def _next_number(self) -> int:
        self._in_epoch += 1
        if self._in_epoch >= _EPOCH:
            self._begin_epoch()
            self._in_epoch = 1
        return self._epoch * _EPOCH + self._in_epoch
