"""The log goes back into the database beside the work: nothing is lost, and it does not grow for ever."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.model.settings import Config
from ingest.sqlite import checkpoint
from ingest.sqlite.checkpoint import Checkpoints
from ingest.writing.store import Store
from tests.ingest.terrains import ingest_all, read_database, read_plainly, results_of
from tests.ingest.test_loop import web


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "map.db"


@pytest.fixture
def db(database: Path) -> Iterator[sqlite3.Connection]:
    made = sqlite3.connect(database, isolation_level=None)
    for sql in ("journal_mode = WAL", "wal_autocheckpoint = 0", "journal_size_limit = 0"):
        made.execute(f"PRAGMA {sql}")
    made.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT)")
    yield made
    made.close()


def write(db: sqlite3.Connection, number: int) -> None:
    db.execute("BEGIN IMMEDIATE")
    db.executemany("INSERT INTO t VALUES (?, ?)", [(number * 100 + n, "x" * 500) for n in range(100)])
    db.execute("COMMIT")


def log_of(database: Path) -> int:
    return database.with_name(f"{database.name}-wal").stat().st_size


@pytest.mark.parametrize("is_last", [False, True])
def test_a_short_log_goes_back_beside_the_work_only_where_it_may_be_the_last(
    database: Path, db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, is_last: bool
) -> None:
    monkeypatch.setattr(checkpoint, "SOME", 10_000)
    checkpoints = Checkpoints(database)
    write(db, 1)
    checkpoints.begin_if_due(db, is_last=is_last)
    checkpoints.finish()
    alone = sqlite3.connect(f"file:{database}?mode=ro&immutable=1", uri=True)  # reads no log
    found = alone.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] if database.stat().st_size else 0
    assert (found == 1) is is_last
    alone.close()


def test_the_log_stays_short_and_everything_is_there(
    database: Path, db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "LONG", 200_000)
    monkeypatch.setattr(checkpoint, "TOO_LONG", 800_000)
    checkpoints = Checkpoints(database)
    longest = 0
    for number in range(200):
        write(db, number)
        checkpoints.begin_if_due(db)
        longest = max(longest, log_of(database))
    checkpoints.finish()
    assert longest < 1_000_000, "twelve megabytes went through it"
    other = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    assert other.execute("SELECT count(*), sum(length(text)) FROM t").fetchone() == (20_000, 10_000_000)
    assert other.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    other.close()


def test_somebody_who_reads_for_long_only_makes_the_log_longer(
    database: Path, db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "LONG", 50_000)
    monkeypatch.setattr(checkpoint, "TOO_LONG", 400_000)
    checkpoints = Checkpoints(database)
    write(db, 0)
    reader = sqlite3.connect(f"file:{database}?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM t").fetchone() == (100,)
    for number in range(1, 40):
        write(db, number)
        checkpoints.begin_if_due(db)
    assert reader.execute("SELECT count(*) FROM t").fetchone() == (100,), "a reader sees what it saw"
    assert log_of(database) > 400_000
    reader.execute("COMMIT")
    reader.close()
    for number in range(40, 60):
        write(db, number)
        checkpoints.begin_if_due(db)
        checkpoints.finish()
        db.execute("PRAGMA wal_checkpoint(PASSIVE)")
    assert log_of(database) < 400_000
    assert db.execute("SELECT count(*) FROM t").fetchone() == (6_000,)


def test_the_map_is_the_same_with_a_checkpoint_after_every_commit(
    rules: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "LONG", 0)
    begun: list[str] = []
    begin_if_due = Checkpoints.begin_if_due

    def counted(checkpoints: Checkpoints, db: sqlite3.Connection, *, is_last: bool) -> None:
        begin_if_due(checkpoints, db, is_last=is_last)
        if checkpoints._thread is not None:
            begun.append(checkpoints._thread.name)

    monkeypatch.setattr(Checkpoints, "begin_if_due", counted)
    expected = read_plainly(web(), 2)
    assert read_database(ingest_all(rules, results_of(web(), expected), 1)) == expected
    assert begun
    store = Store(rules.output.database_path, rules)
    assert store.db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    store.close()
