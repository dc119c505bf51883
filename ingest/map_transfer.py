"""A map from one engine to the other, row by row: `engine import` and `engine export`.

All rows keep their numbers, so that a crawl can go on from the copy, and everything that is told of it is the same.
"""

from __future__ import annotations

from collections.abc import Callable

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


def copy_whole_map(source: MapPlace, target: MapPlace, on_table: Callable[[str], None] = lambda table: None) -> int:
    """Copy a map, of one moment, to a place where there is none; returns the number of its pages.

    `on_table` is called with the name of each table. Raises TransferError, MapError.
    """
    if whole_maps.exists(target):
        raise TransferError(f"{target} exists already; move it aside first, a map is never overwritten")
    scratch = whole_maps.scratch_of(target)
    try:
        with open_map(source) as reader:
            pages = _copy(reader, scratch, on_table)
        whole_maps.put_in_place(scratch, target)
    except BaseException:
        whole_maps.discard(scratch)
        raise
    return pages


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
