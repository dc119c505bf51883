"""§5.2: the depth rules, and the arithmetic that keeps them for many origins at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.rules.depth import MAX_REDIRECTS, NOWHERE, Distances, reach_bytes
from tests.ingest.terrains import Terrain, config, ingest_all, read_database, result_of

Depths = dict[int, int]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Distances, Depths, Depths]:
    max_depth = draw(st.integers(0, 12))
    origins = draw(st.integers(1, 40))
    some = st.dictionaries(st.integers(0, origins - 1), st.integers(0, max_depth + 1))
    return Distances(max_depth, origins), draw(some), draw(some)


@given(worlds())
def test_packing_loses_nothing(world: tuple[Distances, Depths, Depths]) -> None:
    distances, one, _ = world
    reach = distances.pack(one.items())
    assert dict(distances.unpack(reach)) == one
    assert {origin for origin in range(40) if distances.has_path(reach, origin)} == one.keys()
    begun = distances.merge(reach, distances.start)
    assert distances.parse(bytes(reach_bytes(begun))) == begun
    assert dict(distances.unpack(begun)) == one


@given(worlds())
def test_a_reach_that_was_stored_before_redirects_were_counted_has_none_in_a_row(
    world: tuple[Distances, Depths, Depths],
) -> None:
    distances, one, _ = world
    reach = distances.pack(one.items())
    parsed = distances.parse(bytes(reach_bytes(reach)))
    assert parsed == (distances.merge(reach, distances.start) if one else NOWHERE)
    assert not distances.is_past_redirect_limit(parsed)


@given(worlds(), st.integers(0, 14), st.integers(0, 14))
def test_more_than_ten_redirects_in_a_row_are_too_many_on_the_shortest_of_all_paths(
    world: tuple[Distances, Depths, Depths], one: int, other: int
) -> None:
    distances, _, _ = world

    def after(redirects: int) -> int:
        reach = distances.merge(distances.pack([(0, 0)]), distances.start)
        for _ in range(redirects):
            reach = distances.arrival(reach, True)
        return reach

    assert distances.is_past_redirect_limit(after(one)) == (one > MAX_REDIRECTS)
    assert distances.is_past_redirect_limit(distances.merge(after(one), after(other))) == (
        min(one, other) > MAX_REDIRECTS
    )
    if distances.max_depth:
        assert not distances.is_past_redirect_limit(distances.arrival(after(one), False)), "a link begins again"


@given(worlds())
def test_merging_takes_the_least_depth_of_every_origin(world: tuple[Distances, Depths, Depths]) -> None:
    distances, one, other = world
    merged = distances.merge(distances.pack(one.items()), distances.pack(other.items()))
    least = {o: min(one.get(o, 99), other.get(o, 99)) for o in one.keys() | other.keys()}
    assert dict(distances.unpack(merged)) == least


@given(worlds())
def test_the_nearest_is_the_least_of_all_depths(world: tuple[Distances, Depths, Depths]) -> None:
    distances, one, _ = world
    assert distances.nearest(distances.pack(one.items())) == (min(one.values()) if one else None)


@given(worlds(), st.booleans())
def test_a_link_adds_one_a_redirect_nothing_and_beyond_the_limit_nothing_leads_on(
    world: tuple[Distances, Depths, Depths], is_redirect: bool
) -> None:
    distances, one, _ = world
    arriving = distances.arrival(distances.pack(one.items()), is_redirect)
    step = 0 if is_redirect else 1
    assert dict(distances.unpack(arriving)) == {o: d + step for o, d in one.items() if d <= distances.max_depth}


@given(worlds())
def test_differences_and_what_vanished_rebuild_the_other(world: tuple[Distances, Depths, Depths]) -> None:
    distances, one, other = world
    before, after = distances.pack(one.items()), distances.pack(other.items())
    rebuilt = {**one, **dict(distances.differences(before, after))}
    for origin in distances.vanished(before, after):
        del rebuilt[origin]
    assert rebuilt == other


def test_no_way_is_none(tmp_path: Path) -> None:
    assert Distances(3, 5).nearest(NOWHERE) is None


# -- the rules of §5.2 on a small terrain ---------------------------------------------------------------------

QA, QB = "https://qa.test/0", "https://qb.test/0"


def depths(folder: Path, pages: dict[str, tuple], max_depth: int = 2) -> dict[tuple[str, str], int]:
    terrain = Terrain(pages)
    path = ingest_all(config(folder, max_depth), [result_of(terrain, key) for key in pages])
    return read_database(path).depths


def test_rule_1_seeds_start_at_depth_0(tmp_path: Path) -> None:
    assert depths(tmp_path, {}) == {(QA, "qa.test"): 0, (QB, "*.qb.test"): 0}


def test_rule_2_all_internal_pages_of_a_quality_domain_are_depth_0(tmp_path: Path) -> None:
    found = depths(tmp_path, {QB: ("links", ["https://sub.qb.test/a"], False)})
    assert found["https://sub.qb.test/a", "*.qb.test"] == 0


def test_rule_3_a_link_from_depth_n_makes_depth_n_plus_1(tmp_path: Path) -> None:
    found = depths(
        tmp_path,
        {QA: ("links", ["https://one.test/"], False), "https://one.test/": ("links", ["https://two.test/"], False)},
    )
    assert found["https://one.test/", "qa.test"] == 1
    assert found["https://two.test/", "qa.test"] == 2


def test_rule_4_the_minimum_is_kept_even_if_the_shorter_way_is_found_last(tmp_path: Path) -> None:
    one, two, deep = "https://one.test/", "https://two.test/", "https://two.test/deep"
    found = depths(
        tmp_path,
        {
            QA: ("links", [one], False),
            one: ("links", [two], False),
            two: ("links", [deep], False),
            QB: ("links", [two], False),
        },
    )
    assert found[two, "qa.test"] == 2 and found[two, "*.qb.test"] == 1
    assert found[deep, "qa.test"] == 3 and found[deep, "*.qb.test"] == 2


@pytest.mark.parametrize(("max_depth", "state"), [(0, "depth_exceeded"), (1, "queued")])
def test_rule_5_a_page_is_crawlable_if_any_depth_is_within_the_limit(
    tmp_path: Path, max_depth: int, state: str
) -> None:
    terrain = Terrain({QA: ("links", ["https://one.test/"], False)})
    path = ingest_all(config(tmp_path, max_depth), [result_of(terrain, QA)])
    assert read_database(path).pages["https://one.test/"][0] == state


def test_quality_to_quality_links_keep_both_depths(tmp_path: Path) -> None:
    """§5.3: from A's perspective B's pages are depth 1, from B's own 0."""
    found = depths(tmp_path, {QA: ("links", [QB], False)})
    assert found[QB, "qa.test"] == 1 and found[QB, "*.qb.test"] == 0


def test_a_page_that_was_too_deep_becomes_crawlable_when_a_shorter_way_turns_up(tmp_path: Path) -> None:
    one, two = "https://one.test/", "https://two.test/"
    terrain = Terrain(
        {QA: ("links", [one], False), one: ("links", [two], False), QB: ("links", [two], False)},
    )
    rules = config(tmp_path, 1)
    path = ingest_all(rules, [result_of(terrain, QA), result_of(terrain, one)], batch=1)
    assert read_database(path).pages[two][0] == "depth_exceeded"
    ingest_all(rules, [result_of(terrain, QB)], started=False)
    assert read_database(path).pages[two][0] == "queued"
