"""The memory for bodies of pages: a budget of this process, of which each page takes its share while it is read.

A page of 10 MB comes in 10 KB on the wire, and reading it takes many times its size: the bytes, the same in UTF-8, the
addresses as texts, the record, the line of the journal. A hundred such pages at once would be ten gigabytes. So a body
reserves what it may come to while it grows; beyond the budget it waits for its turn, and its server with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from crawler.net.answer import SMALL_BODY
from crawler.net.hub import Hub

# Measured with 10 MB of the worst pages there are (each byte of an address three in UTF-8): 14.2 times the body, and
# the journal's line once more. A dense robots.txt takes 35 times its size, twice.
FACTOR = 18
ROBOTS_FACTOR = 80


class ParseMemory:
    """The budget. For the greenlets of one hub; each holds at most one share, until it calls `release`.

    Invariants:
    - the shares are together at most `most`, unless a single page needs more than that;
    - the page that has held a share for longest can always grow: so pages that wait for each other do not exist.
    """

    def __init__(self, hub: Hub, most: int, longest_body: int) -> None:
        self._hub = hub
        self._most = most
        # Kept free for the page that may always grow.
        self._reserve = min(longest_body * FACTOR, most // 2)
        self._shares: dict[int, int] = {}  # place → bytes, in the order of their first reservation
        self._waiting: list[Callable[[None], None]] = []
        self._alone: int | None = None  # the place that works alone, or waits for that

    @property
    def used(self) -> int:
        return sum(self._shares.values())

    def grow(self, size: int, limit: int, *, is_robots: bool = False) -> int:
        """Reserve memory for a body of `size` bytes, which may grow to `limit`. May wait.

        Returns the size up to which this need not be called again.
        """
        covered = SMALL_BODY
        while covered < size:
            covered *= 2
        covered = min(covered, max(limit, size))
        self._take(covered * (ROBOTS_FACTOR if is_robots else FACTOR))
        return covered

    def work_alone(self) -> None:
        """Wait until no other page holds a share, and let none have one until `release`."""
        place = self._hub.place
        while self._alone not in (None, place):
            self._wait()
        self._alone = place
        while any(other != place for other in self._shares):
            self._wait()
        self._shares[place] = self._most

    def release(self) -> None:
        """This greenlet's page is done."""
        place = self._hub.place
        if self._alone == place:
            self._alone = None
        elif place not in self._shares:
            return
        self._shares.pop(place, None)
        waiting, self._waiting = self._waiting, []
        for resume in waiting:
            resume(None)

    def _take(self, wanted: int) -> None:
        place = self._hub.place
        while not self._may_have(place, wanted):
            self._wait()
        self._shares[place] = max(wanted, self._shares.get(place, 0))

    def _may_have(self, place: int, wanted: int) -> bool:
        if self._alone is not None and self._alone != place and place not in self._shares:
            return False
        first = next(iter(self._shares), place)
        if first == place:
            return True
        return self.used - self._shares.get(place, 0) + wanted <= self._most - self._reserve

    def _wait(self) -> None:
        self._hub.wait_for_callback(self._waiting.append, math.inf)
