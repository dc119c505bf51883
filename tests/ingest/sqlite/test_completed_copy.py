"""The copy of a completed map: whole or not there, whatever happens while it is made."""

from __future__ import annotations

import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from crawler.database.completed_map import aside_path, copy_path, shown_map
from crawler.database.digest import digest
from crawler.model.records import RunEvent
from crawler.model.settings import Config
from ingest.sqlite import completed_copy
from ingest.sqlite.completed_copy import keep_copy
from ingest.writing.engine import CopyNotMade
from tests.ingest.terrains import AT
from tests.ingest.test_loop import LATER, begun, drain, results, write
from tests.places import ROOT


@pytest.fixture
def database(rules: Config) -> Path:
    """The map of a completed run."""
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results())
    write(rules, "scheduler", [RunEvent(1, AT, "finished")])
    drain(rules)
    return rules.output.database_path


@pytest.fixture
def connection(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(database, isolation_level=None)


def test_the_map_of_a_completed_run_stays_as_it_was_until_the_next_run_is_completed(
    rules: Config, database: Path
) -> None:
    before = digest(database)
    assert shown_map(database).path == database and not copy_path(database).exists()
    write(rules, "scheduler", begun(2, LATER))
    write(rules, "fetcher-01", results(2)[:2])
    drain(rules)
    shown = shown_map(database)
    assert shown.path == copy_path(database) and digest(shown.path) == before != digest(database)
    assert shown.note == (f"This is the map of run 1, completed {AT}. Run 2 is under way; --run 2 shows it.")
    drain(rules)  # a restart in the middle of the run keeps it
    write(rules, "fetcher-01", results(2)[2:])
    write(rules, "scheduler", [RunEvent(2, LATER, "interrupted")])
    drain(rules)
    assert digest(shown_map(database).path) == before and "Run 2 is not finished;" in shown_map(database).note
    write(rules, "scheduler", [RunEvent(2, LATER, "finished")])
    drain(rules)
    assert shown_map(database).path == database and shown_map(database).note == ""
    assert not copy_path(database).exists() and digest(aside_path(database)) == before
    write(rules, "scheduler", begun(3, LATER))
    drain(rules)
    assert copy_path(database).exists() and not aside_path(database).exists()


def test_a_large_copy_is_not_put_aside(rules: Config, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completed_copy, "_ASIDE", 1000)
    write(rules, "scheduler", [*begun(2, LATER), RunEvent(2, LATER, "finished")])
    drain(rules)
    assert list(copy_path(database).parent.iterdir()) == []


def test_a_run_ended_and_the_next_begun_in_one_batch_leave_a_copy_of_the_first(rules: Config, database: Path) -> None:
    write(rules, "scheduler", [*begun(2, LATER), RunEvent(2, LATER, "finished"), *begun(3, LATER)])
    drain(rules)
    shown = shown_map(database)
    assert shown.run is not None and shown.run.number == 2


def test_a_copy_of_another_map_is_not_shown(rules: Config, database: Path, connection: sqlite3.Connection) -> None:
    keep_copy(connection, database, lambda: None)
    connection.execute("UPDATE runs SET started_at = ?", (LATER,))
    connection.execute("INSERT INTO runs VALUES (2, ?, NULL, '', 'running')", (LATER,))
    shown = shown_map(database)
    assert shown.path == database
    assert shown.note == "Run 2 is under way; this is its map so far. The map of run 1 was not kept."


def test_a_damaged_copy_is_not_shown(rules: Config, database: Path) -> None:
    write(rules, "scheduler", begun(2, LATER))
    drain(rules)
    copy_path(database).write_bytes(b"SQLite format 3\0" + bytes(5000))
    assert shown_map(database).path == database


def test_a_kill_while_the_copy_is_written_leaves_none(database: Path, connection: sqlite3.Connection) -> None:
    code = (
        "import os, sqlite3, sys; from pathlib import Path; from ingest.sqlite.completed_copy import keep_copy\n"
        "keep_copy(sqlite3.connect(sys.argv[1]), Path(sys.argv[1]), lambda: os.kill(os.getpid(), 9))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(database)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    assert not copy_path(database).exists() and list(copy_path(database).parent.iterdir())
    keep_copy(connection, database, lambda: None)
    assert [path.name for path in copy_path(database).parent.iterdir()] == ["completed.db"]
    assert digest(copy_path(database)) == digest(database)


def test_a_disk_that_takes_no_more_leaves_no_copy_and_a_sentence(
    database: Path, connection: sqlite3.Connection
) -> None:
    keep_copy(connection, database, lambda: None)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(CopyNotMade, match="disk"):
            keep_copy(connection, database, lambda: None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(copy_path(database).parent.iterdir()) == []


def test_a_run_begins_without_a_copy_where_there_is_no_room_for_one(
    rules: Config, database: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Usage(NamedTuple):
        free: int = 1_000

    monkeypatch.setattr(completed_copy.shutil, "disk_usage", lambda path: Usage())
    write(rules, "scheduler", begun(2, LATER))
    write(rules, "fetcher-01", results(2))
    drain(rules)
    (message,) = [record.getMessage() for record in caplog.records if "not kept" in record.getMessage()]
    assert message.startswith("The map of run #1 is not kept while run #2 is under way: it takes ")
    assert "The map of run 1 was not kept." in shown_map(database).note
