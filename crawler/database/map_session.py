"""One connection to a map in the engine. It takes the statements that SQLite takes (`crawler.database.dialect`).

Values come back as they would from SQLite: numbers for conditions, whole numbers for sums. PostgreSQL keeps no NUL in a
text: U+FFFD stands in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from crawler.database.dialect import Parameters, Said, for_postgres
from crawler.engine.engine_connection import connect, reason_of
from crawler.model.map_place import EngineMap

if TYPE_CHECKING:
    import psycopg

_SENT = 400  # new rows of COPY that are sent at a time
_STREAMED = 20_000  # rows of a long answer in memory at a time
_CONNECTION_LOST = ("08", "57P")  # classes of SQLSTATE


class EngineFault(Exception):
    """The engine could not carry out a statement; the text has no credentials. `state` is its SQLSTATE, or empty."""

    def __init__(self, text: str, state: str = "") -> None:
        super().__init__(text)
        self.state = state

    @property
    def is_connection_lost(self) -> bool:
        return not self.state or self.state.startswith(_CONNECTION_LOST)


class MapSession:
    """Statements about the map at `place`. Each raises EngineFault."""

    def __init__(self, place: EngineMap, purpose: str, say: Callable[[str], Said] = for_postgres) -> None:
        """Raises EngineError where there is no connection."""
        self.place = place
        self._say = say
        self._names = count(1)
        self.connection: psycopg.Connection[Any] = connect(place.url, purpose)
        _adapt(self.connection)
        # No question here is so long that compiling it first (jit) would be worth its tenth of a second.
        self.plain("SELECT set_config('search_path', %s, false), set_config('jit', 'off', false)", (place.schema,))

    @property
    def in_transaction(self) -> bool:
        return bool(self.connection.info.transaction_status)

    def execute(self, sql: str, parameters: Parameters = (), /) -> Any:
        said = self._say(sql)
        return self.plain(said.sql, said.values(parameters))

    def executemany(self, sql: str, rows: Iterable[Any], /) -> Any:
        said = self._say(sql)
        cursor = self.connection.cursor()
        with engine_faults():
            cursor.executemany(said.sql, [said.values(row) for row in rows] if said.is_numbered else list(rows))
        return cursor

    def plain(self, sql: str, parameters: Parameters | None = None) -> Any:
        """A statement in PostgreSQL's own words; without parameters it may be several."""
        with engine_faults():
            return self.connection.execute(sql, parameters)

    def stream(self, sql: str, parameters: Parameters = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a long answer, a part of them at a time."""
        return self.named_stream(sql, parameters)[1]

    def named_stream(self, sql: str, parameters: Parameters = ()) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
        """The names of the columns too. Inside the open transaction, or in one of its own."""
        said = self._say(sql)
        is_own = not self.in_transaction
        if is_own:
            self.plain("BEGIN READ ONLY")
        cursor: Any = self.connection.cursor(name=f"rows_{next(self._names)}")
        cursor.itersize = _STREAMED
        try:
            with engine_faults():
                cursor.execute(*self._for_cursor(said.sql, said.values(parameters)))
        except EngineFault:
            self._end_stream(cursor, is_own)
            raise
        return tuple(column[0] for column in cursor.description or ()), self._rows_of(cursor, is_own)

    def _for_cursor(self, sql: str, values: Parameters) -> tuple[Any, Parameters | None]:
        """PostgreSQL cannot tell the type of a NULL that is bound to a cursor: psycopg writes the values out then."""
        import psycopg

        if None not in (values.values() if isinstance(values, Mapping) else values):
            return sql, values
        return psycopg.ClientCursor(self.connection).mogrify(sql, values), None

    def _rows_of(self, cursor: Any, is_own: bool) -> Iterator[tuple[Any, ...]]:
        try:
            with engine_faults():
                while chunk := cursor.fetchmany(_STREAMED):
                    yield from chunk
        finally:
            self._end_stream(cursor, is_own)

    def _end_stream(self, cursor: Any, is_own: bool) -> None:
        import psycopg

        try:
            if not self.connection.closed:
                cursor.close()
                if is_own and self.in_transaction:
                    self.connection.execute("ROLLBACK")
        except psycopg.Error:
            pass  # the connection is lost, and whoever asks next hears of it

    def copy_rows(self, target: str, rows: Iterable[Sequence[Any]]) -> None:
        """New rows for a table, which must not be there yet: `target` names it with its columns."""
        with engine_faults(), self.connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def copy_lines(self, target: str, lines: Iterable[str], null: str = "\\N") -> None:
        """The same from lines of COPY's own text format, in which NULL is written as `null`."""
        rest = iter(lines)
        part = "".join(islice(rest, _SENT))
        if not part:
            return
        sql = f"COPY {target} FROM STDIN (NULL '{null}')"
        with engine_faults(), self.connection.cursor() as cursor, cursor.copy(sql) as copy:
            while part:
                copy.write(part)
                part = "".join(islice(rest, _SENT))

    def close(self) -> None:
        self.connection.close()


@contextmanager
def engine_faults() -> Iterator[None]:
    """Errors of the engine inside the block become EngineFault."""
    import psycopg

    try:
        yield
    except psycopg.Error as problem:
        raise EngineFault(reason_of(problem), problem.sqlstate or "") from None


def _adapt(connection: psycopg.Connection[Any]) -> None:
    numbers, truths, texts, sums, conditions = _adapters()
    adapters = connection.adapters
    adapters.register_dumper(int, numbers)
    adapters.register_dumper(bool, truths)
    adapters.register_dumper(str, texts)
    adapters.register_loader("numeric", sums)
    adapters.register_loader("bool", conditions)


@cache
def _adapters() -> tuple[type[Any], ...]:
    from psycopg.adapt import Dumper, Loader
    from psycopg.types.numeric import Int8Dumper
    from psycopg.types.string import StrDumper

    class Truth(Dumper):
        oid = Int8Dumper.oid

        def dump(self, obj: Any) -> bytes:
            return b"1" if obj else b"0"

    class Text(StrDumper):
        def dump(self, obj: str) -> Any:
            return super().dump(obj.replace("\0", "\ufffd") if "\0" in obj else obj)

    class Sum(Loader):
        def load(self, data: Any) -> int | float:
            text = bytes(data)
            return float(text) if b"." in text else int(text)

    class Condition(Loader):
        def load(self, data: Any) -> int:
            return int(bytes(data) == b"t")

    return Int8Dumper, Truth, Text, Sum, Condition
