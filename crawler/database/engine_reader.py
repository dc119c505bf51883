"""The reading door of a map in the engine: one snapshot (REPEATABLE READ) of a schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from crawler.database.dialect import Parameters
from crawler.database.map_errors import MapUnreachable, NoDatabase, NotAMap
from crawler.database.map_session import EngineFault, MapSession
from crawler.database.reader import MapReader, Row, check_tables
from crawler.engine.advice import advised
from crawler.engine.engine_connection import EngineError
from crawler.model.map_place import EngineMap

_TABLES = (
    "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v')"
    " AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s)"
)
_COLUMN = (
    "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = %s AND attnum > 0 AND NOT attisdropped"
)


class EngineReader(MapReader):
    """Questions to one snapshot. The transaction may write, but each question is asked in a part of it that may not;
    only notes, which are temporary tables, are made outside of that part.
    """

    def __init__(self, session: MapSession) -> None:
        self._session = session
        self.path = session.place

    def begin(self, patience: float) -> None:
        self._session.plain("SELECT set_config('lock_timeout', %s, false)", (str(int(patience * 1000)),))
        self._session.plain("SELECT set_config('cursor_tuple_fraction', '1', false)")
        self._session.plain("BEGIN ISOLATION LEVEL REPEATABLE READ")
        self._forbid_writing()

    def _forbid_writing(self) -> None:
        self._session.plain("SAVEPOINT question")
        self._session.plain("SET TRANSACTION READ ONLY")

    def rows(self, sql: str, parameters: Parameters = ()) -> Iterator[Row]:
        return self._session.stream(sql, parameters)

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        found: list[Row] = self._session.execute(sql, parameters).fetchall()
        return found

    def named_rows(self, sql: str, parameters: Parameters = ()) -> tuple[tuple[str, ...], Iterator[Row]]:
        return self._session.named_stream(sql, parameters)

    def first(self, sql: str, parameters: Parameters = ()) -> Row | None:
        row: Row | None = self._session.execute(sql, parameters).fetchone()
        return row

    def number(self, sql: str, parameters: Parameters = ()) -> int:
        return int(self._session.execute(sql, parameters).fetchone()[0])

    def note(self, sql: str, parameters: Parameters = ()) -> None:
        with self._noting(sql):
            self._session.execute(sql, parameters)

    def note_many(self, sql: str, rows: Iterable[Row]) -> None:
        with self._noting(sql):
            self._session.executemany(sql, rows)

    @contextmanager
    def _noting(self, sql: str) -> Iterator[None]:
        is_table = sql.startswith(("CREATE TEMP TABLE ", "DROP TABLE IF EXISTS temp."))
        if is_table:  # rows of a temporary table may be written anyway
            self._session.plain("RELEASE SAVEPOINT question")
        yield
        if is_table:
            self._forbid_writing()

    def has_note(self, table: str) -> bool:
        return self._is_there(f"pg_temp.{table}")

    def has(self, name: str) -> bool:
        return self._is_there(f"{self._session.place.schema}.{name}")

    def _is_there(self, name: str) -> bool:
        return bool(self._session.plain("SELECT to_regclass(%s) IS NOT NULL", (name,)).fetchone()[0])

    def has_column(self, table: str, column: str) -> bool:
        name = f"{self._session.place.schema}.{table}"
        return self._session.plain(_COLUMN, (name, column)).fetchone() is not None

    def ordered(self, columns: str) -> str:
        return f" ORDER BY {columns}"

    def links_to(self, links: str, page: str) -> str:
        return f"LATERAL links_to({page}) AS {links} ON true"


@contextmanager
def open_engine_map(place: EngineMap, patience: float) -> Iterator[MapReader]:
    """One snapshot of a map in the engine. Raises MapUnreachable, NoDatabase, NotAMap."""
    session = open_session(place, "reader")
    try:
        reader = EngineReader(session)
        reader.begin(patience)
        check_schema(session)
        yield reader
    except EngineFault as problem:
        raise NotAMap(place, str(problem)) from None
    finally:
        session.close()


def open_session(place: EngineMap, purpose: str) -> MapSession:
    """Raises MapUnreachable."""
    try:
        return MapSession(place, purpose)
    except EngineError as problem:
        raise MapUnreachable(advised(str(problem))) from None


def check_schema(session: MapSession) -> None:
    """Raises NoDatabase, and NotAMap unless this is a map whose format this program reads."""
    place = session.place
    tables = {name for (name,) in session.plain(_TABLES, (place.schema,))}
    if not tables:
        raise NoDatabase(place)
    check_tables(tables, lambda: session.plain("SELECT value FROM meta WHERE name = 'schema_version'"), place)
