"""Transactions of the one writer: a commit per batch, or one for a whole map that is being rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from crawler.database.map_errors import StoreError
from ingest.writing.engine import MapEngine


class Transactions:
    """At most one transaction is open at a time. `on_rollback` is called before one is rolled back."""

    def __init__(self, engine: MapEngine, on_rollback: Callable[[], None]) -> None:
        self._engine = engine
        self._db = engine.db
        self._on_rollback = on_rollback
        self._is_bulk = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Inside a transaction, a new one or the open one. An error in the block rolls all of it back."""
        if not self._db.in_transaction:
            self._engine.begin()
        try:
            yield
        except BaseException:
            self._on_rollback()
            with suppress(StoreError), self._engine.errors():  # of a connection that is lost; the first error counts
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
            raise

    def commit(self) -> None:
        """End the open transaction; inside a bulk load it may go on."""
        if not (self._is_bulk and self._engine.is_one_transaction):
            self._db.execute("COMMIT")

    def begin_bulk(self) -> None:
        """Build a whole map: nobody reads it before it is complete, and after a crash it is built again."""
        self._is_bulk = True
        self._engine.begin_bulk()

    def end_bulk(self) -> None:
        """The map is complete: from here on it is written like any other."""
        self._is_bulk = False
        self._engine.end_bulk()
