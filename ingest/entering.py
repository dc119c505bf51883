"""Pages that enter a new run without their rows: known ones that links lead to, and that are not visited by it either.

A run meets many more pages than it visits: what lies too far away, on listed domains, out of scope. They are in the
map from the run before, and the index knows all that their state follows from (`PageIndex.entries`). So they are
decided by their numbers, and written in sets. A page that needs more is loaded like any other, even after it has
entered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crawler.model.settings import Config
from ingest.deciding import StateDecider
from ingest.memory.page_index import BY_ROW, FIXED, OTHER, UNSEEN, standing_of
from ingest.rules.page_state import LISTED_AS
from ingest.writing.store import Store


class PageEntries:
    """`enter` for pages that the run has not seen; `bring_nearer` for those of them that a path leads to."""

    def __init__(self, config: Config, store: Store, decider: StateDecider) -> None:
        self._store = store
        self._index = store.index
        self._distances = store.distances
        self._decider = decider
        self._notes_pages = config.discovery.tries_pages  # by their addresses, which are in their rows
        self._max_depth = config.crawler.max_depth
        self._run = 0
        self._standings: dict[int, int | None] = {}  # domain → that of its pages; None: they differ, by their addresses
        self._pins: dict[int, int] = {}  # domain → the reach of its pages from lying inside quality entries

    def enter_run(self, run: int) -> None:
        self._run = run
        self.end_batch()

    def end_batch(self) -> None:
        """Forget the domains: they may be more than fit into memory."""
        self._standings.clear()
        self._pins.clear()

    def load(self, numbers: Iterable[int]) -> list[int]:
        """Bring the domains of those into memory that can enter the run without their rows. Returns the others that the
        run has not seen.
        """
        index, store = self._index, self._store
        standings, entries, domains = index.standings, index.entries, index.domains
        unseen = [number for number in numbers if standings[number] == UNSEEN]
        if self._notes_pages:
            return unseen
        names = {domains[number]: index.domain_names[domains[number]] for number in unseen}
        store.load_domains(names.values())
        differing = {domain for domain, name in names.items() if store.classifier.classify(name).parts}
        let_in = self._decider.pages_let_in
        return [n for n in unseen if entries[n] == BY_ROW or domains[n] in differing or n in let_in]

    def enter(self, numbers: Sequence[int]) -> Sequence[int]:
        """Let these pages, which the run has not seen, enter it; they have no path there yet. Returns those that have
        not entered, because their rows are needed.
        """
        if self._notes_pages:
            return numbers
        index, loaded, changes = self._index, self._store.loaded, self._store.changes
        entries, domains, reaches, standings = index.entries, index.domains, index.reaches, index.standings
        let_in, known, entered = self._decider.pages_let_in, self._standings, changes.entered
        changes.entered_run = self._run
        left: list[int] = []
        for number in numbers:
            domain = domains[number]
            standing = known[domain] if domain in known else self._enter_domain(domain)
            if standing is None or entries[number] == BY_ROW or number in loaded or number in let_in:
                left.append(number)
            else:
                entered[number] = reaches[number]
                reaches[number] = 0
                standings[number] = standing
        return left

    def _enter_domain(self, number: int) -> int | None:
        domain = self._store.domain(self._index.domain_names[number], self._run)
        standing = standing_of(LISTED_AS[domain.klass], False) if domain.is_listed else OTHER
        self._standings[number], self._pins[number] = None if domain.parts else standing, domain.pin
        return self._standings[number]

    def bring_nearer(self, numbers: Iterable[int], arriving: int) -> list[int]:
        """A path with this reach leads to each of these pages, all of `changes.entered`. Returns those whose rows are
        needed for that: nothing was done about them.
        """
        index, pins = self._index, self._pins
        entries, domains, reaches = index.entries, index.domains, index.reaches
        become: dict[tuple[int, int, int], int] = {}
        left: list[int] = []
        for number in numbers:
            same = reaches[number], entries[number], domains[number]
            after = become.get(same)
            if after is None:
                after = become[same] = self._merged(same[0], same[1], pins[same[2]], arriving)
            if after:
                reaches[number] = after
            else:
                left.append(number)
        return left

    def _merged(self, before: int, entry: int, pin: int, arriving: int) -> int:
        """The number of the reach with this path; 0: it may change more than the depths."""
        distances, was = self._distances, self._index.values[before]
        reach = distances.merge(was or pin, arriving)
        nearest = distances.nearest(reach)
        if entry != FIXED and nearest is not None and nearest <= self._max_depth:
            return 0
        if was and distances.is_past_redirect_limit(was) != distances.is_past_redirect_limit(reach):
            return 0  # chains of redirects end here
        return self._index.reach_number(reach)
