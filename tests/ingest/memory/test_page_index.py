"""The compact table over all pages says what the database says, whatever came in and however it was filled."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.model.records import PageResult, RunEvent, dump
from crawler.model.settings import Config
from crawler.model.urls import Link, LinkResolver, hash64
from crawler.rules.lists import DomainClass
from ingest.apply import MapUpdater
from ingest.memory import lookup
from ingest.memory import page_index as room
from ingest.memory.page_index import QUEUED, UNSEEN, PageIndex
from ingest.rules.depth import Distances
from ingest.rules.page_state import priority
from ingest.writing import depth_writer
from ingest.writing import store as store_room
from ingest.writing.store import Store
from tests.ingest.terrains import AT, config, ingest_all, read_database, read_plainly, results_of, terrains

_SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def link(key: str, hash_: int | None = None) -> Link:
    return Link(key, key, key.split("/")[2], hash64(key) if hash_ is None else hash_)


def contents(index: PageIndex) -> list[tuple]:
    """What it says of every page, reaches by their value."""
    return [
        (
            index.hashes[number],
            index.domain_names[index.domains[number]],
            index.values[index.reaches[number]],
            index.standings[number],
        )
        for number in range(1, len(index) + 1)
    ]


@_SETTINGS
@given(st.data())
def test_kept_up_through_commits_it_is_what_a_fresh_one_reads(data: st.DataObject) -> None:
    first, second = data.draw(terrains()), data.draw(terrains())
    max_depth = data.draw(st.integers(0, 3))
    results = [
        RunEvent(1, AT, "started"),
        *data.draw(st.permutations(results_of(first, read_plainly(first, max_depth)))),
        RunEvent(2, AT, "started"),
        *data.draw(st.permutations(results_of(second, read_plainly(second, max_depth), 2))),
    ]
    size = data.draw(st.integers(1, 9))
    with tempfile.TemporaryDirectory() as folder:
        rules = config(Path(folder), max_depth)
        store = Store(rules.output.database_path, rules)
        updater = MapUpdater(rules, store)
        for start in range(0, len(results), size):
            updater.apply_batch([(result, dump(result)) for result in results[start : start + size]])
            updater.commit()
            fresh = Store(rules.output.database_path, rules)
            fresh.fill_index()
            assert contents(store.index) == contents(fresh.index)
            fresh.close()
        store.close()


@_SETTINGS
@given(st.data())
def test_with_no_room_for_reaches_the_map_is_the_same(data: st.DataObject) -> None:
    """Reaches that are not kept are read from the rows; what does not fit is written early, or one by one."""
    terrain = data.draw(terrains())
    max_depth = data.draw(st.integers(0, 3))
    expected = read_plainly(terrain, max_depth)
    results = data.draw(st.permutations(results_of(terrain, expected)))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "REACHES", data.draw(st.integers(1, 6)))
        patch.setattr(store_room, "_MOVES", data.draw(st.integers(0, 2)))
        patch.setattr(depth_writer, "_DEEPEST", data.draw(st.integers(0, 3)))
        path = ingest_all(config(Path(folder), max_depth), list(results), data.draw(st.sampled_from([1, 3, 100])))
        assert read_database(path) == expected


def test_every_page_is_found_again_however_many_there_are() -> None:
    index = PageIndex(Distances(3, 1))
    index.add_domain(1, "one.test")
    keys = [f"https://one.test/{number}" for number in range(20_000)]
    numbers = [index.add(hash64(key), 1) for key in keys]
    assert numbers == list(range(1, 20_001))
    assert [index.find(link(key))[0] for key in keys] == numbers
    assert index.find(link("https://one.test/other")) == (0, hash64("https://one.test/other"))


def test_hashes_that_want_the_same_slot_are_kept_apart() -> None:
    index = PageIndex(Distances(3, 1))
    index.add_domain(1, "one.test")
    far = 1 << 40  # beyond every mask: all of these begin at one slot
    hashes = [number * far + 4095 for number in range(-5, 6)]
    numbers = [index.add(hash_, 1) for hash_ in hashes]
    assert [index.find(link("https://one.test/x", hash_))[0] for hash_ in hashes] == numbers
    assert index.find(link("https://one.test/x", 6 * far + 4095))[0] == 0


def test_two_domains_pages_of_one_hash_are_two_pages(rules: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second stands under its next hash, now and after a restart."""
    shared = ("https://one.test/a", "https://two.test/a")
    plain = LinkResolver.link_at

    def colliding(self: LinkResolver, address: str, hash_: int) -> Link | None:
        found = plain(self, address, hash_)
        return found._replace(hash=77) if found is not None and found.key in shared else found

    monkeypatch.setattr(LinkResolver, "link_at", colliding)
    monkeypatch.setattr(lookup, "compiled", None)  # it has hashes of its own
    visits = [
        PageResult(1, key, key, "qa.test", AT, "processed", status=200, base=key, hrefs=hrefs)
        for key, hrefs in (("https://qa.test/0", (*shared, "/1")), ("https://qa.test/1", shared[::-1]))
    ]
    read = read_database(ingest_all(rules, visits, 1, forgetful=True))
    assert {key for key in read.pages if key in shared} == set(shared)
    assert {(a, b) for a, b, _ in read.links if b in shared} == {(v.key, key) for v in visits for key in shared}
    with sqlite3.connect(rules.output.database_path) as db:
        hashes = db.execute("SELECT url_hash FROM pages WHERE url IN (?, ?)", shared).fetchall()
    db.close()
    assert (77,) in hashes and len(set(hashes)) == 2


