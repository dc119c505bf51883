"""The visit limit of families of similar URLs: how much of it each family has used in this run."""

from __future__ import annotations

from collections import OrderedDict

from crawler.database.frontier import Frontier
from crawler.model.settings import TrapSettings
from crawler.rules.traps import Family, family_of

_REMEMBERED = 50_000


class FamilyLimits:
    """Counts the released pages of each family: once from the map, then in memory.

    Pages released in this run count, visited or not. Only the scheduler releases, so the count stays exact.
    """

    def __init__(self, frontier: Frontier, traps: TrapSettings) -> None:
        self._frontier = frontier
        self._traps = traps
        self._used: OrderedDict[int, int] = OrderedDict()
        self._closed: set[int] = set()

    def is_closed(self, family: int, run: int) -> bool:
        """Was the family closed in this run, by this scheduler or according to the map?"""
        if family in self._closed:
            return True
        return family not in self._used and self._frontier.is_family_closed(family, run)

    def count(self, family: int, key: str, run: int, outstanding: set[int]) -> Family | None:
        """Count one more page of the family: None. If its limit is reached: the family, which is to be closed.

        `outstanding` are its pages that are released and not yet done.
        """
        described = family_of(key, self._traps)
        if described is None:
            return None  # the limit was turned off after the page was found
        used = self._used.get(family)
        if used is None:
            used = len(self._frontier.visited_in_family(family, run) | outstanding)
        if used >= described.limit:
            return described
        self._used[family] = used + 1
        self._used.move_to_end(family)
        if len(self._used) > _REMEMBERED:
            self._used.popitem(last=False)
        return None

    def close(self, family: int) -> None:
        """The family's event is recorded; no more of it is released."""
        self._closed.add(family)
        self._used.pop(family, None)

    def forget(self) -> None:
        """The map was replaced: count anew."""
        self._used.clear()
