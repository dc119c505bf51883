"""Promises 1 and 3: whatever the order, however often, the map is the one a plain reading gives."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.model.records import Closure, DomainEvent, FamilyEvent, PageResult, Result, RunEvent, dump
from crawler.model.settings import ValidationSettings
from ingest import apply
from ingest.apply import MapUpdater
from ingest.writing.store import Store
from tests.ingest.terrains import (
    AT,
    config,
    ingest_all,
    read_after,
    read_database,
    read_plainly,
    results_of,
    ruled_terrains,
    terrains,
)


@pytest.fixture(autouse=True, scope="module")
def _one_seed_first() -> Iterator[None]:
    """The first seed of a run is committed alone, and the others follow: in all tests here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apply, "_FIRST_SEEDS", 1)
        yield


_SETTINGS = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
_FEWER = settings(_SETTINGS, max_examples=50)


@_SETTINGS
@given(st.data())
def test_any_order_of_arrival_gives_the_plain_reading(data: st.DataObject) -> None:
    """Lists, redirects, failures, closed domains and families, some closed for several reasons."""
    terrain = data.draw(terrains())
    max_depth = data.draw(st.integers(0, 3))
    expected = read_plainly(terrain, max_depth)
    results = data.draw(st.permutations(results_of(terrain, expected)))
    again = data.draw(st.lists(st.sampled_from(results), max_size=3)) if results else []
    batch = data.draw(st.sampled_from([1, 2, 5, 100]))
    with tempfile.TemporaryDirectory() as folder:
        path = ingest_all(config(Path(folder), max_depth), [*results, *again], batch)
        assert read_database(path) == expected


@_SETTINGS
@given(st.data())
def test_any_order_gives_the_plain_reading_under_scope_parts_and_caps(data: st.DataObject) -> None:
    """Over restarts too: what puts a page out of scope, and the units of caps, are known again by a new process."""
    terrain = data.draw(ruled_terrains())
    max_depth = data.draw(st.integers(0, 3))
    expected = read_plainly(terrain, max_depth)
    results = data.draw(st.permutations(results_of(terrain, expected)))
    again = data.draw(st.lists(st.sampled_from(results), max_size=3)) if results else []
    batch = data.draw(st.sampled_from([1, 2, 5, 100]))
    with tempfile.TemporaryDirectory() as folder:
        rules = config(Path(folder), max_depth, terrain)
        path = ingest_all(rules, [*results, *again], batch, forgetful=data.draw(st.booleans()))
        assert read_database(path) == expected


@_FEWER
@given(st.data())
def test_results_of_pages_that_went_out_of_scope_change_nothing(data: st.DataObject) -> None:
    """A rule that came after the crawl: replayed under it, in any order, its pages are as if never visited."""
    terrain = data.draw(terrains())
    recorded = read_plainly(terrain, 2)
    results = data.draw(st.permutations(results_of(terrain, recorded)))
    terrain.denied = set(data.draw(st.lists(st.sampled_from(sorted(terrain.pages)), max_size=6)))
    with tempfile.TemporaryDirectory() as folder:
        path = ingest_all(config(Path(folder), 2, terrain), list(results), data.draw(st.sampled_from([1, 4])))
        assert read_database(path) == read_plainly(terrain, 2)


@_FEWER
@given(st.data())
def test_any_order_over_two_runs_and_restarts_gives_the_plain_reading(data: st.DataObject) -> None:
    first, second = data.draw(terrains()), data.draw(terrains())
    max_depth = data.draw(st.integers(0, 3))
    one, two = read_plainly(first, max_depth), read_plainly(second, max_depth)
    results = [
        *data.draw(st.permutations(results_of(first, one))),
        RunEvent(1, AT, "finished"),
        RunEvent(2, AT, "started"),
        *data.draw(st.permutations(results_of(second, two, 2))),
    ]
    again = data.draw(st.lists(st.sampled_from(results), max_size=3))
    batch = data.draw(st.sampled_from([1, 2, 5, 100]))
    with tempfile.TemporaryDirectory() as folder:
        rules = config(Path(folder), max_depth)
        path = ingest_all(rules, [*results, *again], batch, forgetful=data.draw(st.booleans()))
        assert read_database(path) == read_after(one, two)


@_SETTINGS
@given(st.data())
def test_results_of_pages_that_the_rules_do_not_reach_change_nothing(data: st.DataObject) -> None:
    """Replay under narrower rules: the spools hold more than the map may show."""
    terrain = data.draw(terrains())
    wide, narrow = 3, data.draw(st.integers(0, 2))
    recorded = read_plainly(terrain, wide)
    results = data.draw(st.permutations(results_of(terrain, recorded)))
    with tempfile.TemporaryDirectory() as folder:
        path = ingest_all(config(Path(folder), narrow), list(results), data.draw(st.sampled_from([1, 4])))
        assert read_database(path) == read_plainly(terrain, narrow)


