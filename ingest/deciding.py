"""The state of a page, from its row, its domain, its family and the recorded redirects (`rules.page_state`)."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from crawler.model.records import FamilyEvent
from crawler.model.settings import Config
from crawler.model.states import PageState, check_transition
from crawler.model.urls import hash64
from crawler.rules.page_rules import CAP_REACHED, PageRules, is_cap
from crawler.rules.subdomains import is_subdomain_family, registered_domain
from ingest.memory.changes import ClosedFamily
from ingest.memory.map_rows import MapPage
from ingest.rules.depth import MAX_REDIRECTS
from ingest.rules.page_state import decide_state, is_family_in_force, is_open, redirect_error
from ingest.writing.store import Store

_UNVISITED = (None, None, None, None, None)  # no visit, no redirects, no closed family or domain


class StateDecider:
    """Decides in run `run`. Keeps the families of similar URLs that are closed in it, and the pages that it lets in."""

    def __init__(self, config: Config, store: Store) -> None:
        self._store = store
        self._traps = config.traps
        self._caps = config.caps
        self._rules = PageRules(config, store.classifier)
        self._has_closed_caps = False
        self._max_depth = config.crawler.max_depth
        self._is_on_elsewhere = config.discovery.elsewhere
        self._run = 0
        self._let_in: set[int] = set()  # pages that are visited by a recorded decision, whatever their depth
        self._families: dict[int, tuple[str, frozenset[str]]] = {}
        self._subdomains: dict[str, tuple[str, frozenset[str]]] = {}  # registered domain → (error, hosts spared)

    def enter_run(self, run: int) -> None:
        self._run = run
        self._let_in = self._store.tried_pages(run) if self._is_on_elsewhere else set()
        self._families = self._store.closed_families(run)
        self._has_closed_caps = any(error.startswith(CAP_REACHED) for error, _ in self._families.values())
        self._subdomains = self._store.closed_subdomains(run)

    def is_open(self, page: MapPage) -> bool:
        """Do the rules want this page visited?"""
        nearest = self._nearest(page)
        return is_open(page.domain.klass, nearest, page.trap, self.is_past_redirect_limit(page), self._max_depth)

    def let_in(self, page: MapPage) -> bool:
        """Visit this page whatever its depth. False: it stays outside, by [discovery] elsewhere."""
        if not self._is_on_elsewhere:
            return False
        self._let_in.add(page.id)
        self.decide(page)
        return True

    @property
    def pages_let_in(self) -> AbstractSet[int]:
        """Pages that are visited by a recorded decision, whatever their depth."""
        return self._let_in

    def _nearest(self, page: MapPage) -> int | None:
        """Its least depth. A page that is let in counts as one of the last that are visited."""
        depth = page.depth
        if page.id in self._let_in and (depth is None or depth > self._max_depth):
            return self._max_depth
        return depth

    def is_past_redirect_limit(self, page: MapPage) -> bool:
        """Do only too many redirects in a row lead to this page?"""
        return self._store.distances.is_past_redirect_limit(page.reach)

    def decide_anew(self, page: MapPage) -> None:
        """Set the state of a page that enters this run: no path leads there yet, and so little else counts."""
        if page.id in self._let_in:
            self.decide(page, new_run=True)
            return
        klass = page.domain.klass
        self._set(page, decide_state(klass, None, page.trap, False, *_UNVISITED, self._max_depth), new_run=True)

    def decide(self, page: MapPage, *, new_run: bool = False) -> None:
        """Set the page's state and error from all that is known of it now."""
        closed_family = self._families.get(page.family) if page.family is not None else None
        family_error = self._cap_error(page) if self._has_closed_caps else None
        if closed_family is not None and page.key not in closed_family[1]:
            family_error = closed_family[0]
        domain = page.domain
        if self._subdomains and not domain.is_listed:
            family_error = self._subdomain_error(domain.name) or family_error
        decided = decide_state(
            domain.klass,
            self._nearest(page),
            page.trap,
            self._store.distances.is_past_redirect_limit(page.reach),
            page.visited,
            page.visit_error,
            page.redirect_error,
            family_error,
            domain.closed if domain.run == self._run else None,
            self._max_depth,
        )
        self._set(page, decided, new_run=new_run)

    def _set(self, page: MapPage, decided: tuple[PageState, str | None], *, new_run: bool) -> None:
        state, error = decided
        if state is not page.state:
            check_transition(page.state, state, new_run=new_run, url=page.key)
            page.state = state
        page.error = error
        self._store.touch(page)

    def _cap_error(self, page: MapPage) -> str | None:
        """Of several caps that are reached, the error that comes first by its letters: the same in any order."""
        closed = (self._families.get(unit.number) for unit in self._rules.caps_of(page.key))
        return min((found[0] for found in closed if found is not None and page.key not in found[1]), default=None)

    def _subdomain_error(self, host: str) -> str | None:
        closed = self._subdomains.get(registered_domain(host) or "")
        return closed[0] if closed is not None and host not in closed[1] else None

    def is_host_closed(self, host: str) -> bool:
        """Are the hosts under its registered domain closed, and it is none of those that had been begun?"""
        return bool(self._subdomains) and self._subdomain_error(host) is not None

    def close_family(self, event: FamilyEvent) -> None:
        if not is_family_in_force(event, self._traps, self._caps):
            return
        number = hash64(f"{event.domain}\n{event.family}")
        error, spare = event.error, frozenset(event.spare)
        before = self._families.get(number)
        if before is not None:
            # Closed under several limits, or by a scheduler that was killed before this was applied. Whichever came
            # first, only pages that all of them spared are spared: a page that was closed once is not opened again.
            error, spare = min(error, before[0]), spare & before[1]
        self._families[number] = (error, spare)
        self._has_closed_caps |= is_cap(event)
        if is_subdomain_family(event.domain, event.family):
            self._subdomains[event.domain] = (error, spare)
        closed = ClosedFamily(number, event.domain, event.family, error, tuple(sorted(spare)))
        self._store.changes.closed_families.append(closed)

    def judge_redirects(self, page: MapPage) -> None:
        """Check every page whose chain of redirects passes through this one: it redirects, or is visited after all."""
        affected = {page.id: page}
        edge = [page]
        for _ in range(MAX_REDIRECTS):
            sources: set[int] = set()
            for reached in edge:
                sources |= self._store.redirecting_to(reached, self._run)
            edge = [p for p in self._store.pages(sources - affected.keys()) if p.redirect_to is not None]
            if not edge:
                break
            affected.update((p.id, p) for p in edge)
        for reached in affected.values():
            if reached.visited is None:
                continue
            error = self._chain_error(reached)
            if error != reached.redirect_error:
                reached.redirect_error = error
                self.decide(reached)

    def _chain_error(self, page: MapPage) -> str | None:
        chain = [page.id]
        here = page
        while here.redirect_to is not None and here.visited is not None and len(chain) <= MAX_REDIRECTS + 1:
            if here.redirect_to in chain:
                return redirect_error(chain, True)
            chain.append(here.redirect_to)
            here = self._store.page(here.redirect_to)
        ends_too_far = here is not page and here.visited is None and self.is_past_redirect_limit(here)
        return redirect_error(chain, False, ends_too_far)
