"""The map in a file of SQLite, for its one writer: what differs from other engines."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import orjson

from crawler.database.ids import pair_range, pair_sql
from crawler.model.map_place import EngineMap, MapPlace
from ingest.sqlite.checkpoint import Checkpoints
from ingest.sqlite.comparison import compare_maps
from ingest.sqlite.completed_copy import keep_copy, put_copy_aside
from ingest.sqlite.write_connection import open_for_writing, store_errors
from ingest.writing.engine import Difference, LinkSet, PackedRows, Row
from ingest.writing.page_writer import NEW_COLUMNS
from ingest.writing.schema import (
    FIRST_INDEXES,
    INDEXES_AHEAD,
    OWN_INDEXES,
    READING_INDEXES,
    READING_VIEWS,
    TABLES,
    json_list,
)

_LINKS = f"INTO links SELECT {pair_sql('?1', 'value')}, ?1, value, ?2, ?2, ?3 FROM json_each(?4)"
# One row for all of a page's links: half of the cost of fetching them one by one.
_OUT_LINKS = "SELECT max(kind), json_group_array(to_page_id) FROM links WHERE id BETWEEN ? AND ? AND last_run = ?"
_NEVER_EMPTY = {"id", "url", "domain", "state", "discovered_at", "discovered_run", "url_hash", "domain_id", "depth"}
_NEVER_EMPTY |= {"reach", "seen_run", "origin"}


def _mark(column: str) -> str:
    """Binding None costs more than writing a small row: sqlite3 looks for an adapter every time."""
    if column in _NEVER_EMPTY:
        return "?"
    return "nullif(?, 0)" if column == "family" else "nullif(?, '')"


_PAGES = f"INSERT INTO pages ({', '.join(NEW_COLUMNS)}) VALUES ({', '.join(map(_mark, NEW_COLUMNS))})"


class SqliteEngine:
    """A file. `checkpoint` says how its log goes back into it."""

    is_one_transaction = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place: MapPlace = path
        self.db: sqlite3.Connection = open_for_writing(path)
        self._checkpoints = Checkpoints(path)

    def errors(self) -> AbstractContextManager[None]:
        return store_errors(self.path)

    def close(self) -> None:
        """With everything in the one file: people copy databases without their -wal."""
        self._checkpoints.finish()
        with suppress(sqlite3.Error):  # the disk is full; commits are as safe in the -wal
            self._checkpoints.empty_log(self.db)
        self.db.close()

    # -- tables ----------------------------------------------------------------------------------------

    def tables(self) -> set[str]:
        return {row[0] for row in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def run_script(self, sql: str) -> None:
        statement = ""
        for line in sql.splitlines(keepends=True):  # executescript would commit first
            statement += line
            if sqlite3.complete_statement(statement):
                self.db.execute(statement)
                statement = ""

    def make_tables(self) -> None:
        self.run_script(TABLES)

    def make_reading_aids(self, *, is_complete: bool) -> None:
        indexes = READING_INDEXES if is_complete else FIRST_INDEXES
        for sql in (*(READING_INDEXES[name] for name in indexes), *READING_VIEWS.values()):
            self.db.execute(sql)

    def drop_reading_aids(self) -> None:
        for name in READING_VIEWS:
            self.db.execute(f"DROP VIEW IF EXISTS {name}")
        for name in READING_INDEXES:
            self.db.execute(f"DROP INDEX IF EXISTS {name}")

    def make_index(self, *, is_ahead: bool) -> bool:
        there = {name for (name,) in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
        wanted = INDEXES_AHEAD if is_ahead else (*OWN_INDEXES, *READING_INDEXES)
        missing = next((name for name in wanted if name not in there), None)
        if missing is not None:
            self.db.execute(READING_INDEXES[missing])
        return missing is not None

    def drop_indexes_ahead(self) -> None:
        for name in INDEXES_AHEAD:
            self.db.execute(f"DROP INDEX IF EXISTS {name}")

    # -- transactions ----------------------------------------------------------------------------------

    def begin(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")

    def begin_bulk(self) -> None:
        """No journal, nothing is synced, and pages that are written often go to the file when the cache is full."""
        for sql in (
            "PRAGMA journal_mode = OFF",
            "PRAGMA synchronous = OFF",
            "PRAGMA cache_size = -262144",
        ):
            self.db.execute(sql)

    def end_bulk(self) -> None:
        if self.db.in_transaction:
            self.db.execute("COMMIT")
        self.db.execute("PRAGMA synchronous = NORMAL")
        self.db.execute("PRAGMA journal_mode = WAL")

    def after_commit(self, *, is_last: bool) -> None:
        self._checkpoints.begin_if_due(self.db, is_last=is_last)

    # -- rows ------------------------------------------------------------------------------------------

    def stream(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[Row]:
        return self.db.execute(sql, parameters)

    def add_pages(self, rows: Iterable[Row]) -> None:
        self.db.executemany(_PAGES, rows)

    def add_packed(self, kind: PackedRows, numbers: Sequence[int], values: Mapping[str, Any]) -> int:
        return self.db.execute(kind.sql, {**values, "rows": json_list(numbers)}).rowcount

    def add_links(self, found: Iterable[LinkSet], run: int) -> None:
        # A page's links go in as one list: a third of the cost of binding them row by row (0.45 against 1.3 µs).
        rows = [(source, run, kind, json_list(targets)) for source, kind, targets in found]
        self.db.executemany(f"INSERT OR ROLLBACK {_LINKS}", rows)

    def renew_links(self, found: Iterable[LinkSet], run: int) -> None:
        self.db.executemany(
            f"INSERT {_LINKS} WHERE true"
            " ON CONFLICT(id) DO UPDATE SET last_run = excluded.last_run, kind = excluded.kind",
            [(source, run, kind, json_list(targets)) for source, kind, targets in found],
        )

    def confirm_links(self, found: Iterable[tuple[int, int, int]], run: int) -> None:
        self.db.executemany(
            "UPDATE OR ROLLBACK links SET last_run = ?, kind = ? WHERE id BETWEEN ? AND ? AND last_run = ?",
            [(run, kind, *pair_range(source), before) for source, before, kind in found],
        )

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        marks = ", ".join("?" * len(columns))
        self.db.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def out_links(self, page: int, run: int) -> tuple[int, list[int]]:
        kind, targets = self.db.execute(_OUT_LINKS, (*pair_range(page), run)).fetchone()
        return kind or 0, orjson.loads(targets)

    def linked_ever(self, page: int) -> set[int]:
        sql = "SELECT json_group_array(to_page_id) FROM links WHERE id BETWEEN ? AND ?"
        return set(orjson.loads(self.db.execute(sql, pair_range(page)).fetchone()[0]))

    # -- whole maps ------------------------------------------------------------------------------------

    def compare(self, older: MapPlace) -> Difference:
        if isinstance(older, EngineMap):
            from ingest.writing.comparison_across import compare_across

            return compare_across(self.path, older)
        return compare_maps(self.db, older)

    def keep_copy(self, on_step: Callable[[], None]) -> None:
        keep_copy(self.db, self.path, on_step)

    def put_copy_aside(self) -> None:
        put_copy_aside(self.path)