@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("forgetful", [False, True])
def test_a_family_that_was_closed_twice_spares_what_both_spared_whichever_came_first(
    tmp_path: Path, batch: int, forgetful: bool
) -> None:
    """A limit that was raised and lowered again, or a scheduler that was killed before the ingest had heard of it."""
    far, near = [f"https://one.test/{n}" for n in range(4)], "https://qa.test/0"
    results: list[Result] = [
        PageResult(1, near, near, "qa.test", AT, "processed", status=200, base=near, hrefs=(*far, "https://qa.test/a")),
        PageResult(1, "https://qa.test/a", "https://qa.test/a", "qa.test", AT, "processed", status=200, hrefs=(*far,)),
        FamilyEvent(1, "one.test", AT, "one.test/#", "trap-similar-paths: 5,000", 5000, (far[0], far[1])),
        FamilyEvent(1, "one.test", AT, "one.test/#", "trap-similar-paths: 6,000", 6000, (far[1], far[2])),
    ]
    for number, order in enumerate(permutations(results)):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = read_database(ingest_all(config(folder, 2), list(order), batch, forgetful=forgetful))
        states = [found.pages[key][0] for key in far]
        assert states == ["failed", "queued", "failed", "failed"], [type(each).__name__ for each in order]


@pytest.mark.parametrize("follows", [False, True])
def test_the_links_of_a_rejected_page_are_recorded_and_followed_only_if_asked(tmp_path: Path, follows: bool) -> None:
    home, shell, far = "https://qa.test/0", "https://qa.test/shell", "https://one.test/x"
    results = [
        PageResult(1, home, home, "qa.test", AT, "processed", status=200, base=home, hrefs=(shell,), validation="ok"),
        PageResult(
            *(1, shell, shell, "qa.test", AT, "processed"),
            status=200,
            base=shell,
            hrefs=(far,),
            validation="soft",
            rejection_reason="parked: it says so",
        ),
        PageResult(1, far, far, "one.test", AT, "processed", status=200),
    ]
    for number, order in enumerate(permutations(results)):
        folder = tmp_path / str(number)
        folder.mkdir()
        rules = replace(config(folder, 2), validation=ValidationSettings(follow_rejected=follows))
        found = read_database(ingest_all(rules, list(order), 2))
        assert (shell, far, 0 if follows else 1) in found.links
        assert (home, shell, 0) in found.links
        assert found.pages[shell][0] == "processed"
        assert found.pages[far][0] == ("processed" if follows else "discovered")


@pytest.mark.parametrize("batch", [1, 3])
def test_a_page_that_only_one_of_two_closings_spared_stays_closed_when_a_shorter_way_is_found(
    tmp_path: Path, batch: int
) -> None:
    near, other, middle, far = "https://qa.test/0", "https://qb.test/0", "https://one.test/x", "https://one.test/1"

    def page(key: str, *hrefs: str) -> PageResult:
        return PageResult(1, key, key, key.split("/")[2], AT, "processed", status=200, base=key, hrefs=hrefs)

    results: list[Result] = [
        page(near, middle),
        page(middle, far),
        page(other, far),
        FamilyEvent(1, "one.test", AT, "one.test/#", "trap-similar-paths: 5,000", 5000, ()),
        FamilyEvent(1, "one.test", AT, "one.test/#", "trap-similar-paths: 6,000", 6000, (far,)),
    ]
    for number, order in enumerate(permutations(results)):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = read_database(ingest_all(config(folder, 3), list(order), batch))
        assert found.pages[far][0] == "failed", [type(each).__name__ for each in order]


@pytest.mark.parametrize("batch", [1, 2, 9])
def test_references_to_a_listed_seed_are_counted_though_it_was_a_page_before(tmp_path: Path, batch: int) -> None:
    """A quality domain may be on the blacklist, too: its seed is known before anybody links to it."""
    seed, other = "https://qb.test/0", "https://bad.test/x"
    pages = [f"https://qa.test/{number}" for number in range(3)]
    visits = [
        PageResult(1, key, key, "qa.test", AT, "processed", status=200, base=key, hrefs=(*pages, seed, other))
        for key in pages
    ]
    rules = replace(config(tmp_path), blacklist=("bad.test", "qb.test"))
    found = read_database(ingest_all(rules, list(visits), batch))
    assert found.references == {listed: (3, frozenset(pages)) for listed in (seed, other)}


class _Killed(Exception):
    pass


