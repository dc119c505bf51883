"""Families of look-alike URLs have a share of visits in a run; this keeps count of it for the scheduler."""

from __future__ import annotations

from collections import OrderedDict

from crawler.database.frontier import Frontier
from crawler.model.settings import TrapSettings
from crawler.rules.traps import Family, family_of

_REMEMBERED = 50_000


class Shares:
    """How much of its share has each family used up? Counted from the map once, then kept while it is in memory.

    The count is of pages released in this run, visited or not: only the scheduler releases, so it stays exact.
    """

    def __init__(self, frontier: Frontier, traps: TrapSettings) -> None:
        self._frontier = frontier
        self._traps = traps
        self._used: OrderedDict[int, int] = OrderedDict()
        self._closed: set[int] = set()

    def is_closed(self, family: int, run: int) -> bool:
        """Has the family been closed in this run, by this scheduler or as far as the map knows?"""
        if family in self._closed:
            return True
        return family not in self._used and self._frontier.is_family_closed(family, run)

    def take(self, family: int, key: str, run: int, outstanding: set[int]) -> Family | None:
        """Let one more page of the family in: None. If its share is used up: the family, which is to be closed.

        `outstanding` are its pages that are released and not settled.
        """
        described = family_of(key, self._traps)
        if described is None:
            return None  # the limit has been turned off since the page was found
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
        """The family's event is written; nothing more of it is let in."""
        self._closed.add(family)
        self._used.pop(family, None)

    def forget(self) -> None:
        """The map has been replaced: count anew."""
        self._used.clear()
