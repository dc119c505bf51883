"""A fetcher's journal: its result log, made durable in groups, and the bookmarks that follow.

    blob ──▶ append ──▶ one sync of the store, one fsync for a whole group ──▶ the domain's bookmark moves past the job

Three positions in a domain's jobs say how far it is on that way: `done` (the result is appended), `synced` (an fsync
has returned for it) and `bookmark` (it is stored, for the fetcher that claims the domain next).

Where bookmarks go with results in one transaction, they move with every group. Elsewhere each of them costs an fsync:
they move once a minute, and a takeover reads the results that were written since.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from crawler.pace.gate_record import LedgerMark
from crawler.workspace.bookmarks import Bookmark, BookmarkMove
from crawler.workspace.door import Workspace
from crawler.workspace.log import Cursor

SYNC_EVERY = 0.4  # seconds
SYNC_STORE_EVERY = 0.5  # … where pages are kept: a sync of the store flushes a whole file system
BOOKMARK_EVERY = 60.0  # an fsync for every domain; a takeover reads the results that were written since
BOOKMARK_LAG = 8 * 1024 * 1024  # bytes of other domains' results that a takeover should have to read, at most
RING_EVERY = 0.1


class JournalClosed(Exception):
    """The process is ending and its result log is closed: the visit will be made again."""


class JobProgress:
    """The three positions of one domain. Owned by the `Journal`, which alone moves them once the domain is adopted.

    Invariant: `bookmark` never passes `synced`, and `synced` never passes `done`.
    """

    __slots__ = ("bookmark", "domain", "done", "synced")

    def __init__(self, domain: str, bookmark: Bookmark) -> None:
        self.domain = domain
        self.bookmark = bookmark
        self.synced = bookmark
        self.done = bookmark.jobs

    def start_at(self, done: Cursor) -> None:
        """A takeover found durable results up to this job. Only before the domain is adopted."""
        self.done = done


class Journal:
    """One fetcher's result log. Any thread appends; the main thread syncs and moves bookmarks.

    Invariants:
    - a domain's `done` moves under the same lock under which its result is appended;
    - `synced` never passes a job whose result is not yet durable, except while the fsync for it is under way: then
      nothing reads it, because the main thread waits for that fsync, and sets `synced` back if it fails;
    - `bookmark` never passes `synced`;
    - no other lock is taken while the log's lock is held.
    """

    def __init__(
        self,
        workspace: Workspace,
        name: str,
        number: int,
        segment_bytes: int,
        ring_ingest: Callable[[], None],
        sync_store: Callable[[], None] | None = None,
    ) -> None:
        """`sync_store` makes the blobs durable that results name; it is called before results are made durable."""
        self.name = name
        self.number = number
        self._ring_ingest = ring_ingest
        self._workspace = workspace
        self._sync_every = SYNC_EVERY if sync_store is None else SYNC_STORE_EVERY
        self._writer = workspace.results.writer(name, segment_bytes=segment_bytes, before_sync=sync_store, gathers=True)
        self._writing = threading.Lock()
        self._dirty: set[JobProgress] = set()  # their `done` has moved since the last sync
        self._is_unsynced = False
        self._is_closed = False
        self._synced_at = self._bookmarked_at = self._rang_at = 0.0

    # -- for every thread ----------------------------------------------------------------------------

    def append(self, body: bytes) -> LedgerMark:
        """Append a record that ends no job; returns the mark after it. Raises JournalClosed."""
        with self._writing:
            return self._append(body)

    def append_result(self, body: bytes, progress: JobProgress, job_end: Cursor) -> LedgerMark:
        """Append the result of the job that ends at `job_end`: the job is done. Raises JournalClosed."""
        with self._writing:
            mark = self._append(body)
            self._finish_job(progress, job_end)
            return mark

    def skip_job(self, progress: JobProgress, job_end: Cursor) -> None:
        """The job that ends at `job_end` needs no result: it is done."""
        with self._writing:
            self._is_unsynced = True
            self._finish_job(progress, job_end)

    def mark(self) -> LedgerMark:
        """The end of the log, as a gate keeps it."""
        with self._writing:
            return self._mark(self._writer.end)

    def wake_ingest(self, *, more_to_come: bool) -> None:
        """Wake the ingest, but not for every page: while more are to come, one of those wakes it.

        What it cannot see yet it is woken for when that is synced.
        """
        if self._writer.is_ahead:
            return
        now = time.monotonic()
        if not more_to_come or now - self._rang_at >= RING_EVERY:
            self._rang_at = now
            self._ring_ingest()

    def _append(self, body: bytes) -> LedgerMark:
        if self._is_closed:
            raise JournalClosed
        self._is_unsynced = True
        return self._mark(self._writer.append(body))

    def _finish_job(self, progress: JobProgress, job_end: Cursor) -> None:
        progress.done = job_end
        self._dirty.add(progress)

    def _mark(self, end: Cursor) -> LedgerMark:
        return LedgerMark(self.number, end.segment, end.offset)

    # -- for the main thread -------------------------------------------------------------------------

    def patience(self) -> float:
        """Seconds until `keep_up` is needed next."""
        return self._sync_every / 2 if self._is_unsynced else math.inf

    def keep_up(self, now: float, domains: Iterable[JobProgress]) -> None:
        """Sync and move these domains' bookmarks, if it is time."""
        if self._is_unsynced and now - self._synced_at >= self._sync_every:
            self.sync(now)
        if now - self._bookmarked_at >= BOOKMARK_EVERY:
            self._bookmarked_at = now
            self._move_bookmarks(list(domains))

    def sync(self, now: float) -> None:
        """Make all results so far durable; only then may bookmarks move past their jobs.

        Results that are appended after `end` belong to jobs after `done`.
        """
        self._synced_at = now
        with self._writing:
            end = self._writer.end
            for progress in self._dirty:
                progress.synced = Bookmark(progress.done, self.name, end)
            dirty = self._dirty
            self._dirty, self._is_unsynced = set(), False
            finish_sync = self._writer.begin_sync()
        moves = [(each, each.synced) for each in dirty] if self._workspace.bookmarks_go_with_results else []
        try:
            self._move(moves, after=finish_sync)  # while this waits for the disk, results are appended after `end`
        except OSError:
            for progress in dirty:
                progress.synced = progress.bookmark
            raise
        self._ring_ingest()

    def adopt(self, domains: Collection[JobProgress]) -> None:
        """From now on these domains' results are in this log, and their bookmarks say so."""
        with self._writing:
            end = self._writer.end
        for progress in domains:
            progress.synced = Bookmark(progress.done, self.name, end)
        self.save(domains)

    def save(self, domains: Collection[JobProgress]) -> None:
        """Move these domains' bookmarks as far as results are durable."""
        self._move([(progress, progress.synced) for progress in domains])

    def make_durable(self, progress: JobProgress) -> None:
        """Sync, if any result of this idle domain needs it."""
        if progress in self._dirty:
            self.sync(time.monotonic())

    def release(self, domains: Collection[tuple[JobProgress, bool]]) -> None:
        """Save domains that are released, each with whether its gate counts every ledger entry.

        The bookmark of a domain that is counted names no holder; else the next fetcher reads this log first.
        """
        self._move(
            [
                (progress, replace(progress.synced, holder=None if is_counted else self.name))
                for progress, is_counted in domains
            ]
        )

    def close(self) -> None:
        """Sync; nothing can be appended any more."""
        with self._writing:
            self._is_closed = True
            self._writer.close()

    def _move_bookmarks(self, domains: Collection[JobProgress]) -> None:
        with self._writing:
            end = self._writer.end
            for progress in domains:
                old = progress.synced.results
                is_near = end.segment == old.segment and end.offset - old.offset < BOOKMARK_LAG
                if not is_near and progress not in self._dirty:
                    progress.synced = replace(progress.synced, results=end)
        self.save(domains)

    def _move(
        self, moves: Collection[tuple[JobProgress, Bookmark]], *, after: Callable[[], None] | None = None
    ) -> None:
        """Call `after`, and store these bookmarks, durably."""
        due = [(progress, bookmark) for progress, bookmark in moves if bookmark != progress.bookmark]
        if due:
            stored = [BookmarkMove(each.domain, new, each.bookmark.holder != self.name) for each, new in due]
            self._workspace.save_bookmarks(stored, after=after)
        elif after is not None:
            after()
        for progress, bookmark in due:
            progress.bookmark = bookmark