@pytest.mark.parametrize("comes_first", ["the record of the run again", "a result of the first seed", "another record"])
def test_seeds_that_a_killed_ingest_left_are_entered_before_anything_else(tmp_path: Path, comes_first: str) -> None:
    """The first seeds are released while the others are entered: a kill in between loses none of them."""
    seeds = ("https://qa.test/1", "https://qa.test/2", "https://qa.test/3")
    rules = config(tmp_path)
    rules = replace(rules, quality=(replace(rules.quality[0], seeds=seeds), *rules.quality[1:]))
    started, resumed = RunEvent(1, AT, "started"), RunEvent(1, AT, "resumed")
    visit = PageResult(1, seeds[0], seeds[0], "qa.test", AT, "processed", status=200, base=seeds[0], hrefs=seeds)
    store = Store(rules.map_place, rules)
    updater = MapUpdater(rules, store)

    def die() -> None:
        raise _Killed

    updater.on_first_seeds = die
    with pytest.raises(_Killed):
        updater.apply_batch([(started, dump(started))])
    store.engine.close()  # without a word, as a killed process leaves it
    first = read_database(rules.output.database_path)
    assert set(first.frontier) == {seeds[0]}

    store = Store(rules.map_place, rules)
    updater = MapUpdater(rules, store)
    result: Result = {"the": started, "a": visit, "another": resumed}[comes_first.split()[0]]
    updater.apply_batch([(result, dump(result))])
    updater.commit()
    assert store.seeds_due() is None
    store.close()
    found = read_database(rules.output.database_path)
    left = seeds[1:] if result is visit else seeds
    assert set(left) <= set(found.frontier)
    assert len(found.frontier) == len(left) + len(rules.quality[1:])


@pytest.mark.parametrize("batch", [1, 4, 40])
@pytest.mark.parametrize("forgetful", [False, True])
def test_a_walk_over_ever_new_redirects_ends_after_ten_in_whatever_order_they_come(
    tmp_path: Path, batch: int, forgetful: bool
) -> None:
    """Redirects cost no depth. A link to one of the pages begins a new chain there."""
    steps = [f"https://r{number}.test/" for number in range(30)]
    seed = "https://qa.test/0"

    def page(key: str, *hrefs: str) -> PageResult:
        return PageResult(1, key, key, key.split("/")[2], AT, "processed", status=200, base=key, hrefs=hrefs)

    def redirect(key: str, target: str) -> PageResult:
        return PageResult(1, key, key, key.split("/")[2], AT, "processed", status=301, redirect=target)

    chain: list[Result] = [redirect(*pair) for pair in pairwise(steps)]
    side = "https://qa.test/side"
    for name, links, ends in (("one", (side,), 11), ("two", (side, steps[5]), 16)):
        results = [page(seed, steps[0], side), page(side, *links), *chain]
        for number, order in enumerate((results, results[::-1], [*results[1::2], *results[::2]])):
            folder = tmp_path / f"{name}-{number}"
            folder.mkdir()
            found = read_database(ingest_all(config(folder, 3), order, batch, forgetful=forgetful))
            assert {key for key in found.pages if key in steps} == set(steps[: ends + 1])
            assert all(found.pages[key] == ("failed", "redirect-limit") for key in steps[: ends + 1])
            assert found.frontier.keys() == {"https://qb.test/0"}, "the other seed waits, and nothing else"


@pytest.mark.parametrize("batch", [1, 2, 9])
@pytest.mark.parametrize("forgetful", [False, True])
def test_hosts_under_a_registered_domain_are_closed_in_whatever_order_the_decision_comes(
    tmp_path: Path, batch: int, forgetful: bool
) -> None:
    hosts = [f"h{number}.many.test" for number in range(4)]
    near, other = "https://qa.test/0", "https://qa.test/other"
    results: list[Result] = [
        PageResult(
            1, near, near, "qa.test", AT, "processed", hrefs=(other, *(f"https://{host}/" for host in hosts[:3]))
        ),
        PageResult(1, other, other, "qa.test", AT, "processed", hrefs=(f"https://{hosts[3]}/", "https://else.test/")),
        PageResult(1, f"https://{hosts[1]}/", f"https://{hosts[1]}/", hosts[1], AT, "processed"),
        FamilyEvent(1, "many.test", AT, "*.many.test", "trap-subdomains: 200 hosts", 200, (hosts[0], hosts[1])),
        DomainEvent(1, hosts[2], AT, "closed", closes=Closure("rate-limited", 7)),
    ]
    for number, order in enumerate(permutations(results)):
        if number % 3:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        found = read_database(ingest_all(config(folder, 2), list(order), batch, forgetful=forgetful))
        states = [found.pages[f"https://{host}/"] for host in (*hosts, "else.test")]
        assert states == [
            ("queued", None),
            ("processed", None),
            ("failed", "trap-subdomains"),
            ("failed", "trap-subdomains"),
            ("queued", None),
        ], [type(each).__name__ for each in order]
