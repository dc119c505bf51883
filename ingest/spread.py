"""Depths spread over the recorded links: a page that comes nearer brings its targets nearer, and so on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from crawler.database.format import LINK_NOT_FOLLOWED, LINK_REDIRECT
from crawler.model.origins import Origin
from crawler.model.urls import hash64
from crawler.rules.lists import DomainClass
from ingest.deciding import StateDecider
from ingest.entering import PageEntries
from ingest.held import HeldResults
from ingest.memory.map_rows import MapPage
from ingest.memory.page_index import OTHER, VISITED
from ingest.writing.store import Store


class DepthSpread:
    """`reach_all` for the targets of followed links, `spread` when a batch is applied.

    `on_open` is called by `spread` for a page that opens while a result of it is held.
    """

    def __init__(
        self,
        store: Store,
        decider: StateDecider,
        held: HeldResults,
        entries: PageEntries,
        on_open: Callable[[MapPage], None],
    ) -> None:
        self._store = store
        self._decider = decider
        self._held = held
        self._entries = entries
        self._on_open = on_open
        self._index = store.index
        self._distances = store.distances
        self._spreading: dict[int, None] = {}  # visited pages whose depths changed, in the order they did
        self._opening: deque[MapPage] = deque()  # pages whose held result now counts

    def reach_all(self, numbers: Sequence[int], arriving: int) -> None:
        """A followed path with this reach leads to each of these pages."""
        index, distances = self._index, self._distances
        loaded, standings, reaches = self._store.loaded, index.standings, index.reaches
        entered = self._store.changes.entered
        become: dict[int, int] = {}  # reach number → reach number with this path
        whole: list[int] = []
        nearer = index.pages_brought_nearer(numbers, arriving)
        if entered:
            whole += self._entries.bring_nearer([number for number in nearer if number in entered], arriving)
            nearer = [number for number in nearer if number not in entered]
        for number in nearer:
            before = reaches[number]
            # Of most pages that come nearer only the depths change: that needs no row.
            if before and standings[number] != OTHER and number not in loaded:
                after = become.get(before)
                if after is None:
                    after = index.reach_number(distances.merge(index.values[before], arriving))
                    become[before] = after
                if after:
                    self._store.move(number, after)
                    if standings[number] == VISITED:
                        self._spreading[number] = None
                    continue
            whole.append(number)
        merged: dict[int, tuple[int, int, int | None]] = {}  # reach → reach with this path, its number, its least depth
        for page in self._store.pages(whole):
            # With its first path a page also gets the reach of lying inside quality entries.
            known = page.reach or page.pin
            found = merged.get(known)
            if found is None:
                reach = distances.merge(known, arriving)
                found = merged[known] = reach, index.reach_number(reach), distances.nearest(reach)
            if found[0] != page.reach:
                self._reach(page, *found)
        self._store.flush_moves()

    def reach_unlinked(self, numbers: Sequence[int], origin: Origin, run: int) -> None:
        """Pages that are known without a link. Inside a quality entry they have depth 0; elsewhere only a link leads
        there.
        """
        index = self._index
        for page in self._store.pages(index.unlinked_among(numbers)):
            self._store.set_origin(page, origin)
        domains = [
            self._store.domain(index.domain_names[number], run) for number in {index.domains[n] for n in numbers}
        ]
        quality = {domain.id for domain in domains if domain.klass is DomainClass.QUALITY}
        inside = [number for number in numbers if index.domains[number] in quality]
        if any(domain.parts for domain in domains):
            inside = [page.id for page in self._store.pages(inside) if page.pin]
        self.reach_all(inside, self._distances.start)

    def let_in(self, numbers: Sequence[int]) -> None:
        """Pages that are to be visited by a recorded decision; those without a depth pass none on."""
        for page in self._store.pages(numbers):
            if self._decider.let_in(page) and page.visited is None:
                self._open_if_held(page)

    def _reach(self, page: MapPage, reach: int, reach_number: int, nearest: int | None) -> None:
        """Set the page's depths."""
        was_past_redirect_limit = page.reach and self._decider.is_past_redirect_limit(page)
        page.reach = reach
        self._index.reaches[page.id] = reach_number
        if page.domain.is_listed:  # its state stays, however near it is
            page.depth = nearest
            self._store.touch(page)
        elif nearest != page.depth or page.visited is None:
            page.depth = nearest
            self._decider.decide(page)
        else:  # the state depends on the least depth alone (an unvisited page may have been closed in the database)
            self._store.touch(page)
        if was_past_redirect_limit and not self._decider.is_past_redirect_limit(page):
            self._decider.judge_redirects(page)  # the chains that end here are no longer too long
        if page.visited is not None:
            self._spreading[page.id] = None
        elif self._held.hashes:
            self._open_if_held(page)

    def _open_if_held(self, page: MapPage) -> None:
        if self._held.hashes and hash64(page.key) in self._held.hashes and self._decider.is_open(page):
            self._opening.append(page)

    def spread(self, run: int) -> None:
        """Carry changed depths on over the recorded links of this run, until nothing changes any more."""
        arrival = self._distances.arrival
        while self._spreading or self._opening:
            if self._opening:
                self._on_open(self._opening.popleft())
                continue
            number = next(iter(self._spreading))
            del self._spreading[number]
            kind, targets = self._store.out_links(number, run)
            if kind != LINK_NOT_FOLLOWED:
                self.reach_all(targets, arrival(self._store.reach_of(number), kind == LINK_REDIRECT))
