"""A map that the ingest writes at the same time. Every question sees the newest commit.

The ingest may not have made the map yet, or may put a rebuilt one in its place at any moment. Whatever goes wrong with
a question is MapAway: open the map again later, and ask everything again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crawler.database.map_errors import MapAway, NotAMap
from crawler.database.reader import Row, check_format, connect

_PATIENCE = 5  # seconds to wait for a lock


class LiveMap:
    """Read-only questions to the map at `path`. `map_id` names the map that was opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.map_id: str | None = None
        self._db: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None

    @property
    def is_open(self) -> bool:
        return self._db is not None

    def open(self) -> None:
        """Connect, if the map is there and complete. Raises MapAway."""
        self.close()
        try:
            self._inode = _inode(self.path)
            self._db = connect(self.path, _PATIENCE)
            self._db.execute("PRAGMA cache_size = -8192")
            check_format(self._db, self.path)
            self.map_id = self.meta("map_id")
            if self.map_id is None or _inode(self.path) != self._inode:
                raise MapAway("the map is not ready")
        except (OSError, sqlite3.Error, NotAMap) as problem:
            self.close()
            raise MapAway(str(problem)) from None
        except MapAway:
            self.close()
            raise

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db = None

    def has_been_replaced(self) -> bool:
        """Is the file at the path another one, or another map, than the one that was opened?"""
        try:
            return _inode(self.path) != self._inode or self.meta("map_id") != self.map_id
        except OSError:
            return True

    def meta(self, name: str) -> str | None:
        rows = self.ask("SELECT value FROM meta WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def ask(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """The rows of an answer. Raises MapAway."""
        if self._db is None:
            raise MapAway("the map is not open")
        try:
            return self._db.execute(sql, parameters).fetchall()
        except sqlite3.Error as problem:
            raise MapAway(str(problem)) from None


def _inode(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino
