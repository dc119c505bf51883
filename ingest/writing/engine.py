"""What the store needs of an engine: SQLite in a file, or a schema of PostgreSQL. One contract suite runs over both.

Rows are written by the rooms beside this one, in SQL that both engines read (`crawler.database.dialect`). An engine
does what differs: transactions, many new rows at once, how links lie on the disk, indexes, copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from crawler.model.errors import SumiError
from crawler.model.map_place import MapPlace

Row = tuple[Any, ...]
LinkSet = tuple[int, int, list[int]]  # from page, kind, to pages in ascending order


@dataclass(frozen=True, slots=True)
class PackedRows:
    """New rows of a table that come as a list of numbers, each of which holds a row.

    `sql` writes them from the parameter `:rows`, a list for json_each, and leaves rows that are there as they are.
    `lines` says the same rows as lines of tab-separated values, in the order of `columns`, without NULLs.
    """

    table: str
    columns: str
    sql: str
    lines: Callable[[Sequence[int], Mapping[str, Any]], Iterable[str]]


class CopyNotMade(SumiError):
    """There is no copy; the text says why, as a half sentence."""


class Rows(Protocol):
    """The answer to a statement."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class MapConnection(Protocol):
    """The one connection that writes. Statements are as `crawler.database.dialect` asks for them."""

    @property
    def in_transaction(self) -> bool: ...
    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ..., /) -> Rows: ...
    def executemany(self, sql: str, rows: Iterable[Any], /) -> Rows: ...


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between a map and an older one."""

    only_before: int
    only_now: int
    states: tuple[tuple[str, str, int], ...]  # (state before, state now, pages), most first
    depths: int  # pages whose least depth changed
    classes: tuple[tuple[str, str, int], ...]  # (class before, class now, domains)
    waiting: int

    def lines(self) -> list[str]:
        found = [f"pages only in the old map: {self.only_before:,}; only in the new one: {self.only_now:,}"]
        found += [f"pages that went from {was} to {now}: {count:,}" for was, now, count in self.states]
        if self.depths:
            found.append(f"pages with another depth: {self.depths:,}")
        found += [f"domains that went from {was} to {now}: {count:,}" for was, now, count in self.classes]
        found.append(f"pages still to be fetched under these rules: {self.waiting:,}")
        return found


class MapEngine(Protocol):
    """A map that is open for its one writer."""

    place: MapPlace

    @property
    def db(self) -> MapConnection: ...

    def errors(self) -> AbstractContextManager[None]:
        """Errors of the engine inside the block become StoreError, with advice."""

    def close(self) -> None:
        """Close; what was committed is safe."""

    # -- tables ----------------------------------------------------------------------------------------

    def tables(self) -> set[str]:
        """The names of the tables that are there; empty before the map is made."""

    def run_script(self, sql: str) -> None:
        """Several statements that make or change tables, inside the open transaction."""

    def make_tables(self) -> None:
        """Make all tables of a new map, without the reading aids, inside the open transaction."""

    def make_reading_aids(self, *, is_complete: bool) -> None:
        """Make the indexes and views for readers, as far as they are missing: all, or those that a summary needs."""

    def drop_reading_aids(self) -> None:
        """A run begins: indexes would cost more than the links themselves. One that a reader uses may stay."""

    def make_index(self, *, is_ahead: bool) -> bool:
        """Make one of the missing indexes for readers, inside the open transaction. False: none is missing, or this
        engine does not. `is_ahead`: the run is still under way: only those that an added row joins and a changed one
        seldom touches.
        """

    def drop_indexes_ahead(self) -> None:
        """Drop those of a run that is under way again, inside the open transaction."""

    # -- transactions ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a transaction, as the one writer. Raises StoreError, or an error of the engine, if there is another."""

    def begin_bulk(self) -> None:
        """Build a whole map that nobody reads before it is complete: after a crash it is built again."""

    def end_bulk(self) -> None:
        """The map is complete, and safe from here on. No transaction is open afterwards."""

    @property
    def is_one_transaction(self) -> bool:
        """Are all commits of a bulk load one transaction?"""

    def after_commit(self, *, is_last: bool) -> None:
        """Upkeep between two batches. `is_last`: there may be nothing more to write."""

    # -- rows ------------------------------------------------------------------------------------------

    def stream(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[Row]:
        """The rows of a long answer, a part of them in memory at a time."""

    def add_pages(self, rows: Iterable[Row]) -> None:
        """New rows of `pages`, as `page_writer.NEW_COLUMNS` names their columns. Empty texts and family 0 are NULL."""

    def add_packed(self, kind: PackedRows, numbers: Sequence[int], values: Mapping[str, Any]) -> int:
        """New rows from numbers; `values` are those that all of them share. Returns how many were not there before."""

    def add_links(self, found: Iterable[LinkSet], run: int) -> None:
        """The links of pages that have had none before, found in this run."""

    def renew_links(self, found: Iterable[LinkSet], run: int) -> None:
        """The links of pages that have had some: those that are there again were seen last in this run."""

    def confirm_links(self, found: Iterable[tuple[int, int, int]], run: int) -> None:
        """(from page, run, kind): the links that were seen there last in that run are there again, now of this kind."""

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """New rows of any table, as another map has them. Those of `links` come page by page."""

    def out_links(self, page: int, run: int) -> tuple[int, list[int]]:
        """The kind of the links that this run saw on a page (all are of one; 0 without any), and their targets."""

    def linked_ever(self, page: int) -> set[int]:
        """The targets of all links that any visit of a page recorded."""

    # -- whole maps ------------------------------------------------------------------------------------

    def compare(self, older: MapPlace) -> Difference:
        """The difference between this map and an older one, wherever that is."""

    def keep_copy(self, on_step: Callable[[], None]) -> None:
        """Keep a copy for readers, before a run changes the map. Raises CopyNotMade: then there is none."""

    def put_copy_aside(self) -> None:
        """The map itself shows a completed run again: put the copy, if there is one, where only a comparison of the two
        runs looks for it. It may stay, or go, where that is not possible now.
        """
