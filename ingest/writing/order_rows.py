"""Orders that were taken up: so that none is taken up twice, and people can see which were.

The table is made where it is missing, and is no part of the map's format: an older program took up no orders.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from crawler.model.records import OrderEvent
from ingest.writing.engine import MapConnection

_TABLE = """
CREATE TABLE IF NOT EXISTS orders (
    id              TEXT PRIMARY KEY,
    run             INTEGER NOT NULL,          -- the run that took it up
    at              TEXT NOT NULL,
    action          TEXT NOT NULL,             -- seed | add | clear
    who             TEXT NOT NULL,
    wires           TEXT NOT NULL              -- JSON: the URLs
) WITHOUT ROWID
"""


def prepare_orders(db: MapConnection) -> None:
    db.execute(_TABLE)


def write_orders(db: MapConnection, orders: Sequence[OrderEvent]) -> None:
    db.executemany(
        "INSERT OR IGNORE INTO orders VALUES (?, ?, ?, ?, ?, ?)",
        [
            (each.order, each.run, each.at, each.action, each.who, orjson.dumps(each.wires).decode("utf-8", "replace"))
            for each in orders
        ],
    )
