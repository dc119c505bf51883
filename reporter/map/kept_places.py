"""PURE. Places that stay from run to run: a domain that had a place keeps it, a new one goes between its neighbours.

    settle(names, radii, links, kept) -> Placement

Where fewer than half of the domains had a place, everything is placed anew: a map that has doubled has another shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, cos, hypot, pi, sin, sqrt
from typing import TypeVar

from reporter.map.placement import MOST_BODIES, Link, Placement, Springs, groups_of, place, springs_of

_GOLDEN = pi * (3 - sqrt(5))
_GAP = 3.0  # free space around a new domain
_SMALL_GAP = 16.0  # the same in a small map, where every domain has a label
_CELL = 32.0  # of the grid in which discs are looked up
_TRIES = 4_000  # seats that are tried for one domain, further and further out

Name = TypeVar("Name")
Places = Mapping[Name, tuple[float, float]]


def settle(names: Sequence[str], radii: Sequence[float], links: Sequence[Link], kept: Places[str]) -> Placement:
    """Centres of discs with these radii. `kept` are the places of an earlier map, by name."""
    known = [index for index, name in enumerate(names) if name in kept]
    if 2 * len(known) < len(names) or not known:
        return place(radii, links)
    springs = springs_of(links)
    gap = _SMALL_GAP if len(names) <= MOST_BODIES else _GAP
    seated = _Seated(gap)
    placed = {index: kept[names[index]] for index in known}
    for index, (x, y) in placed.items():
        seated.add(x, y, radii[index])
    near = _neighbours(len(names), springs)
    for index in _by_ties(near, placed):
        wish = _centre(near[index], placed) or seated.edge()
        placed[index] = seated.find(*wish, radii[index])
        seated.add(*placed[index], radii[index])
    seats = [placed[index] for index in range(len(names))]
    return Placement([x for x, _ in seats], [y for _, y in seats], groups_of(len(names), springs))


def _by_ties(near: list[list[tuple[int, float]]], placed: Places[int]) -> list[int]:
    """The domains without a place, those with the strongest ties to placed ones first."""
    ties = [sum(weight for other, weight in others if other in placed) for others in near]
    return sorted((index for index in range(len(near)) if index not in placed), key=lambda index: (-ties[index], index))


def _neighbours(count: int, springs: Springs) -> list[list[tuple[int, float]]]:
    near: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    for (a, b), weight in springs.items():
        near[a].append((b, weight))
        near[b].append((a, weight))
    return near


def _centre(near: list[tuple[int, float]], placed: Places[int]) -> tuple[float, float] | None:
    """The centre of the neighbours that have a place, by the strength of their ties; None: there are none."""
    ties = [(placed[other], weight) for other, weight in near if other in placed]
    total = sum(weight for _, weight in ties)
    if not total:
        return None
    return sum(x * weight for (x, _), weight in ties) / total, sum(y * weight for (_, y), weight in ties) / total


class _Seated:
    """Discs that have their place, in a grid: is a seat free?"""

    def __init__(self, gap: float) -> None:
        self._gap = gap
        self._cells: dict[tuple[int, int], list[tuple[float, float, float]]] = {}
        self._largest = 0.0
        self._right = self._bottom = 0.0

    def add(self, x: float, y: float, radius: float) -> None:
        self._cells.setdefault((int(x // _CELL), int(y // _CELL)), []).append((x, y, radius))
        self._largest = max(self._largest, radius)
        self._right = max(self._right, x)
        self._bottom = max(self._bottom, y)

    def edge(self) -> tuple[float, float]:
        """The corner of the map where domains without a linked neighbour go."""
        return self._right, self._bottom

    def find(self, x: float, y: float, radius: float) -> tuple[float, float]:
        """The free seat nearest to a place, on a spiral around it."""
        step = radius + self._gap
        for number in range(_TRIES):
            out = step * sqrt(number) * 0.7
            seat = x + out * cos(number * _GOLDEN), y + out * sin(number * _GOLDEN)
            if self._is_free(*seat, radius):
                return seat
        return self._right + step + self._largest, self._bottom

    def _is_free(self, x: float, y: float, radius: float) -> bool:
        reach = ceil((radius + self._gap + self._largest) / _CELL)
        column, row = int(x // _CELL), int(y // _CELL)
        return not any(
            hypot(x - other_x, y - other_y) < radius + other + self._gap
            for across in range(column - reach, column + reach + 1)
            for down in range(row - reach, row + reach + 1)
            for other_x, other_y, other in self._cells.get((across, down), ())
        )
