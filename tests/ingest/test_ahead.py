"""Indexes for readers that are made before the end of a run, while there is nothing else to do."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest

from crawler.model.records import RunEvent
from crawler.model.settings import Config
from ingest import ahead
from ingest.loop import Ingest
from ingest.writing.schema import INDEXES_AHEAD, READING_INDEXES, READING_VIEWS
from tests.ingest.terrains import read_database, read_plainly
from tests.ingest.test_loop import LATER, begun, drain, results, start, web, write


def indexes(config: Config) -> set[str]:
    with closing(sqlite3.connect(config.output.database_path)) as db:
        return {name for (name,) in db.execute("SELECT name FROM sqlite_master")} & {*READING_INDEXES, *READING_VIEWS}


def read_all(ingest: Ingest) -> None:
    while ingest.step():
        pass


def make_all(ingest: Ingest) -> None:
    while ingest.ahead.step(time.monotonic()):
        pass


def test_once_no_page_waits_indexes_are_made_before_the_run_is_finished(rules: Config) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results())
    ingest = start(rules)
    read_all(ingest)
    assert ingest.ahead.step(time.monotonic())
    assert len(indexes(rules)) == 1, "one at a time: results may have come in"
    make_all(ingest)
    assert indexes(rules) == set(INDEXES_AHEAD)
    assert ingest.store.last_run() == (1, "running")
    write(rules, "scheduler-2", [RunEvent(1, LATER, "finished")])
    read_all(ingest)
    ingest.shutdown()
    assert indexes(rules) == {*READING_INDEXES, *READING_VIEWS}
    assert read_database(rules.output.database_path) == read_plainly(web(), 2)


def test_none_is_made_while_pages_wait_that_take_longer(rules: Config) -> None:
    write(rules, "scheduler", begun())
    ingest = start(rules)
    assert not ingest.ahead.step(time.monotonic()), "no run has begun"
    read_all(ingest)
    assert ingest.store.counts["frontier"]
    assert not ingest.ahead.step(time.monotonic())
    ingest.shutdown()


def test_none_is_made_in_a_map_that_is_not_small(rules: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "MOST_PAGES", 3)
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results())
    ingest = start(rules)
    read_all(ingest)
    assert not ingest.ahead.step(time.monotonic())
    ingest.shutdown()


@pytest.mark.parametrize(("is_near", "growing", "stays"), [(True, 9.0, True), (True, 1.25, False), (False, 9.0, False)])
def test_results_that_come_after_all_are_applied_and_a_map_that_grows_on_drops_the_indexes(
    rules: Config, monkeypatch: pytest.MonkeyPatch, is_near: bool, growing: float, stays: bool
) -> None:
    monkeypatch.setattr(ahead, "_SECONDS", 1e9)  # the end seems near
    monkeypatch.setattr(ahead, "_GROWING_AT_END", growing)
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results()[:1])
    ingest = start(rules)
    read_all(ingest)
    make_all(ingest)
    assert indexes(rules) == set(INDEXES_AHEAD)
    known = ingest.store.counts["known"]
    monkeypatch.setattr(ahead, "_SECONDS", 1e9 if is_near else -1)
    write(rules, "fetcher-02", results()[1:3])
    read_all(ingest)
    assert ingest.store.counts["frontier"], "else the end is near, whatever the seconds are"
    assert known * 1.25 < ingest.store.counts["known"] < known * 9
    assert indexes(rules) == (set(INDEXES_AHEAD) if stays else set())
    assert not ingest.ahead.step(time.monotonic()), "not again in this run"
    write(rules, "fetcher-03", [*results()[3:], RunEvent(1, LATER, "finished")])
    read_all(ingest)
    ingest.shutdown()
    assert indexes(rules) == {*READING_INDEXES, *READING_VIEWS}
    assert read_database(rules.output.database_path) == read_plainly(web(), 2)


def test_an_ingest_that_starts_in_a_run_drops_what_one_before_it_had_made(rules: Config) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results())
    before = start(rules)
    read_all(before)
    make_all(before)
    before.shutdown()
    assert indexes(rules)
    ingest = start(rules)
    assert not indexes(rules)
    write(rules, "scheduler-2", [RunEvent(1, LATER, "finished")])
    read_all(ingest)
    ingest.shutdown()
    assert indexes(rules) == {*READING_INDEXES, *READING_VIEWS}
    drain(rules)
    assert read_database(rules.output.database_path) == read_plainly(web(), 2)
