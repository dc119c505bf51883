"""The map in a schema of PostgreSQL, for its one writer: what differs from a file of SQLite.

Invariants:
- one writer has the schema at a time: its session holds a lock, which the server releases when the session ends;
- new rows go straight into the tables by COPY, in the transaction of the batch. The ingest numbers pages itself, so
  there is nothing to stage or to look up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from crawler.database.completed_map import copy_place
from crawler.database.dialect import Said, for_postgres, tables_for_postgres
from crawler.database.map_errors import MapLost, StoreError
from crawler.database.map_session import EngineFault, MapSession
from crawler.model.map_place import EngineMap, MapPlace
from ingest.postgres.map_schemas import has_schema, open_writer
from ingest.postgres.map_tables import all_tables, reading_indexes, reading_views
from ingest.postgres.packed_links import line_of, new_lines, packed, renewed
from ingest.postgres.page_lines import page_lines
from ingest.writing.engine import CopyNotMade, Difference, LinkSet, PackedRows, Row
from ingest.writing.page_writer import NEW_COLUMNS
from ingest.writing.schema import READING_INDEXES, READING_VIEWS, columns_of, json_list

_LOCK_SECONDS = 35  # the server gives up a connection that is dead after some 30 (crawler.engine.engine_connection.py)
_READER_SECONDS = 5  # that the ingest waits for readers of an index, or of a copy, at most
_MANY = 50  # rows: COPY takes more words with the server than one statement does
_LINK_COLUMNS = "page_links (from_page_id, discovered_run, last_run, kind, targets)"
_TABLES = (
    "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.relkind = 'r' AND n.nspname = %s"
)
_REPLACE = re.compile(r"^INSERT OR REPLACE INTO (\w+)")
_LOCK_NOT_AVAILABLE, _IS_THERE = "55P03", "23505"


@lru_cache(maxsize=512)
def _said(sql: str) -> Said:
    """`INSERT OR REPLACE` too, of tables with the key `id`."""
    found = _REPLACE.match(sql)
    if found is None:
        return for_postgres(sql)
    said = for_postgres(_REPLACE.sub(r"INSERT INTO \1", sql))
    values = ", ".join(f"{name} = excluded.{name}" for name in columns_of(found[1]) if name != "id")
    return said._replace(sql=f"{said.sql} ON CONFLICT (id) DO UPDATE SET {values}")


class PostgresEngine:
    """A schema."""

    is_one_transaction = False  # rows that were replaced in it could not be cleared away before its end

    def __init__(self, place: EngineMap) -> None:
        self.place: MapPlace = place
        self._map = place
        self.db: MapSession = open_writer(place, say=_said)
        try:
            with self.errors():
                self._take_lock()
        except BaseException:
            self.db.close()
            raise

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except EngineFault as problem:
            kind = MapLost if problem.is_connection_lost else StoreError
            raise kind(_describe(problem, self._map)) from problem

    def close(self) -> None:
        self.db.close()

    def _take_lock(self) -> None:
        """One writer: a session that died is forgotten by the server after a while, so this waits."""
        self.db.plain("SELECT set_config('lock_timeout', %s, false)", (f"{_LOCK_SECONDS}s",))
        self.db.plain("SELECT pg_advisory_lock(hashtext(%s))", (f"sumi-ripple {self._map.schema}",))
        self.db.plain("SELECT set_config('lock_timeout', '0', false)")

    # -- tables ----------------------------------------------------------------------------------------

    def tables(self) -> set[str]:
        return self._tables_of(self._map.schema)

    def _tables_of(self, schema: str) -> set[str]:
        return {name for (name,) in self.db.plain(_TABLES, (schema,))}

    def run_script(self, sql: str) -> None:
        self.db.plain(tables_for_postgres(sql))

    def make_tables(self) -> None:
        if not has_schema(self.db, self._map.schema):
            self.db.plain(f"CREATE SCHEMA {self._map.schema}")
        self.db.plain(all_tables())

    def make_reading_aids(self, *, is_complete: bool) -> None:
        for sql in (*reading_indexes(is_complete=is_complete), *reading_views()):
            self.db.plain(sql)

    def drop_reading_aids(self) -> None:
        """An index that somebody reads stays, and is kept up: waiting for the reader would stop the crawl."""
        views = "".join(f"DROP VIEW IF EXISTS {name};" for name in READING_VIEWS)
        self._try_soon(views)
        for name in READING_INDEXES:
            self._try_soon(f"DROP INDEX IF EXISTS {name}")

    def make_index(self, *, is_ahead: bool) -> bool:
        return False  # the server would make readers of the run under way wait

    def drop_indexes_ahead(self) -> None:
        """There are none."""

    def _try_soon(self, sql: str) -> bool:
        """Inside the open transaction. False: readers are in the way."""

        def soon() -> None:
            self.db.plain(f"SET LOCAL lock_timeout = '{_READER_SECONDS}s'")
            self.db.plain(sql)
            self.db.plain("SET LOCAL lock_timeout = 0")

        return self._try(soon, _LOCK_NOT_AVAILABLE)

    def _try(self, work: Callable[[], None], refusal: str) -> bool:
        """Inside the open transaction. False: the engine refused this work in this way, and nothing of it is done."""
        self.db.plain("SAVEPOINT trying")
        try:
            work()
        except EngineFault as problem:
            if problem.state != refusal:
                raise
            self.db.plain("ROLLBACK TO SAVEPOINT trying; RELEASE SAVEPOINT trying")
            return False
        self.db.plain("RELEASE SAVEPOINT trying")
        return True

    # -- transactions ----------------------------------------------------------------------------------

    def begin(self) -> None:
        self.db.plain("BEGIN")

    def begin_bulk(self) -> None:
        self.db.plain("SELECT set_config('synchronous_commit', 'off', false)")

    def end_bulk(self) -> None:
        if self.db.in_transaction:
            self.db.plain("COMMIT")
        self.db.plain("SELECT set_config('synchronous_commit', 'on', false)")
        self.db.plain("ANALYZE")

    def after_commit(self, *, is_last: bool) -> None:
        """The server looks after its own log."""

    # -- rows ------------------------------------------------------------------------------------------

    def stream(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[Row]:
        return self.db.stream(sql, parameters)

    def add_pages(self, rows: Iterable[Row]) -> None:
        self.db.copy_lines(f"pages ({', '.join(NEW_COLUMNS)})", page_lines(rows), null="")

    def add_packed(self, kind: PackedRows, numbers: Sequence[int], values: Mapping[str, Any]) -> int:
        """By COPY, which is several times as fast, but refuses them all where one is there already."""
        if len(numbers) >= _MANY:
            lines = (line.replace("\\", r"\\") for line in kind.lines(numbers, values))
            if self._try_copy(f"{kind.table} ({kind.columns})", lines):
                return len(numbers)
        return int(self.db.execute(kind.sql, {**values, "rows": json_list(numbers)}).rowcount) if numbers else 0

    def _try_copy(self, target: str, lines: Iterable[str]) -> bool:
        """Inside the open transaction. False: one of these rows is there."""
        return self._try(lambda: self.db.copy_lines(target, lines), _IS_THERE)

    def add_links(self, found: Iterable[LinkSet], run: int) -> None:
        self.db.copy_lines(_LINK_COLUMNS, new_lines(found, run))

    def renew_links(self, found: Iterable[LinkSet], run: int) -> None:
        """Links that are found again leave their row for that of this run; those that are gone stay in theirs."""
        lines: list[str] = []
        for source, kind, targets in found:
            rows = self.db.plain(
                "SELECT discovered_run, last_run, kind, targets FROM page_links WHERE from_page_id = %s", (source,)
            ).fetchall()
            again = set(targets)
            for first, last, old_kind, known in rows:
                left = [target for target in known if target not in again]
                if len(left) == len(known):
                    continue
                self.db.plain(
                    "DELETE FROM page_links WHERE (from_page_id, discovered_run, last_run, kind) = (%s, %s, %s, %s)",
                    (source, first, last, old_kind),
                )
                if left:
                    lines.append(line_of(source, (first, last, old_kind), left))
            groups = renewed([(row[0], row[3]) for row in rows], kind, targets, run)
            lines += [line_of(source, group, numbers) for group, numbers in groups.items()]
        self.db.copy_lines(_LINK_COLUMNS, lines)

    def confirm_links(self, found: Iterable[tuple[int, int, int]], run: int) -> None:
        sql = "UPDATE page_links SET last_run = %s, kind = %s WHERE from_page_id = %s AND last_run = %s"
        for source, before, kind in found:
            self.db.plain(sql, (run, kind, source, before))

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        if table == "links":
            self.db.copy_lines(_LINK_COLUMNS, packed(rows))
        else:
            names = ", ".join(f'"{name}"' for name in columns)
            self.db.copy_rows(f"{table} ({names})", rows)

    def out_links(self, page: int, run: int) -> tuple[int, list[int]]:
        sql = "SELECT kind, targets FROM page_links WHERE from_page_id = %s AND last_run = %s"
        rows = self.db.plain(sql, (page, run)).fetchall()
        return max((kind for kind, _ in rows), default=0), [target for _, targets in rows for target in targets]

    def linked_ever(self, page: int) -> set[int]:
        rows = self.db.plain("SELECT targets FROM page_links WHERE from_page_id = %s", (page,)).fetchall()
        return {target for (targets,) in rows for target in targets}

    # -- whole maps ------------------------------------------------------------------------------------

    def compare(self, older: MapPlace) -> Difference:
        if not isinstance(older, EngineMap) or older.url != self._map.url:
            from ingest.writing.comparison_across import compare_across

            return compare_across(self._map, older)
        old = older.schema

        def first(sql: str) -> int:
            return int(self.db.plain(sql).fetchone()[0])

        same = f"pages n JOIN {old}.pages o ON o.url_hash = n.url_hash AND o.url = n.url"
        shared = first(f"SELECT count(*) FROM {same}")
        states = self.db.plain(
            f"SELECT o.state, n.state, count(*) AS c FROM {same} WHERE o.state <> n.state"
            " GROUP BY 1, 2 ORDER BY c DESC, 1, 2"
        ).fetchall()
        classes = self.db.plain(
            f"SELECT o.class, n.class, count(*) AS c FROM domain_states n JOIN {old}.domain_states o USING (domain)"
            " WHERE o.class <> n.class GROUP BY 1, 2 ORDER BY c DESC, 1, 2"
        ).fetchall()
        return Difference(
            first(f"SELECT count(*) FROM {old}.pages") - shared,
            first("SELECT count(*) FROM pages") - shared,
            tuple(states),
            first(f"SELECT count(*) FROM {same} WHERE o.depth IS DISTINCT FROM n.depth"),
            tuple(classes),
            first("SELECT count(*) FROM frontier"),
        )

    def keep_copy(self, on_step: Callable[[], None]) -> None:
        """A schema of its own: readers ask it what they ask the live one, and the tables that a run writes to need no
        column that tells versions apart. In one transaction, so there is a whole copy or none.
        """
        copy = copy_place(self._map).name
        try:
            self.db.plain("BEGIN")
            if not self._try_soon(f"DROP SCHEMA IF EXISTS {copy} CASCADE"):
                raise CopyNotMade("somebody still reads the copy of the run before")
            tables = sorted(self.tables())
            self.db.plain(f"CREATE SCHEMA {copy}; SET LOCAL search_path TO {copy}")
            self.db.plain(all_tables())
            made = self._tables_of(copy)
            for table in tables:
                source = f"{self._map.schema}.{table}"
                if table not in made:
                    self.db.plain(f"CREATE TABLE {table} (LIKE {source} INCLUDING ALL)")
                self.db.plain(f"INSERT INTO {table} SELECT * FROM {source}")
                on_step()
            self.make_reading_aids(is_complete=True)
            self.db.plain("COMMIT")
        except EngineFault as problem:
            raise CopyNotMade(str(problem)) from None
        finally:
            if self.db.in_transaction:
                self.db.plain("ROLLBACK")

    def put_copy_aside(self) -> None:
        """It goes: comparing two runs builds the maps of both from their results."""
        copy = copy_place(self._map).name
        if has_schema(self.db, copy):
            self.db.plain("BEGIN")
            self._try_soon(f"DROP SCHEMA {copy} CASCADE")
            self.db.plain("COMMIT")


def _describe(problem: EngineFault, place: EngineMap) -> str:
    """An error of the engine in one sentence, with advice."""
    if problem.is_connection_lost:
        return f"the connection to the engine was lost ({problem}); it goes on when the engine is back, nothing is lost"
    if problem.state == _LOCK_NOT_AVAILABLE:
        return f"another process writes the map {place}; stop it first, or wait until it has ended"
    if problem.state.startswith("53"):
        return f"the engine has no room for {place} ({problem}); make room and start again, nothing is lost"
    if problem.state in ("42501", "28000"):
        return f"the engine does not let this user write {place} ({problem}); grant it what it lacks and start again"
    return f"the map {place} failed: {problem}"
