"""The [[cap]] limits: how many visits each unit of a cap has had in this run.

A unit is one value of the cap's captured group, or all that it matches, over all domains.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache

from crawler.database.frontier import Frontier
from crawler.model.settings import Config
from crawler.rules.page_rules import CapUnit, PageRules
from crawler.schedule.domain_queues import ActiveDomain, DomainQueues

_REMEMBERED = 50_000


class CapLimits:
    """Counts the released pages of each unit: once from the map and the outstanding pages, then in memory.

    Pages released in this run count, visited or not. Only the scheduler releases, so the count stays exact.
    """

    def __init__(self, frontier: Frontier, config: Config, queues: DomainQueues) -> None:
        self._frontier = frontier
        self._queues = queues
        self._units = lru_cache(maxsize=_REMEMBERED)(PageRules(config).caps_of)
        self._used: OrderedDict[int, int] = OrderedDict()
        self._closed: set[int] = set()

    def full_units(self, key: str, domain: ActiveDomain, run: int) -> list[CapUnit]:
        """The units of a page of this domain that have reached their limit and are not closed yet."""
        open_ = [unit for unit in self._units(key) if not self._is_closed(unit.number, run)]
        return [unit for unit in open_ if self._visits(unit, domain, run) >= unit.rule.max_pages]

    def is_under_closed(self, key: str, run: int) -> bool:
        return any(self._is_closed(unit.number, run) for unit in self._units(key))

    def count(self, key: str) -> None:
        """One more page is released. `full_units` was asked before, and named none."""
        for unit in self._units(key):
            self._used[unit.number] += 1

    def outstanding_keys(self, unit: CapUnit, domain: ActiveDomain) -> tuple[str, ...]:
        """Keys of the unit's pages that are released and not yet done, in all active domains and in this one."""
        return tuple(sorted(key for _, key in self._outstanding(unit, domain)))

    def close(self, unit: CapUnit) -> None:
        """The unit's event is recorded; no more of it is released."""
        self._closed.add(unit.number)
        self._used.pop(unit.number, None)

    def forget(self) -> None:
        """The map was replaced, or another run begins: count anew."""
        self._used.clear()
        self._closed.clear()

    def _is_closed(self, number: int, run: int) -> bool:
        if number in self._closed:
            return True
        return number not in self._used and self._frontier.is_family_closed(number, run)

    def _visits(self, unit: CapUnit, domain: ActiveDomain, run: int) -> int:
        used = self._used.get(unit.number)
        if used is None:
            released = {page for page, _ in self._outstanding(unit, domain)}
            used = len(self._frontier.visited_under_cap(unit.number, run) | released)
        self._used[unit.number] = used
        self._used.move_to_end(unit.number)
        if len(self._used) > _REMEMBERED:
            self._used.popitem(last=False)
        return used

    def _outstanding(self, unit: CapUnit, serving: ActiveDomain) -> list[tuple[int, str]]:
        return [
            (page, key)
            for domain in {**self._queues.active, serving.name: serving}.values()
            for page, key in domain.outstanding.items()
            if page >= 0 and unit in self._units(key)
        ]
