"""Runs: their rows, and the indexes that exist only between them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.model.records import RunEvent
from ingest.sqlite.sqlite_engine import SqliteEngine
from ingest.writing.run_rows import begin_run, complete_reading_aids, last_run, reopen_run, write_run_events
from ingest.writing.schema import FIRST_INDEXES, READING_INDEXES, READING_VIEWS, TABLES
from tests.ingest.terrains import AT


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[SqliteEngine]:
    made = SqliteEngine(tmp_path / "map.db")
    made.run_script(TABLES)
    yield made
    made.close()


@pytest.fixture
def db(engine: SqliteEngine) -> sqlite3.Connection:
    return engine.db


def rows(db: sqlite3.Connection) -> list[tuple]:
    return db.execute("SELECT id, status, started_at, finished_at, config_hash FROM runs").fetchall()


READING_AIDS = {*READING_INDEXES, *READING_VIEWS}


def reading_aids(db: sqlite3.Connection) -> set[str]:
    return {name for (name,) in db.execute("SELECT name FROM sqlite_master")} & READING_AIDS


def test_a_run_begins_with_clear_tables(engine: SqliteEngine, db: sqlite3.Connection) -> None:
    assert last_run(db) == (0, "")
    begin_run(engine, 1, "", "")
    db.execute("INSERT INTO frontier VALUES (1, 1, 0, '', 1, 0)")
    db.execute("INSERT INTO held_results VALUES (1, 1, x'')")
    db.execute("INSERT INTO closed_families VALUES (1, 1, '', '', '', '[]')")
    begin_run(engine, 2, AT, "hash")
    assert last_run(db) == (2, "running")
    assert rows(db)[1] == (2, "running", AT, None, "hash")
    for table in ("frontier", "held_results", "closed_families"):
        assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_reading_indexes_and_views_exist_only_while_no_run_is_under_way(
    engine: SqliteEngine, db: sqlite3.Connection
) -> None:
    begin_run(engine, 1, AT, "")
    assert not reading_aids(db)
    complete_reading_aids(engine)
    assert not reading_aids(db), "the run is under way"
    write_run_events(engine, [RunEvent(1, AT, "finished")])
    assert reading_aids(db) == {*FIRST_INDEXES, *READING_VIEWS}, "what the summary needs"
    complete_reading_aids(engine)
    assert reading_aids(db) == READING_AIDS
    begin_run(engine, 2, AT, "")
    assert not reading_aids(db)


def test_events_set_the_status_and_a_finished_run_stays_finished(engine: SqliteEngine, db: sqlite3.Connection) -> None:
    begin_run(engine, 1, "", "")
    write_run_events(engine, [RunEvent(1, AT, "started", "c", "m")])
    assert rows(db) == [(1, "running", AT, None, "c")]
    write_run_events(engine, [RunEvent(1, AT, "interrupted")])
    assert rows(db) == [(1, "interrupted", AT, AT, "c")]
    write_run_events(engine, [RunEvent(1, AT, "resumed")])
    assert rows(db) == [(1, "running", AT, None, "c")]
    write_run_events(engine, [RunEvent(1, AT, "finished"), RunEvent(1, AT, "interrupted")])
    assert rows(db) == [(1, "completed", AT, AT, "c")]


def test_a_rebuilt_map_with_pages_to_visit_can_be_resumed(engine: SqliteEngine, db: sqlite3.Connection) -> None:
    begin_run(engine, 1, "", "")
    write_run_events(engine, [RunEvent(1, AT, "finished")])
    reopen_run(db, 1)
    assert last_run(db) == (1, "interrupted")
    write_run_events(engine, [RunEvent(1, AT, "resumed")])
    assert not reading_aids(db)
