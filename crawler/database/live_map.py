"""A map that the ingest writes at the same time. Every question sees the newest commit.

The ingest may not have made the map yet, or may put a rebuilt one in its place at any moment. Whatever goes wrong with
a question is MapAway: open the map again later, and ask everything again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crawler.database.map_errors import MapAway, MapError
from crawler.database.map_session import EngineFault, MapSession
from crawler.database.reader import Row, check_format, connect
from crawler.model.map_place import EngineMap, MapPlace

_PATIENCE = 5  # seconds to wait for a lock


class LiveMap:
    """Read-only questions to the map at `path`. `map_id` names the map that was opened."""

    def __init__(self, path: MapPlace) -> None:
        self.path = path
        self.map_id: str | None = None
        self._db: sqlite3.Connection | MapSession | None = None
        self._identity: tuple[int, int] | None = None  # of what was opened: another file may come to its place

    @property
    def is_open(self) -> bool:
        return self._db is not None

    def open(self) -> None:
        """Connect, if the map is there and complete. Raises MapAway."""
        self.close()
        try:
            if isinstance(self.path, EngineMap):
                self._db = _session(self.path)
            else:
                self._identity = _inode(self.path)
                self._db = connect(self.path, _PATIENCE)
                self._db.execute("PRAGMA cache_size = -8192")
                check_format(self._db, self.path)
            self.map_id = self.meta("map_id")
            if self.map_id is None or (isinstance(self.path, Path) and _inode(self.path) != self._identity):
                raise MapAway("the map is not ready")
        except MapAway:
            self.close()
            raise
        except (OSError, sqlite3.Error, EngineFault, MapError) as problem:
            self.close()
            raise MapAway(str(problem)) from None

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db = None

    def has_been_replaced(self) -> bool:
        """Is there another file, or another map, than the one that was opened?"""
        try:
            if isinstance(self.path, Path) and _inode(self.path) != self._identity:
                return True
            return self.meta("map_id") != self.map_id
        except OSError:
            return True

    def meta(self, name: str) -> str | None:
        rows = self.ask("SELECT value FROM meta WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def has(self, table: str) -> bool:
        """Does the map have this table?"""
        if isinstance(self.path, EngineMap):
            return bool(self.ask("SELECT 1 WHERE to_regclass(?) IS NOT NULL", (f"{self.path.schema}.{table}",)))
        return bool(self.ask("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)))

    def ask(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """The rows of an answer. Raises MapAway."""
        if self._db is None:
            raise MapAway("the map is not open")
        try:
            return self._db.execute(sql, parameters).fetchall()
        except (sqlite3.Error, EngineFault) as problem:
            raise MapAway(str(problem)) from None


def _session(place: EngineMap) -> MapSession:
    """Every statement is a transaction of its own, which may write nothing, and waits for no lock for long."""
    from crawler.database.engine_reader import check_schema, open_session

    session = open_session(place, "live map")
    try:
        session.plain("SELECT set_config('default_transaction_read_only', 'on', false)")
        session.plain("SELECT set_config('lock_timeout', %s, false)", (f"{_PATIENCE}s",))
        check_schema(session)
    except BaseException:
        session.close()
        raise
    return session


def _inode(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino
