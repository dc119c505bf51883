"""The contract of the writing door, over every engine: whatever the order, the map is the one a plain reading gives.

`make test-engine` tries many more terrains on PostgreSQL than `make test` does.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.database.completed_map import copy_place, shown_map
from crawler.database.digest import digest, parts
from crawler.database.map_errors import StoreError
from crawler.database.reader import open_map
from crawler.model.map_place import EngineMap, MapPlace
from crawler.model.records import DomainEvent, PageResult, Result, RunEvent, changed, dump, parse
from crawler.model.settings import Config, EngineSettings
from crawler.workspace.log import Cursor
from ingest.apply import MapUpdater
from ingest.map_transfer import TransferError, copy_whole_map
from ingest.postgres.map_schemas import remove
from ingest.writing.engine import CopyNotMade
from ingest.writing.page_writer import NEW_COLUMNS
from ingest.writing.store import Store
from tests.ingest.terrains import AT, config, ingest_all, read_plainly, results_of, ruled_terrains, terrains
from tests.postgres_server import own_database

_EXAMPLES = int(os.environ.get("ENGINE_EXAMPLES", "3"))
_FEW = settings(max_examples=_EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
QA = "https://qa.test/0"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with own_database() as made:
        yield made


@pytest.fixture
def rules(tmp_path: Path, url: str) -> Iterator[Config]:
    made = replace(config(tmp_path), engine=EngineSettings(url))
    yield made
    for place in (made.map_place, copy_place(made.map_place)):
        assert isinstance(place, EngineMap)
        remove(place)


@contextmanager
def emptied(place: EngineMap) -> Iterator[EngineMap]:
    try:
        yield place
    finally:
        remove(place)


def visit(key: str, *targets: str, run: int = 1) -> PageResult:
    return PageResult(run, key, key, key.split("/")[2], AT, "processed", status=200, base=key, hrefs=targets)


def apply(store: Store, updater: MapUpdater, *results: Result) -> None:
    updater.apply_batch([(result, dump(result)) for result in results])
    updater.commit()


def links(place: MapPlace) -> set[tuple[str, str, int, int, int]]:
    sql = (
        "SELECT a.url, b.url, l.kind, l.discovered_run, l.last_run FROM links l JOIN pages a ON a.id = l.from_page_id"
        " JOIN pages b ON b.id = l.to_page_id"
    )
    with open_map(place) as reader:
        return set(reader.all(sql))


# -- the same map -----------------------------------------------------------------------------------


@_FEW
@given(data=st.data())
def test_any_order_over_two_runs_gives_the_map_that_sqlite_has(url: str, data: st.DataObject) -> None:
    """Lists, redirects, failures, closures, scope, parts of sites, caps; a second run; new processes in between."""
    first, second = data.draw(ruled_terrains()), data.draw(terrains())
    max_depth = data.draw(st.integers(1, 3))
    one, two = read_plainly(first, max_depth), read_plainly(second, max_depth)
    results: list[Result] = [
        *data.draw(st.permutations(results_of(first, one))),
        RunEvent(1, AT, "finished"),
        RunEvent(2, AT, "started"),
        *data.draw(st.permutations(results_of(second, two, 2))),
    ]
    batch, forgetful = data.draw(st.sampled_from([7, 30])), data.draw(st.booleans())
    with tempfile.TemporaryDirectory() as folder:
        plain = config(Path(folder), max_depth, first)
        engine = replace(plain, engine=EngineSettings(url))
        place = engine.map_place
        assert isinstance(place, EngineMap)
        with emptied(place):
            ingest_all(engine, results, batch, forgetful=forgetful)
            ingest_all(plain, results, batch)
            assert parts(place) == parts(plain.map_place)
            assert links(place) == links(plain.map_place)


def test_links_keep_the_run_that_found_them_first_and_the_one_that_saw_them_last(rules: Config, tmp_path: Path) -> None:
    web: list[Result] = [
        visit(QA, "/1", "/2", "/3"),
        RunEvent(1, AT, "finished"),
        RunEvent(2, AT, "started"),
        visit(QA, "/2", "/4", run=2),
        RunEvent(2, AT, "finished"),
        RunEvent(3, AT, "started"),
        visit(QA, "/1", "/2", run=3),
    ]
    ingest_all(rules, web)
    assert links(rules.map_place) == {
        (QA, "https://qa.test/1", 0, 1, 3),
        (QA, "https://qa.test/2", 0, 1, 3),
        (QA, "https://qa.test/3", 0, 1, 1),
        (QA, "https://qa.test/4", 0, 2, 2),
    }
    plain = replace(rules, engine=EngineSettings())
    ingest_all(plain, web)
    assert links(plain.map_place) == links(rules.map_place)


def test_the_place_in_every_log_is_committed_with_the_effects(rules: Config) -> None:
    store = Store(rules.map_place, rules)
    updater = MapUpdater(rules, store)
    apply(store, updater, RunEvent(1, AT, "started"))
    store.changes.positions["fetcher-1"] = Cursor(3, 40)
    updater.apply_batch([(visit(QA, "/1"), dump(visit(QA, "/1")))])
    store.db.execute("BEGIN")
    store.db.execute("UPDATE meta SET value = 'x' WHERE name = 'map_id'")
    store.engine.close()  # as a kill: what was not committed is gone
    again = Store(rules.map_place, rules)
    assert again.positions() == {}
    assert again.meta("map_id") != "x"
    updater = MapUpdater(rules, again)
    again.changes.positions["fetcher-1"] = Cursor(3, 40)
    apply(again, updater, visit(QA, "/1"))
    again.engine.close()
    third = Store(rules.map_place, rules)
    assert third.positions() == {"fetcher-1": Cursor(3, 40)}
    third.close()


def test_texts_with_nul_and_odd_characters_are_kept_as_far_as_the_engine_can(rules: Config) -> None:
    odd = msgspec.structs.replace(visit(QA, "/1"), title="a\0b\t\\N\n“é”%s")
    ingest_all(rules, [odd])
    with open_map(rules.map_place) as reader:
        assert reader.first("SELECT title FROM pages WHERE url = ?", (QA,)) == ("a\ufffdb\t\\N\n“é”%s",)


_TEXTS = (
    "SELECT id, title, content_type, last_modified, error_message, rejection_reason FROM pages ORDER BY id",
    "SELECT id, etag, last_modified, description, language, heading FROM page_facts ORDER BY id",
    "SELECT id, detail FROM breakers ORDER BY id",
)
_odd = st.text(st.sampled_from("a\0\ufffdé \\u0"), max_size=4)


@_FEW
@given(data=st.data())
def test_odd_texts_of_every_kind_make_the_same_map_on_both_engines(url: str, data: st.DataObject) -> None:
    def drawn() -> str:
        return data.draw(_odd)

    page = visit(QA, "/1\0", "/2")
    page = changed(page, title=drawn(), content_type=drawn(), last_modified=drawn(), etag=drawn(), heading=drawn())
    page = changed(page, description=drawn(), language=drawn(), texts=(drawn(), drawn()), rels=(drawn(), drawn()))
    page = changed(page, fields={"f" + drawn(): (drawn(), drawn())}, headers={"x-" + drawn(): drawn()})
    page = changed(page, validation="ok", content_hash="0" * 64)
    poor = changed(visit(f"{QA}?p"), validation="soft", rejection_reason="short: " + drawn())
    bad = changed(visit(f"{QA}?q"), state="failed", error="tls: " + drawn(), base=None)
    broken = DomainEvent(1, "qa.test", AT, "breaker-open", 1, detail=drawn())
    with tempfile.TemporaryDirectory() as folder:
        plain = config(Path(folder), 2)
        engine = replace(plain, engine=EngineSettings(url))
        place = engine.map_place
        assert isinstance(place, EngineMap)
        with emptied(place):
            for each in (engine, plain):
                ingest_all(each, [parse(dump(result)) for result in (page, poor, bad, broken)])
            assert parts(place) == parts(plain.map_place)
            for sql in _TEXTS:
                with open_map(place) as one, open_map(plain.map_place) as other:
                    assert one.all(sql) == other.all(sql), sql


# -- one writer, old and foreign schemas --------------------------------------------------------------


def test_a_second_writer_is_refused_while_the_first_one_lives(rules: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.postgres.postgres_engine._LOCK_SECONDS", 1)
    store = Store(rules.map_place, rules)
    with pytest.raises(StoreError, match="another process writes the map"):
        Store(rules.map_place, rules)
    store.close()
    Store(rules.map_place, rules).close()


def test_a_schema_of_another_program_or_format_is_refused(rules: Config) -> None:
    place = rules.map_place
    assert isinstance(place, EngineMap)
    Store(place, rules).close()
    store = Store(place, rules)
    store.set_meta("schema_version", "99")
    store.close()
    with pytest.raises(StoreError, match="has map format 99"):
        Store(place, rules)
    remove(place)
    foreign = Store(place.beside("x"), rules)
    foreign.db.execute("DROP TABLE spool_positions")
    foreign.close()
    with (
        emptied(place.beside("x")),
        pytest.raises(StoreError, match="by another program; name another database"),
    ):
        Store(place.beside("x"), rules)


def test_a_map_of_the_first_format_in_an_engine_is_brought_up_to_date(rules: Config) -> None:
    web: list[Result] = [visit(QA, "/1", "/2"), RunEvent(1, AT, "finished")]
    again: list[Result] = [RunEvent(2, AT, "started"), visit(QA, "/1", "/2", run=2), RunEvent(2, AT, "finished")]
    ingest_all(rules, web)
    store = Store(rules.map_place, rules)
    store.db.execute("DROP VIEW IF EXISTS v_pages")
    store.db.execute("ALTER TABLE pages DROP COLUMN links_print")
    store.set_meta("schema_version", "7")
    store.close()
    ingest_all(rules, again)
    plain = replace(rules, engine=EngineSettings())
    ingest_all(plain, [*web, *again])
    assert digest(rules.map_place) == digest(plain.map_place)
    with open_map(rules.map_place) as reader:
        (row,) = reader.rows("SELECT links_print FROM pages WHERE url = ?", (QA,))
    assert abs(row[0]) > 2**32, "64 bits wide"


def test_an_engine_that_is_away_is_said_in_one_sentence_without_a_password(rules: Config) -> None:
    away = EngineMap("postgresql://crawl:secret-word@127.0.0.1:1/terrain")
    with pytest.raises(StoreError, match="cannot reach the engine") as told:
        Store(away, rules)
    assert "secret-word" not in str(told.value) + repr(away) + str(away)


# -- copies -------------------------------------------------------------------------------------------


def test_the_completed_run_stays_whole_while_the_next_is_under_way(rules: Config) -> None:
    store = Store(rules.map_place, rules)
    kept: list[int] = []

    def keep(following: int) -> None:
        kept.append(following)
        if store.last_run()[1] == "completed":
            store.keep_copy(lambda: None)

    updater = MapUpdater(rules, store, keep)
    apply(store, updater, RunEvent(1, AT, "started"), visit(QA, "/1", "/2"), RunEvent(1, AT, "finished"))
    whole = digest(rules.map_place)
    apply(store, updater, RunEvent(2, AT, "started"))
    apply(store, updater, visit(QA, "/3", run=2))
    shown = shown_map(rules.map_place)
    assert (shown.path, kept) == (copy_place(rules.map_place), [1, 2])
    assert digest(shown.path) == whole != digest(rules.map_place)
    with open_map(shown.path) as reader:
        assert reader.has("idx_links_to")
    apply(store, updater, RunEvent(2, AT, "finished"))
    store.put_copy_aside()
    assert shown_map(rules.map_place).path == rules.map_place
    store.close()


def test_a_reader_stops_neither_a_run_nor_the_copy_for_long(rules: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.postgres.postgres_engine._READER_SECONDS", 0.1)
    store = Store(rules.map_place, rules)
    updater = MapUpdater(rules, store)
    apply(store, updater, RunEvent(1, AT, "started"), visit(QA, "/1"), RunEvent(1, AT, "finished"))
    store.keep_copy(lambda: None)
    with open_map(rules.map_place) as reader, open_map(copy_place(rules.map_place)) as other:
        before = reader.number("SELECT count(*) FROM links")
        assert other.number("SELECT count(*) FROM pages") == 3
        with pytest.raises(CopyNotMade, match="still reads"):
            store.keep_copy(lambda: None)
        apply(store, updater, RunEvent(2, AT, "started"), visit(QA, "/1", "/2", run=2))
        assert reader.number("SELECT count(*) FROM links") == before == 1
        assert reader.all(f"SELECT l.from_page_id FROM pages p CROSS JOIN {reader.links_to('l', 'p.id')}") == [(1,)]
    store.close()
    assert len(links(rules.map_place)) == 2


def test_texts_of_new_pages_come_back_as_they_were(rules: Config) -> None:
    """A backslash is a mark for COPY; a tab and the end of a line stand between its values and its rows."""
    odd = "a\tb\\tc\\\\d\ne\r\\N\\."
    one = (7, f"https://qa.test/{odd}", "qa.test", "failed", AT, 1, f"dns: {odd}", -5, f"https://{odd}", 0, None)
    other = (8, "https://qa.test/\u00e4\U0001f600", "qa.test", "queued", AT, 1, "", 2**63 - 1, "", 0, 3)
    found: list[list[tuple[object, ...]]] = []
    for each in (replace(rules, engine=EngineSettings()), rules):
        store = Store(each.map_place, each)
        store.engine.begin()
        store.engine.add_pages(
            [
                (*one, bytearray(b""), 1, 0, "seed", odd, "quality"),
                (*other, bytearray(b"\0\\N\xff"), 1, -9, "linked", "", ""),
            ]
        )
        store.db.execute("COMMIT")
        store.close()
        with open_map(each.map_place) as reader:
            found.append(reader.all(f"SELECT {', '.join(NEW_COLUMNS)} FROM pages ORDER BY id"))
    assert found[0] == found[1]
    assert found[1][0][1] == f"https://qa.test/{odd}"
    assert found[1][1][-1] is None


def test_rows_that_are_there_do_not_keep_others_from_being_added(rules: Config) -> None:
    """New rows go in by COPY, which refuses all of them if one is there: somebody wrote into the map by hand."""
    plain = replace(rules, engine=EngineSettings())
    maps: list[dict[str, str]] = []
    frontier: list[int] = []
    for each in (plain, rules):
        store = Store(each.map_place, each)
        updater = MapUpdater(each, store)
        apply(store, updater, RunEvent(1, AT, "started"))
        store.db.execute("INSERT INTO page_depths VALUES (?, ?, 'x', 9)", (100 << 16, 100))
        store.db.execute("INSERT INTO frontier VALUES (101, 101, 0, ?, 0, 0)", (AT,))
        apply(store, updater, visit(QA, *(f"/{number}" for number in range(1, 200))))
        frontier.append(store.counts["frontier"])
        store.close()
        maps.append(parts(each.map_place))
    assert maps[0] == maps[1]
    assert frontier[0] == frontier[1] > 150


def test_links_to_many_pages_are_looked_up_page_by_page(rules: Config) -> None:
    """The planner took `links_to` apart, and compared every page with every row: 6 s for 2,000 pages and 3,000 rows."""
    store = Store(rules.map_place, rules)
    updater = MapUpdater(rules, store)
    web = [visit(f"https://qa.test/{number}", *(f"/{number + more}" for more in range(1, 4))) for number in range(60)]
    apply(store, updater, RunEvent(1, AT, "started"), *web, RunEvent(1, AT, "finished"))
    store.db.execute("DROP FUNCTION links_to(bigint)")  # as an older map has none like it: it is made with the indexes
    apply(store, updater, RunEvent(1, AT, "resumed"), RunEvent(1, AT, "finished"))
    store.close()
    with open_map(rules.map_place) as reader:
        question = (
            f"SELECT p.id, l.from_page_id, f.url FROM pages p CROSS JOIN {reader.links_to('l', 'p.id')}"
            " CROSS JOIN pages f ON f.id = l.from_page_id WHERE f.visited_run = 1 AND l.last_run = 1"
        )
        assert len(reader.all(question)) == 3 * 60
        plan = "\n".join(line for (line,) in reader.all(f"EXPLAIN {question}"))
        assert "idx_links_to" in plan or "Filter: (targets @>" in plan
        assert "Join Filter: (page_links.targets" not in plan


def test_a_map_goes_to_the_engine_and_back_row_by_row(rules: Config, tmp_path: Path) -> None:
    plain = replace(rules, engine=EngineSettings())
    web: list[Result] = [visit(QA, "/1", "/2"), RunEvent(1, AT, "finished"), RunEvent(2, AT, "started")]
    file = ingest_all(plain, [*web, visit(QA, "/2", "https://bad.test/x", run=2), RunEvent(2, AT, "finished")])
    tables: list[str] = []
    assert copy_whole_map(file, rules.map_place, tables.append) == 5
    assert {"pages", "links", "meta", "spool_positions", "visit_counts"} <= {*tables}
    assert (digest(rules.map_place), links(rules.map_place)) == (digest(file), links(file))
    copy_whole_map(rules.map_place, tmp_path / "back.db")
    for table in tables:
        with open_map(file) as one, open_map(tmp_path / "back.db") as other:
            assert sorted(map(repr, one.all(f"SELECT * FROM {table}"))) == sorted(
                map(repr, other.all(f"SELECT * FROM {table}"))
            ), table
    with pytest.raises(TransferError, match="never overwritten"):
        copy_whole_map(file, rules.map_place)
    store = Store(rules.map_place, rules)  # a crawl can go on from it
    updater = MapUpdater(rules, store)
    apply(store, updater, RunEvent(3, AT, "started"), visit(QA, "/9", run=3))
    store.close()
    assert (QA, "https://qa.test/9", 0, 3, 3) in links(rules.map_place)
