"""Places on the map: every domain has one, none covers another, and the same graph is always drawn the same."""

from __future__ import annotations

from itertools import combinations
from math import hypot, isfinite
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reporter.map.placement import MOST_BODIES, Placement, place

Link = tuple[int, int, int]


def graph(count: int, links: int, parts: int, seed: int = 1) -> tuple[list[float], list[Link]]:
    """Domains with a few large ones, most links inside of `parts` parts."""
    chance = Random(seed)
    found: dict[tuple[int, int], int] = {}
    for _ in range(links):
        source, other = int(count * chance.random() ** 2), int(count * chance.random() ** 2)
        target = other if chance.random() < 0.1 else min(other - other % parts + source % parts, count - 1)
        found[source, target] = chance.randint(1, 30)
    radii = [4 + 20 * (1 - number / count) ** 6 for number in range(count)]
    return radii, [(source, target, number) for (source, target), number in found.items()]


def worst_overlap(radii: list[float], placed: Placement) -> float:
    cells: dict[tuple[int, int], list[int]] = {}
    worst = 0.0
    for a, (x, y) in enumerate(zip(placed.x, placed.y, strict=True)):
        column, row = int(x // 60), int(y // 60)
        near = [b for dx in (-1, 0, 1) for dy in (-1, 0, 1) for b in cells.get((column + dx, row + dy), ())]
        worst = max([worst, *(radii[a] + radii[b] - hypot(x - placed.x[b], y - placed.y[b]) for b in near)])
        cells.setdefault((column, row), []).append(a)
    return worst


@pytest.mark.parametrize("count", [1, 2, MOST_BODIES, MOST_BODIES + 1, 400, 2000])
def test_no_domain_covers_another(count: int) -> None:
    radii, links = graph(count, 5 * count, 12)
    placed = place(radii, links)
    assert len(placed.x) == len(placed.y) == len(placed.group) == count
    assert worst_overlap(radii, placed) <= 0.1


def test_the_same_graph_is_always_placed_the_same() -> None:
    for count in (40, 500):
        assert place(*graph(count, 5 * count, 9)) == place(*graph(count, 5 * count, 9))


def test_domains_of_one_community_are_nearer_to_each_other_than_to_the_rest() -> None:
    parts = [range(start, start + 40) for start in (0, 40, 80)]
    links = [(a, b, 1) for part in parts for a, b in combinations(part, 2)] + [(0, 40, 1), (40, 80, 1)]
    placed = place([5.0] * 120, links)
    centres = [(sum(placed.x[node] for node in part) / 40, sum(placed.y[node] for node in part) / 40) for part in parts]
    for number, part in enumerate(parts):
        for node in part:
            away = [hypot(placed.x[node] - x, placed.y[node] - y) for x, y in centres]
            assert min(away) == away[number]


def test_an_empty_map_has_no_places() -> None:
    assert place([], []) == Placement([], [], [])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(4, 24), min_size=1, max_size=90),
    st.lists(st.tuples(st.integers(0, 89), st.integers(0, 89), st.integers(1, 10**6)), max_size=150),
)
def test_every_domain_has_a_finite_place_whatever_the_links(radii: list[float], links: list[Link]) -> None:
    count = len(radii)
    placed = place(radii, [(a % count, b % count, number) for a, b, number in links])
    assert all(isfinite(value) for value in (*placed.x, *placed.y))
    assert worst_overlap(radii, placed) <= 0.1
