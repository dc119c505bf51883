"""Domains that a person had reset: closures from before the reset count no longer.

The table is made where it is missing, and is no part of the map's format: an older program reset no domain.
"""

from __future__ import annotations

from collections.abc import Mapping

from ingest.memory.changes import Reopening
from ingest.writing.engine import MapConnection

_TABLE = """
CREATE TABLE IF NOT EXISTS reopenings (
    id              INTEGER PRIMARY KEY,       -- = domain_states.id
    run             INTEGER NOT NULL,
    request         INTEGER NOT NULL,          -- a 429 to this request of the run, or an earlier one, counts no longer
    lasting         TEXT                       -- a closure that a stronger one hides, and that a reset leaves
)
"""


def prepare_reopenings(db: MapConnection) -> None:
    db.execute(_TABLE)


def write_reopenings(db: MapConnection, found: Mapping[int, Reopening], run: int) -> None:
    db.executemany(
        "INSERT INTO reopenings VALUES (?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET run = excluded.run,"
        " request = excluded.request, lasting = excluded.lasting",
        [(number, run, each.request, each.lasting) for number, each in found.items()],
    )


def read_reopenings(db: MapConnection, run: int) -> dict[int, Reopening]:
    rows = db.execute("SELECT id, request, lasting FROM reopenings WHERE run = ?", (run,))
    return {number: Reopening(request, lasting) for number, request, lasting in rows}
