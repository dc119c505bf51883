"""Places that stay from run to run."""

from __future__ import annotations

from math import hypot

from hypothesis import given, settings
from hypothesis import strategies as st

from reporter.map.kept_places import settle
from reporter.map.placement import place


def star(count: int) -> list[tuple[int, int, int]]:
    return [(0, other, 1) for other in range(1, count)]


def overlaps(x: list[float], y: list[float], radii: list[float], among: range) -> list[tuple[int, int]]:
    return [
        (a, b)
        for a in among
        for b in range(len(x))
        if a != b and hypot(x[a] - x[b], y[a] - y[b]) < radii[a] + radii[b] - 0.001
    ]


def test_a_domain_that_had_a_place_keeps_it() -> None:
    names = [f"d{number}.test" for number in range(100)]
    before = place([5.0] * 100, star(100))
    kept = {name: (before.x[index], before.y[index]) for index, name in enumerate(names)}
    grown = [*names, "new.test", "newer.test"]
    after = settle(grown, [5.0] * 102, [*star(100), (7, 100, 3), (7, 101, 3)], kept)
    assert (after.x[:100], after.y[:100]) == (before.x, before.y)


def test_a_new_domain_goes_to_the_centre_of_its_neighbours() -> None:
    kept = {"a.test": (0.0, 0.0), "b.test": (200.0, 0.0), "c.test": (1000.0, 1000.0)}
    made = settle(["a.test", "b.test", "c.test", "new.test"], [5.0] * 4, [(0, 3, 1), (1, 3, 1)], kept)
    assert (round(made.x[3]), round(made.y[3])) == (100, 0)


def test_a_domain_without_linked_neighbours_finds_a_free_seat() -> None:
    kept = {f"{number}.test": (12.0 * number, 0.0) for number in range(4)}
    made = settle([*kept, "alone.test"], [5.0] * 5, [], kept)
    assert not overlaps(made.x, made.y, [5.0] * 5, range(4, 5))


def test_a_map_that_has_more_than_doubled_is_placed_anew() -> None:
    radii, links = [5.0] * 9, star(9)
    assert settle([f"{number}" for number in range(9)], radii, links, {"0": (5000.0, 5000.0)}) == place(radii, links)
    assert settle([], [], [], {}) == place([], [])


@settings(max_examples=30, deadline=None)
@given(
    st.integers(4, 40),
    st.lists(st.tuples(st.integers(0, 59), st.integers(0, 59), st.integers(1, 9)), max_size=80),
    st.lists(st.floats(4, 24), min_size=60, max_size=60),
)
def test_no_new_disc_overlaps_another(new: int, links: list[tuple[int, int, int]], radii: list[float]) -> None:
    old = 60 - min(new, 30)
    inner = [link for link in links if link[0] < old and link[1] < old]
    before = place(radii[:old], inner)
    names = [str(number) for number in range(60)]
    kept = {names[index]: (before.x[index], before.y[index]) for index in range(old)}
    made = settle(names, radii, links, kept)
    assert not overlaps(made.x, made.y, radii, range(old, 60))
