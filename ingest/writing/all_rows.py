"""Every row of a map, table by table, for a copy in another engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from crawler.database.reader import MapReader
from ingest.writing.engine import MapEngine, Row
from ingest.writing.order_rows import prepare_orders
from ingest.writing.referrer_rows import ReferrerRows
from ingest.writing.reopening_rows import prepare_reopenings
from ingest.writing.schema import TABLES, columns_of
from ingest.writing.visit_counts import prepare_counts

_LATER = {  # tables that are made where they are missing
    "visit_counts": ("run", "kind", "name", "count"),
    "orders": ("id", "run", "at", "action", "who", "wires"),
    "reopenings": ("id", "run", "request", "lasting"),
    "page_referrers": ("id", "referrer"),
}


class TableRows(NamedTuple):
    table: str
    columns: tuple[str, ...]
    rows: Iterator[Row]


def rows_of_tables(reader: MapReader) -> Iterator[TableRows]:
    """All rows of the map. Those of `links` come page by page."""
    tables = {name: tuple(columns_of(name)) for name in re.findall(r"CREATE TABLE (\w+)", TABLES)} | _LATER
    for table, columns in tables.items():
        if reader.has(table):
            order = reader.ordered("from_page_id") if table == "links" else ""
            yield TableRows(table, columns, reader.rows(f"SELECT {', '.join(columns)} FROM {table}{order}"))


def format_of(reader: MapReader) -> str:
    """The version of the map's format, in words."""
    row = reader.first("SELECT value FROM meta WHERE name = 'schema_version'")
    return str(row[0]) if row else "missing"


def make_all_tables(engine: MapEngine, *, has_referrers: bool) -> None:
    """The tables of a map that rows of another one are to go into."""
    engine.begin()
    engine.make_tables()
    engine.db.execute("COMMIT")
    prepare_counts(engine)
    prepare_orders(engine.db)
    prepare_reopenings(engine.db)
    if has_referrers:
        ReferrerRows(engine)


def page_count(engine: MapEngine) -> int:
    return int(engine.db.execute("SELECT count(*) FROM pages").fetchone()[0])
