"""PURE. A line of waiting domains, in the order in which they are served.

Invariants:
- a domain is in line once, under its best known priority;
- the better priority goes first; among equals, the domain that has waited longest. So a domain that comes back for
  more is served after every domain of its priority that was not served since: a turn is one window, however much a
  domain has waiting, and a site with a million pages cannot crowd out one with ten.
"""

from __future__ import annotations

import heapq


class Turns:
    """A line of domains. Outdated heap entries stay and are skipped when they come up."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, str]] = []
        self._places: dict[str, tuple[int, int]] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def names(self) -> set[str]:
        return set(self._places)

    def offer(self, name: str, priority: int) -> None:
        """Put a domain in line. A better priority moves it forward, a worse one changes nothing."""
        place = self._places.get(name)
        if place is None:
            self._next += 1
            place = (priority, self._next)
        elif priority < place[0]:
            place = (priority, place[1])
        else:
            return
        self._places[name] = place
        heapq.heappush(self._heap, (*place, name))
        if len(self._heap) > 64 + 2 * len(self._places):
            self._heap = [(*where, who) for who, where in self._places.items()]
            heapq.heapify(self._heap)

    def drop(self, name: str) -> None:
        """Remove a domain from the line, if it is in it."""
        self._places.pop(name, None)

    def first(self) -> tuple[int, str] | None:
        """(priority, domain) of the next one; None if the line is empty."""
        while self._heap:
            priority, turn, name = self._heap[0]
            if self._places.get(name) == (priority, turn):
                return priority, name
            heapq.heappop(self._heap)
        return None

    def clear(self) -> None:
        self._heap.clear()
        self._places.clear()
