"""Work of a run's end that is done ahead of it, while there is nothing else to do.

When a run ends, its user waits for the indexes for readers, which are made when their tables are complete: that is
cheapest. But in the last seconds of a crawl little is added any more, and the ingest waits for results. Then it makes
one index after the other, of those that an added row joins and a changed one seldom touches.

Only in small maps: in a large one an index takes seconds, in which no result is applied, and its upkeep is dearer. If
it was not the end, and the map goes on growing, the indexes are dropped again. At the end they stay, although the last
results bring many pages, too: to drop them and to make them once more is what the user would wait for.
"""

from __future__ import annotations

from crawler.workspace.runs import RunStatus
from ingest.left_estimate import LeftEstimate
from ingest.writing.store import Store

MOST_PAGES = 300_000  # of the map; an index over so many takes a quarter of a second
MOST_LINKS = 1_000_000  # that the run has seen
_SECONDS = 2.5  # that the run may last, at most, when the first index is made
_GROWING = 1.25  # times the pages that there were then, and the end is not near: it was not the end
_GROWING_AT_END = 2.0  # … and so many times, though it seems near: it has seemed so for long


class WorkAhead:
    """`step` when there is nothing to read; `look` after every batch."""

    def __init__(self, store: Store, left: LeftEstimate) -> None:
        self._store = store
        self._left = left
        self._run = 0
        self._is_over = False  # nothing is left to do ahead in this run, or it was not its end
        self._pages = 0  # of the map, when the first index was made
        if self._is_run_under_way():
            store.drop_indexes_ahead()  # of an ingest that was killed

    def look(self, run: int, now: float) -> None:
        """Is this the end of the run, and still is?"""
        if run != self._run:
            self._run, self._is_over, self._pages = run, False, 0
        self._store.nears_end = self._is_near_end(now)
        growing = _GROWING_AT_END if self._store.nears_end else _GROWING
        if self._pages and self._known_pages() > self._pages * growing:
            self._store.drop_indexes_ahead()
            self._pages = 0
            self._is_over = True

    def step(self, now: float) -> bool:
        """Do a piece of the work; False: there is none now."""
        if self._is_over or not self._is_near_end(now) or not self._is_small() or not self._is_run_under_way():
            return False
        self._pages = self._pages or self._known_pages()
        self._is_over = not self._store.make_index_ahead()
        return not self._is_over

    def _is_near_end(self, now: float) -> bool:
        if not self._store.counts["frontier"]:
            return self._store.counts["crawled"] > 0
        seconds = self._left.seconds(now)
        return seconds is not None and seconds <= _SECONDS

    def _is_small(self) -> bool:
        return self._known_pages() <= MOST_PAGES and self._store.counts["links"] <= MOST_LINKS

    def _known_pages(self) -> int:
        return max(len(self._store.index), self._store.counts["known"])  # the index may not be filled yet

    def _is_run_under_way(self) -> bool:
        return self._store.last_run()[1] == RunStatus.RUNNING
