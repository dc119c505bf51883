"""The map for its one writer: rows in lists, one transaction a batch, errors as sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.database.map_errors import StoreError
from crawler.database.reader import open_map
from crawler.model.records import PageResult, Result, RunEvent, dump
from crawler.model.settings import Config
from crawler.rules.lists import DomainClass
from ingest.apply import MapUpdater
from ingest.rules.page_state import priority
from ingest.writing.store import Store
from tests.ingest.terrains import AT, ingest_all, read_plainly, results_of
from tests.ingest.test_loop import QA, TWO, web


def apply(updater: MapUpdater, *results: Result) -> None:
    updater.apply_batch([(result, dump(result)) for result in results])


@pytest.fixture
def path(rules: Config) -> Path:
    return ingest_all(rules, [RunEvent(1, AT, "started"), *results_of(web(), read_plainly(web(), 2))])


def test_pages_are_loaded_in_any_order_and_once(rules: Config, path: Path) -> None:
    store = Store(path, rules)
    store.fill_index()
    numbers = list(range(len(store.index), 0, -1))
    pages = store.pages(numbers)
    assert {page.id for page in pages} == set(numbers)
    assert all(store.page(page.id) is page for page in pages)
    assert {page.key for page in pages} >= {QA, TWO}
    store.close()


def test_the_links_of_a_page_are_those_that_the_map_has(rules: Config, path: Path) -> None:
    store = Store(path, rules)
    store.fill_index()
    with open_map(path) as reader:
        rows = reader.all("SELECT from_page_id, to_page_id, kind FROM links")
    for number in {source for source, _, _ in rows}:
        kind, targets = store.out_links(number, 1)
        assert {(number, target, kind) for target in targets} == {row for row in rows if row[0] == number}
        assert store.linked_before(store.page(number)) == set(targets)
    assert store.out_links(999, 1) == (0, [])
    store.close()


def test_a_commit_is_seen_by_readers_and_what_comes_before_it_is_not(rules: Config) -> None:
    store = Store(rules.output.database_path, rules)
    updater = MapUpdater(rules, store)
    apply(
        updater, RunEvent(1, AT, "started"), PageResult(1, QA, QA, "qa.test", AT, "processed", status=200, hrefs=(TWO,))
    )

    def seen() -> int:
        with open_map(rules.output.database_path) as reader:
            return reader.number("SELECT count(*) FROM links")

    assert seen() == 0
    updater.commit()
    assert seen() == 1
    store.close()


def test_engine_errors_while_a_batch_is_applied_are_store_errors(rules: Config, path: Path) -> None:
    store = Store(path, rules)
    updater = MapUpdater(rules, store)
    store.db.execute("DROP TABLE applied_events")
    with pytest.raises(StoreError, match="no such table: applied_events"):
        apply(updater, RunEvent(1, AT, "interrupted"))
    store.db.execute("DROP TABLE meta")
    for ask in (lambda: store.meta("map_id"), lambda: store.set_meta("map_id", "")):
        with pytest.raises(StoreError, match="no such table: meta"):
            ask()
    store.close()


def test_best_work_names_the_nearest_page_of_each_domain(rules: Config) -> None:
    store = Store(rules.output.database_path, rules)
    updater = MapUpdater(rules, store)
    apply(updater, RunEvent(1, AT, "started"))
    assert store.best_work(updater.commit()) == {"qa.test": 0, "qb.test": 0}
    apply(updater, PageResult(1, QA, QA, "qa.test", AT, "processed", status=200, hrefs=(TWO,)))
    assert store.best_work(updater.commit()) == {"two.test": priority(1, DomainClass.DISCOVERED)}
    store.close()


def test_closing_leaves_everything_in_the_one_file(rules: Config, path: Path, tmp_path: Path) -> None:
    store = Store(path, rules)
    updater = MapUpdater(rules, store)
    apply(updater, RunEvent(1, AT, "interrupted"))
    updater.commit()
    store.close()
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    with open_map(copy) as reader:
        assert reader.all("SELECT status FROM runs") == [("interrupted",)]
