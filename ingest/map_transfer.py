"""A map from one engine to the other, row by row: `engine import` and `engine export`.

All rows keep their numbers, so that a crawl can go on from the copy, and everything that is told of it is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from crawler.database.format import SCHEMA_VERSION
from crawler.database.reader import MapReader, open_map
from crawler.model.errors import SumiError
from crawler.model.map_place import MapPlace
from ingest import whole_maps
from ingest.writing.all_rows import format_of, make_all_tables, page_count, rows_of_tables
from ingest.writing.engines import engine_of
from ingest.writing.run_rows import complete_reading_aids


class TransferError(SumiError):
    """The map cannot be copied; the message says why."""


@dataclass(frozen=True, slots=True)
class WholeCopy:
    """A complete copy of a map, at a place for a while."""

    place: MapPlace
    pages: int


def copy_whole_map(source: MapPlace, target: MapPlace, on_table: Callable[[str], None] = lambda table: None) -> int:
    """Copy a map, of one moment, to a place where there is none; returns the number of its pages.

    `on_table` is called with the name of each table. Raises TransferError, MapError.
    """
    with whole_copy(source, target, on_table) as copy:
        whole_maps.put_in_place(copy.place, target)
    return copy.pages


@contextmanager
def whole_copy(
    source: MapPlace, target: MapPlace, on_table: Callable[[str], None] = lambda table: None
) -> Iterator[WholeCopy]:
    """The same, but the copy is yet to be put in its place; without that it is no map, and goes with this process."""
    if whole_maps.exists(target):
        raise TransferError(f"{target} exists already; move it aside first, a map is never overwritten")
    with whole_maps.scratch_of(target) as scratch:
        with open_map(source) as reader:
            pages = _copy(reader, scratch, on_table)
        yield WholeCopy(scratch, pages)


def _copy(reader: MapReader, target: MapPlace, on_table: Callable[[str], None]) -> int:
    if (version := format_of(reader)) != str(SCHEMA_VERSION):
        raise TransferError(
            f"{reader.path} has map format {version}, and only format {SCHEMA_VERSION} is copied; the next crawl, or "
            "sumi-ripple ingest CONFIG --drain, brings it up to date"
        )
    engine = engine_of(target)
    try:
        with engine.errors():
            engine.begin_bulk()
            make_all_tables(engine, has_referrers=reader.has("page_referrers"))
            for table, columns, rows in rows_of_tables(reader):
                on_table(table)
                engine.begin()
                engine.load(table, columns, rows)
                engine.db.execute("COMMIT")
            engine.begin()
            complete_reading_aids(engine)
            engine.end_bulk()
            return page_count(engine)
    finally:
        engine.close()