def test_a_text_is_taken_for_a_key_only_on_its_own_domain() -> None:
    index = PageIndex(Distances(3, 1))
    index.add_domain(1, "one.test")
    for text in ("https://one.test/a", "https://two.test/a", "https://one.test.two.test/a", "https://one.test:8443/a"):
        index.add(hash64(text), 1)
    assert index.find_key("https://one.test/a", hash64("https://one.test/a")) == 1
    for text in ("https://two.test/a", "https://one.test.two.test/a", "https://one.test:8443/a"):
        assert index.find_key(text, hash64(text)) == 0
    assert index.find_key("https://one.test/b", hash64("https://one.test/b")) is None


def test_a_new_run_has_seen_nothing_and_remembers_the_reaches_that_the_rows_have() -> None:
    index = PageIndex(Distances(3, 1))
    index.add_domain(1, "one.test")
    number = index.add(5, 1)
    index.standings[number] = QUEUED
    index.reaches[number] = index.reach_number(3)
    index.begin_run()
    assert (index.standings[number], index.values[index.reaches[number]]) == (UNSEEN, 3)


def test_reaches_that_no_page_has_any_more_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "REACHES", 8)
    index = PageIndex(Distances(10, 4))
    index.add_domain(1, "one.test")
    pages = [index.add(hash_, 1) for hash_ in (5, 6)]
    for reach in range(1, 8):
        index.reaches[pages[0]] = index.reach_number(reach)
    index.reaches[pages[1]] = index.reach_number(3)
    assert index.reach_number(99) == 0
    index.drop_unused_reaches()
    assert [index.values[index.reaches[page]] for page in pages] == [7, 3]
    assert index.values[index.reach_number(99)] == 99


def test_only_a_run_after_the_first_can_meet_pages_it_has_not_seen(rules: Config) -> None:
    index = PageIndex(Distances(3, 1))
    index.begin_run()
    index.add(77, 1)
    assert not index.has_unseen
    index.begin_run()
    assert index.has_unseen
    for run, has_unseen in ((1, False), (2, True)):
        store = Store(rules.output.database_path, rules)
        updater = MapUpdater(rules, store)
        for result in (RunEvent(run, AT, "started"), visit(run)):
            updater.apply_batch([(result, dump(result))])
            updater.commit()
        assert store.index.has_unseen is has_unseen
        store.db.close()  # as a kill would leave it
        store = Store(rules.output.database_path, rules)
        store.fill_index()
        assert store.index.has_unseen is has_unseen
        store.close()


def visit(run: int) -> PageResult:
    key = "https://qa.test/0"
    hrefs = ("/1", "/2") if run == 1 else ("/1",)
    return PageResult(run, key, key, "qa.test", AT, "processed", status=200, base=key, hrefs=hrefs)


def test_a_start_does_not_wait_for_it(rules: Config) -> None:
    """The record that a run goes on is applied without it: the scheduler waits for that before it releases anything."""
    ingest_all(rules, [])
    store = Store(rules.output.database_path, rules)
    updater = MapUpdater(rules, store)
    resumed = RunEvent(1, AT, "resumed")
    updater.apply_batch([(resumed, dump(resumed))])
    updater.commit()
    assert (len(store.index), store.counts["known"]) == (0, 2)
    key = "https://qa.test/0"
    visit = PageResult(1, key, key, "qa.test", AT, "processed", status=200, base=key, hrefs=("/1",))
    updater.apply_batch([(visit, dump(visit))])
    updater.commit()
    assert (len(store.index), store.counts["known"]) == (3, 3)
    store.close()


def test_a_page_that_was_moved_unseen_is_where_it_was_moved_to_when_somebody_looks(rules: Config) -> None:
    near, far = "https://qa.test/0", "https://one.test/0"
    visit = PageResult(1, near, near, "qa.test", AT, "processed", status=200, base=near, hrefs=(far,))
    ingest_all(rules, [visit])
    store = Store(rules.output.database_path, rules)
    store.fill_index()
    number, _ = store.index.find(link(far))
    reach = store.distances.pack([(0, 0), (1, 2)])
    store.move(number, store.index.reach_number(reach))
    page = store.page(number)
    assert (page.reach, page.depth) == (reach, 0)
    store.commit(1)
    depths = store.db.execute("SELECT quality_origin, depth FROM page_depths WHERE page_id = ?", (number,)).fetchall()
    assert sorted(depths) == [("*.qb.test", 2), ("qa.test", 0)]
    assert store.db.execute("SELECT priority FROM frontier WHERE id = ?", (number,)).fetchone() == (
        priority(0, DomainClass.DISCOVERED),
    )
    store.close()
