"""Records about a domain rather than a page: requests, robots.txt, closures."""

from __future__ import annotations

from collections.abc import Iterable

from crawler.model.records import Closure, DomainEvent, Exchange, RobotsResult
from crawler.model.settings import Config
from crawler.pace.decisions import is_in_force
from crawler.pace.gate_record import RESETTABLE
from crawler.rules.lists import DomainClass
from ingest.memory.changes import Reopening
from ingest.memory.map_rows import MapDomain
from ingest.rules.page_state import stronger
from ingest.writing.store import Store


class DomainUpdater:
    """Updates domains in the run that the caller names."""

    def __init__(self, config: Config, store: Store) -> None:
        self._config = config
        self._store = store
        self._reopenings: dict[int, Reopening] = {}

    def enter_run(self, run: int) -> None:
        self._reopenings = self._store.reopenings(run)

    def count_requests(self, ledger: Iterable[Exchange], run: int) -> None:
        self._store.changes.exchanges += ledger
        for entry in ledger:
            if not entry.is_counted:
                continue
            domain = self._store.domain(entry.domain, run)
            domain.request_count += 1
            self._touch(domain)

    def apply_robots(self, result: RobotsResult, run: int) -> None:
        self.count_requests(result.ledger, run)
        domain = self._store.domain(result.domain, run)
        if domain.robots_at is None or result.at >= domain.robots_at:
            domain.robots_at = result.at
            self._store.changes.robots[domain.id] = result.body
            domain.robots_outcome = result.outcome
            domain.robots_status = result.status
            domain.crawl_delay = result.crawl_delay
        self._touch(domain)

    def apply_event(self, event: DomainEvent, run: int) -> None:
        domain = self._store.domain(event.domain, run)
        if event.event == "lost-requests":
            domain.lost_requests += event.count
            domain.request_count += event.count
            self._touch(domain)
        if event.event.startswith("breaker-"):
            self._store.changes.breakers.append((domain.id, event))
            self._touch(domain)
        if event.closes is not None:
            self.close(domain, event.closes)

    def close(self, domain: MapDomain, closure: Closure) -> None:
        budget = self._config.crawler.budget(is_quality=domain.klass is DomainClass.QUALITY)
        if not is_in_force(closure, self._config, budget):
            return
        known = self._reopenings.get(domain.id, Reopening())
        if closure.reason == "rate-limited" and closure.request_number <= known.request:
            return  # a person had the domain reset since
        reason = stronger(domain.closed, closure.reason)
        self._note_hidden(domain, closure.reason if reason != closure.reason else domain.closed, reason)
        if reason == domain.closed == closure.reason:
            # Of several 429 the last one counts: a reset that came in between concerns the others alone.
            domain.closed_at_request = max(domain.closed_at_request or 0, closure.request_number)
            self._touch(domain)
        if reason != domain.closed:
            if domain.closed is not None:
                self._store.changes.closed_harder.add(domain.id)
            domain.closed = reason
            domain.closed_at_request = closure.request_number
            self._touch(domain)
        self._store.changes.closed_domains[domain.id] = domain

    def _note_hidden(self, domain: MapDomain, hidden: str | None, reason: str) -> None:
        """A budget that ran out, say, counts again when the stronger reason counts no longer."""
        if hidden is None or hidden == reason or hidden in RESETTABLE:
            return
        known = self._reopenings.get(domain.id, Reopening())
        lasting = stronger(known.lasting, hidden)
        self._note(domain, known._replace(lasting=lasting))

    def reopen(self, event: DomainEvent, run: int) -> MapDomain:
        """A person had the domain reset: what closed it before counts no longer, unless the config says so.

        `count` is the number of requests by then: 429 answers are compared by it, in whatever order they are read. The
        other reasons that a reset ends are decisions of the scheduler, as the reset is: they are read in their order.
        """
        domain = self._store.domain(event.domain, run)
        known = self._reopenings.get(domain.id, Reopening())
        known = known._replace(request=max(known.request, event.count))
        self._note(domain, known)
        is_earlier = domain.closed != "rate-limited" or (domain.closed_at_request or 0) <= known.request
        if domain.closed in RESETTABLE and is_earlier:
            domain.closed, domain.closed_at_request = known.lasting, None
            if domain.closed is None:
                self._store.changes.closed_domains.pop(domain.id, None)
            self._touch(domain)
        return domain

    def _note(self, domain: MapDomain, reopening: Reopening) -> None:
        self._reopenings[domain.id] = self._store.changes.reopenings[domain.id] = reopening

    def _touch(self, domain: MapDomain) -> None:
        self._store.changes.domains[domain.id] = domain
