"""Records about a domain rather than a page: requests, robots.txt, closures."""

from __future__ import annotations

from collections.abc import Iterable

from crawler.model.records import Closure, DomainEvent, Exchange, RobotsResult
from crawler.model.settings import Config
from crawler.pace.decisions import is_in_force
from crawler.rules.lists import DomainClass
from ingest.memory.map_rows import MapDomain
from ingest.rules.page_state import stronger
from ingest.sqlite.store import Store


class DomainUpdater:
    """Updates domains in the run that the caller names."""

    def __init__(self, config: Config, store: Store) -> None:
        self._config = config
        self._store = store

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
        reason = stronger(domain.closed, closure.reason)
        if reason != domain.closed:
            if domain.closed is not None:
                self._store.changes.closed_harder.add(domain.id)
            domain.closed = reason
            domain.closed_at_request = closure.request_number
            self._touch(domain)
        self._store.changes.closed_domains[domain.id] = domain

    def _touch(self, domain: MapDomain) -> None:
        self._store.changes.domains[domain.id] = domain
