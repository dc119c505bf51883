"""Transactions of the one writer: a commit per batch, or one for a whole map that is being rebuilt."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Transactions:
    """At most one transaction is open at a time. `on_rollback` is called before one is rolled back."""

    def __init__(self, db: sqlite3.Connection, on_rollback: Callable[[], None]) -> None:
        self._db = db
        self._on_rollback = on_rollback
        self._is_bulk = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Inside a transaction, a new one or the open one. An error in the block rolls all of it back."""
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._on_rollback()
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def commit(self) -> None:
        """End the open transaction; inside a bulk load it goes on."""
        if not self._is_bulk:
            self._db.execute("COMMIT")

    def begin_bulk(self) -> None:
        """Build a whole map: nobody reads it before it is complete, and after a crash it is built again.

        So there is no journal, nothing is synced, all commits are one transaction, and pages that are written often
        go to the file when the cache is full.
        """
        self._is_bulk = True
        for sql in (
            "PRAGMA journal_mode = OFF",
            "PRAGMA synchronous = OFF",
            "PRAGMA cache_size = -262144",
        ):
            self._db.execute(sql)

    def end_bulk(self) -> None:
        """The map is complete: from here on it is written like any other."""
        self._is_bulk = False
        if self._db.in_transaction:
            self._db.execute("COMMIT")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA journal_mode = WAL")
