"""The reading door: a map in one snapshot.

    with open_map(path) as reader:      raises NoDatabase, NotAMap
        reader.rows(...)                all answers are of the same moment, whatever the ingest commits meanwhile

Errors of the engine inside the block become NotAMap too. A `MapReader` is handed on as it is; only the rooms with SQL
call its methods. What a statement has to keep to, so that every engine reads it: `crawler.database.dialect`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crawler.database.dialect import Parameters
from crawler.database.format import OLDEST_READABLE, SCHEMA_VERSION
from crawler.database.map_errors import MapMoved, NoDatabase, NotAMap, other_place
from crawler.model.map_place import EngineMap, MapPlace

Row = tuple[Any, ...]

_POSITIONS = "SELECT writer, segment, offset FROM spool_positions ORDER BY writer"  # rows change together with these
_TABLES = {"meta", "runs", "pages", "links", "domain_states"}


class MapReader:
    """Questions to one snapshot of a map. Valid inside the `open_map` block that made it."""

    _positions: list[Row] | None = None  # up to which the map has applied its results; None: never look for newer ones

    def __init__(self, connection: sqlite3.Connection, path: Path, *, is_settled: bool = False) -> None:
        self._connection = connection
        self.path: MapPlace = path
        if is_settled:
            self._positions = self.all(_POSITIONS)

    def go_on(self) -> None:
        """A moment between two questions. A reader of a settled map takes a new snapshot, so that the log goes back
        into the file meanwhile: that would wait for the old one. Raises MapMoved if the map was not settled.
        """
        if self._positions is None:
            return
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN")
        if self.all(_POSITIONS) != self._positions:
            raise MapMoved(self.path)

    def rows(self, sql: str, parameters: Parameters = ()) -> Iterator[Row]:
        """The rows of an answer, one at a time."""
        return self._connection.execute(sql, parameters)

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """The rows of an answer."""
        return self._connection.execute(sql, parameters).fetchall()

    def named_rows(self, sql: str, parameters: Parameters = ()) -> tuple[tuple[str, ...], Iterator[Row]]:
        """The names of an answer's columns, and its rows, one at a time."""
        found = self._connection.execute(sql, parameters)
        return tuple(column[0] for column in found.description or ()), found

    def first(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row; None if there is none."""
        row: Row | None = self._connection.execute(sql, parameters).fetchone()
        return row

    def number(self, sql: str, parameters: Parameters = ()) -> int:
        """The one number that the answer consists of."""
        return int(self._connection.execute(sql, parameters).fetchone()[0])

    def note(self, sql: str, parameters: Parameters = ()) -> None:
        """Change a temporary table of this reader. The map itself cannot be changed."""
        self._connection.execute(sql, parameters)

    def note_many(self, sql: str, rows: Iterable[Row]) -> None:
        self._connection.executemany(sql, rows)

    def has_note(self, table: str) -> bool:
        """Has this reader made this temporary table?"""
        return self.first("SELECT 1 FROM temp.sqlite_master WHERE name = ?", (table,)) is not None

    def has(self, name: str) -> bool:
        """Does the map have this table, view or index?"""
        return self.first("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)) is not None

    def has_column(self, table: str, column: str) -> bool:
        """Does a table of this map, which may be of an older format, have this column?"""
        return self.first("SELECT 1 FROM pragma_table_info(?) WHERE name = ?", (table, column)) is not None

    def ordered(self, columns: str) -> str:
        """ORDER BY these columns, for an engine that does not read in that order anyway: SQLite takes tables as CROSS
        JOIN lists them, and each by its row ids.
        """
        return ""

    def links_to(self, links: str, page: str) -> str:
        """The links to a page, after JOIN: the table `links` under this name, with its condition. `page` is an SQL
        expression. Only where the map has `idx_links_to`; else every link would be read.
        """
        return f"links {links} ON {links}.to_page_id = {page}"


@contextmanager
def open_map(place: MapPlace, *, patience: float = 30, is_settled: bool = False) -> Iterator[MapReader]:
    """One snapshot of the map. `patience`: seconds to wait for a lock that another process holds. `is_settled`: its run
    is completed, and only indexes are added; `MapReader.go_on` makes use of that.
    """
    if isinstance(place, EngineMap):
        from crawler.database.engine_reader import open_engine_map

        with open_engine_map(place, patience) as reader:
            yield reader
        return
    path = Path(place)
    if not path.is_file():
        if path.exists():
            raise NotAMap(path, "it is not a file")
        raise NoDatabase(path)
    connection = _connect_anywhere(path, patience)
    try:
        check_format(connection, path)
        yield MapReader(connection, path, is_settled=is_settled)
    except sqlite3.DatabaseError as problem:
        raise NotAMap(path, str(problem)) from problem
    finally:
        connection.close()


def connect(path: Path, patience: float, options: str = "") -> sqlite3.Connection:
    """A read-only connection: the only one outside the ingest. As a URI, which may quote every character of a path."""
    uri = f"{path.absolute().as_uri()}?mode=ro{options}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=patience, cached_statements=64)


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Raises NotAMap unless this is a map whose format this program reads."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    check_tables(tables, lambda: connection.execute("SELECT value FROM meta WHERE name = 'schema_version'"), path)


def check_tables(tables: set[str], versions: Callable[[], Iterable[Row]], path: MapPlace) -> None:
    """Raises NotAMap unless these are the tables of a map, of a format that this program reads."""
    if not tables >= _TABLES:
        advice = f"; {other_place(path)}" if isinstance(path, EngineMap) else ""  # a file that is read may be any
        raise NotAMap(path, f"it has none of the tables of one{advice}")
    row = next(iter(versions()), None)
    version = str(row[0]) if row else "missing"
    try:
        number = int(version)
    except ValueError:
        raise NotAMap(path, f"its schema version is {version}") from None
    known = f"its schema version is {number}, and this program knows {SCHEMA_VERSION}"
    if number < OLDEST_READABLE:
        raise NotAMap(path, f"{known}; rebuild it from the spools with: sumi-ripple replay CONFIG --into new.db")
    if number > SCHEMA_VERSION:
        raise NotAMap(path, f"{known}; use a newer Sumi-Ripple")


def _connect_anywhere(path: Path, patience: float) -> sqlite3.Connection:
    """A connection inside a read transaction, on a read-only medium too."""
    try:
        return _begin(path, patience)
    except sqlite3.OperationalError as problem:
        # On a read-only medium WAL has no room for its index. Without a -wal file nothing is missed by doing without.
        wal = path.with_name(path.name + "-wal")
        is_locked = problem.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
        if is_locked or (wal.exists() and wal.stat().st_size):
            raise NotAMap(path, str(problem)) from None
    try:
        return _begin(path, patience, "&immutable=1")
    except sqlite3.OperationalError as problem:
        raise NotAMap(path, str(problem)) from None


def _begin(path: Path, patience: float, options: str = "") -> sqlite3.Connection:
    connection = connect(path, patience, options)
    try:
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute("PRAGMA automatic_index = OFF")  # it would copy all links rather than read a range of them
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        raise
    except sqlite3.DatabaseError as problem:
        connection.close()
        raise NotAMap(path, str(problem)) from None
    return connection
