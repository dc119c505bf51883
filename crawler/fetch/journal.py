"""What a fetcher writes down: its result spool, made durable in groups, and the bookmarks that follow.

    append ──▶ fsync, one for a whole group ──▶ the domain's bookmark moves behind the job

Three places in a domain's jobs say how far it is on that way: `done` (its result is appended), `synced` (an fsync
has returned for it) and `bookmark` (so it is written beside the jobs, for whoever takes over).

Every bookmark is a file of its own, to be made durable, and under load a disk takes ten milliseconds for that, or
thirty. But it makes many durable in the same time as one: so bookmarks are written together, by a few threads.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

from crawler.fetch.lease import Domain
from crawler.pace.gate_record import LedgerMark
from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.door import Workspace
from crawler.workspace.log import Cursor

SYNC_EVERY = 0.4  # seconds
BOOKMARK_EVERY = 60.0  # an fsync for every domain; whoever takes over reads what was written since
BOOKMARK_LAG = 8 * 1024 * 1024  # bytes of results that a takeover should have to read of others, at most
RING_EVERY = 0.1
WRITERS = 16  # threads for bookmarks, which do nothing but wait for the disk


class TooLate(Exception):
    """The process is ending and its result spool is closed: the visit will be made again."""


class Results:
    """One fetcher's result spool. Any thread appends; the main thread syncs and moves bookmarks.

    Invariants:
    - a domain's `done` moves under the same lock as its result is appended;
    - `synced` is behind no job whose result is not durable, unless the fsync for it is under way, and then nobody
      looks: the main thread waits for it, and takes it back if it fails;
    - `bookmark` is never ahead of `synced`;
    - no other lock is taken while the spool's is held.
    """

    def __init__(
        self, workspace: Workspace, name: str, number: int, segment_bytes: int, ring_ingest: Callable[[], None]
    ) -> None:
        self.name = name
        self.number = number
        self._ring_ingest = ring_ingest
        self._workspace = workspace
        self._writer = workspace.results.writer(name, segment_bytes=segment_bytes)
        self._writing = threading.Lock()
        self._bookmarking = ThreadPoolExecutor(WRITERS, "bookmark")
        self._dirty: set[Domain] = set()  # their `done` has moved since the last sync
        self._is_unsynced = False
        self._is_closed = False
        self._synced_at = self._marked_at = self._rang_at = 0.0

    # -- for every thread ----------------------------------------------------------------------------

    def append(self, body: bytes, *, settles: Domain | None = None) -> Cursor:
        """Append a record; the cursor behind it. With the result of a domain's job that job is settled."""
        with self._writing:
            if self._is_closed:
                raise TooLate
            self._is_unsynced = True
            end = self._writer.append(body)
            if settles is not None:
                settles.done = settles.job_end
                self._dirty.add(settles)
            return end

    def step_over(self, domain: Domain) -> None:
        """The domain's job needs no result: it is settled as it is."""
        with self._writing:
            domain.done = domain.job_end
            self._dirty.add(domain)
            self._is_unsynced = True

    def mark(self) -> LedgerMark:
        """The end of the spool, as a gate keeps it."""
        with self._writing:
            end = self._writer.end
        return LedgerMark(self.number, end.segment, end.offset)

    def tell_ingest(self, *, more_to_come: bool) -> None:
        """Wake the ingest, but not for every page while there are more to come: then one of those wakes it."""
        now = time.monotonic()
        if not more_to_come or now - self._rang_at >= RING_EVERY:
            self._rang_at = now
            self._ring_ingest()

    # -- for the main thread -------------------------------------------------------------------------

    def patience(self) -> float:
        """For how many seconds `keep_up` need not be asked."""
        return SYNC_EVERY / 2 if self._is_unsynced else math.inf

    def keep_up(self, now: float, domains: Collection[Domain]) -> None:
        """Sync and move these domains' bookmarks, if it is time."""
        if self._is_unsynced and now - self._synced_at >= SYNC_EVERY:
            self.sync(now)
        if now - self._marked_at >= BOOKMARK_EVERY:
            self._marked_at = now
            self._move_bookmarks(domains)

    def sync(self, now: float) -> None:
        """Make all results so far durable; only then may bookmarks move behind their jobs.

        What is written behind `end` from now on belongs to jobs behind `done`.
        """
        self._synced_at = now
        with self._writing:
            end = self._writer.end
            for domain in self._dirty:
                domain.synced = Bookmark(domain.done, self.name, end)
            dirty = self._dirty
            self._dirty, self._is_unsynced = set(), False
            finish_sync = self._writer.begin_sync()
        try:
            finish_sync()  # while this waits for the disk, results are appended behind `end`
        except OSError:
            for domain in dirty:
                domain.synced = domain.bookmark
            raise
        self._ring_ingest()

    def adopt(self, domains: Collection[Domain]) -> None:
        """From now on these domains' results are in this spool, and their bookmarks say so."""
        with self._writing:
            end = self._writer.end
        for domain in domains:
            domain.synced = Bookmark(domain.done, self.name, end)
        self.save(domains)

    def save(self, domains: Collection[Domain]) -> None:
        """Move these domains' bookmarks behind all that is durable."""
        self._move([(domain, domain.synced) for domain in domains])

    def make_durable(self, domain: Domain) -> None:
        """Sync, if anything of this idle domain needs it."""
        if domain in self._dirty:
            self.sync(time.monotonic())

    def release(self, domains: Collection[tuple[Domain, bool]]) -> None:
        """Save domains that are let go. Unless one is in order, the next fetcher looks into this spool first."""
        self._move(
            [
                (domain, replace(domain.synced, holder=None if is_in_order else self.name))
                for domain, is_in_order in domains
            ]
        )

    def close(self) -> None:
        """Sync, and take nothing more."""
        with self._writing:
            self._is_closed = True
            self._writer.close()
        self._bookmarking.shutdown()

    def _move_bookmarks(self, domains: Collection[Domain]) -> None:
        with self._writing:
            end = self._writer.end
            for domain in domains:
                old = domain.synced.results
                is_near = end.segment == old.segment and end.offset - old.offset < BOOKMARK_LAG
                if not is_near and domain not in self._dirty:
                    domain.synced = replace(domain.synced, results=end)
        self.save(domains)

    def _move(self, moves: Collection[tuple[Domain, Bookmark]]) -> None:
        """Let these be the domains' bookmarks, durably. Nobody writes any more when this returns, or raises."""
        due = [(domain, bookmark) for domain, bookmark in moves if bookmark != domain.bookmark]
        if len(due) == 1:
            self._move_one(*due[0])
        elif due:
            under_way = [self._bookmarking.submit(self._move_one, *move) for move in due]
            wait(under_way)
            for one in under_way:
                one.result()

    def _move_one(self, domain: Domain, bookmark: Bookmark) -> None:
        is_first = domain.bookmark.holder != self.name
        self._workspace.save_bookmark(domain.name, bookmark, is_first=is_first)
        domain.bookmark = bookmark
