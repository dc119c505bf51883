"""Released jobs on disk: one small segment a window, in a folder a domain.

A segment is written once and whole, read by whichever fetcher has the domain's lease, and removed as soon as none
of its pages waits any more. Nothing here is synced: what a crash loses is released again from the frontier table.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson
from filelock import FileLock, Timeout

from crawler.model.records import Job, RecordError, dump, parse
from crawler.workspace.atomic import write_atomically
from crawler.workspace.layout import Workspace, WorkspaceError
from crawler.workspace.spool import Cursor, Reader, SpoolError, Writer, end_of, segment_path, segments

_EPOCH = 1_000_000  # segments that an epoch has numbers for


class JobSpools:
    """The scheduler's end of `spool/jobs`. Segment numbers are never used twice: bookmarks outlive segments."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._epoch = 0
        self._in_epoch = 0
        self._to_clean: set[str] = set()  # folders that may be empty
        self._begin_epoch()

    def write(self, domain: str, jobs: Sequence[Job]) -> int:
        """Release these jobs; returns their segment's number. Raises WorkspaceError or SpoolError."""
        try:
            writer = Writer(self.workspace.jobs_of(domain), first=self._next_number(), durable=False)
            end = writer.append_all(dump(job) for job in jobs)
            writer.close()
        except SpoolError:
            raise
        except OSError as problem:
            raise WorkspaceError(f"cannot write jobs: {problem.strerror}: {problem.filename}") from None
        return end.segment

    def read_back(self) -> Iterator[tuple[Path, int, list[Job]]]:
        """Every segment that is there: its folder, its number and those of its jobs that can be read."""
        for folder in self._folders():
            self._to_clean.add(folder.name)
            for number in segments(folder):
                yield folder, number, list(_jobs(folder, number))

    def remove(self, domain: str, number: int) -> None:
        """None of this segment's pages waits any more."""
        folder = self.workspace.jobs_of(domain)
        self._to_clean.add(folder.name)
        remove_segment(folder, number)

    def is_worked_off(self, domain: str) -> bool:
        """Has a fetcher moved its bookmark behind everything that is in this domain's folder?"""
        folder = self.workspace.jobs_of(domain)
        try:
            fields = orjson.loads((folder / "bookmark.json").read_bytes())
            return Cursor(int(fields["segment"]), int(fields["offset"])) >= end_of(folder)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def remove_all(self) -> None:
        """At the end of a run no job is left to do."""
        for folder in self._folders():
            self._to_clean.add(folder.name)
            for number in segments(folder):
                remove_segment(folder, number)
        self.clean()

    def clean(self) -> None:
        """Remove folders without jobs, unless a fetcher is still in one: it writes its bookmark there."""
        for name in list(self._to_clean):
            folder = self.workspace.jobs / name
            if segments(folder):
                self._to_clean.discard(name)
                continue
            lease = FileLock(self.workspace.leases / f"{name}.lock")
            try:
                lease.acquire(timeout=0)
            except (Timeout, OSError):
                continue
            try:
                shutil.rmtree(folder, ignore_errors=True)
                self._to_clean.discard(name)
            finally:
                lease.release()

    def _folders(self) -> list[Path]:
        try:
            return sorted(Path(entry.path) for entry in os.scandir(self.workspace.jobs) if entry.is_dir())
        except FileNotFoundError:
            return []

    def _begin_epoch(self) -> None:
        """Start on numbers that no segment ever had."""
        newest = max((number for folder in self._folders() for number in segments(folder)), default=0)
        self._epoch = max(self._epoch, newest // _EPOCH)
        try:
            stored = int(orjson.loads(self.workspace.scheduler_file.read_bytes())["epoch"])
            self._epoch = max(self._epoch, stored)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        self._epoch += 1
        self._in_epoch = 0
        write_atomically(self.workspace.scheduler_file, orjson.dumps({"v": 1, "epoch": self._epoch}))

    def _next_number(self) -> int:
        self._in_epoch += 1
        if self._in_epoch >= _EPOCH:
            self._begin_epoch()
            self._in_epoch = 1
        return self._epoch * _EPOCH + self._in_epoch


def remove_segment(folder: Path, number: int) -> None:
    segment_path(folder, number).unlink(missing_ok=True)


def remove_segments_below(folder: Path, number: int) -> None:
    """Remove older segments of a spool that is only ever tailed."""
    for older in segments(folder):
        if older < number:
            remove_segment(folder, older)


def _jobs(folder: Path, number: int) -> Iterator[Job]:
    """The readable jobs of one segment; what is not readable will be released again."""
    reader = Reader(folder, Cursor(number, 0))
    try:
        for line in reader:
            if line.end.segment != number:
                return
            try:
                record = parse(line.body)
            except RecordError:
                continue
            if isinstance(record, Job):
                yield record
    finally:
        reader.close()
