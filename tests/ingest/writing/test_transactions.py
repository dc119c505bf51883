"""One transaction at a time; an error takes all of it back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.sqlite.sqlite_engine import SqliteEngine
from ingest.sqlite.write_connection import open_for_writing
from ingest.writing.transactions import Transactions


class Table:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.engine = SqliteEngine(path)
        self.db = self.engine.db
        self.db.execute("CREATE TABLE t (x)")
        self.rollbacks = 0
        self.transactions = Transactions(self.engine, self.count)

    def count(self) -> None:
        self.rollbacks += 1

    def add(self) -> None:
        with self.transactions.writing():
            self.db.execute("INSERT INTO t VALUES (1)")

    def committed(self) -> int:
        """Rows that another connection sees."""
        other = open_for_writing(self.path)
        try:
            return int(other.execute("SELECT count(*) FROM t").fetchone()[0])
        finally:
            other.close()


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    made = Table(tmp_path / "map.db")
    yield made
    made.db.close()


def test_blocks_up_to_a_commit_are_one_transaction(table: Table) -> None:
    table.add()
    table.add()
    assert table.committed() == 0
    table.transactions.commit()
    assert table.committed() == 2


def test_an_error_takes_back_the_blocks_before_it_too(table: Table) -> None:
    table.add()
    with pytest.raises(KeyboardInterrupt), table.transactions.writing():
        table.db.execute("INSERT INTO t VALUES (2)")
        raise KeyboardInterrupt
    assert table.rollbacks == 1
    assert not table.db.in_transaction
    table.add()
    table.transactions.commit()
    assert table.committed() == 1


def test_a_bulk_load_is_one_transaction_and_ends_in_a_map_like_any_other(table: Table) -> None:
    table.transactions.begin_bulk()
    for _ in range(3):
        table.add()
        table.transactions.commit()
    assert table.db.in_transaction
    table.transactions.end_bulk()
    assert table.committed() == 3
    assert table.db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert table.db.execute("PRAGMA synchronous").fetchone() == (1,)
