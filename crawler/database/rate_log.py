"""Rates over time, in a small file of their own: one row a second, rolled up to minutes and days as they are written.

The supervisor of a crawl is the only writer. A row holds what came in its interval (pages, errors, requests), so rows
add up, and how things stood at its end (waiting, known, in flight). Seconds are kept for an hour, minutes for a week,
days for ever: some 14,000 rows. The map knows nothing of it, and nothing depends on it: a write that fails is skipped.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from crawler.database.reader import connect

log = logging.getLogger("sumi.rates")

SECOND, MINUTE, DAY = 1, 60, 86_400
KEPT = {SECOND: 3_600, MINUTE: 7 * DAY}  # seconds
_COLUMNS = "at, pages, errors, requests, waiting, known, in_flight"
_TABLE = """
CREATE TABLE IF NOT EXISTS rates (
    step            INTEGER NOT NULL,          -- seconds: 1, 60, 86400
    at              INTEGER NOT NULL,          -- the beginning of the interval, in seconds since 1970
    pages           INTEGER NOT NULL,
    errors          INTEGER NOT NULL,
    requests        INTEGER NOT NULL,
    waiting         INTEGER NOT NULL,          -- at the end of the interval, as the next two
    known           INTEGER NOT NULL,
    in_flight       INTEGER NOT NULL,
    PRIMARY KEY (step, at)
) WITHOUT ROWID
"""
_ADD = (
    "INSERT INTO rates VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(step, at) DO UPDATE SET"
    " pages = pages + excluded.pages, errors = errors + excluded.errors, requests = requests + excluded.requests,"
    " waiting = excluded.waiting, known = excluded.known, in_flight = excluded.in_flight"
)


class RateRow(NamedTuple):
    """One interval that begins at `at`."""

    at: int
    pages: int
    errors: int
    requests: int
    waiting: int
    known: int
    in_flight: int


def rates_path(workspace: Path) -> Path:
    return workspace / "rates.db"


def add_rates(path: Path, rows: Sequence[RateRow], now: int) -> None:
    """Add seconds, and roll them up. A failure is ignored: these rows are lost."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=1)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = OFF")
            db.execute("BEGIN IMMEDIATE")
            db.execute(_TABLE)
            steps = (SECOND, MINUTE, DAY)
            db.executemany(_ADD, [(step, row.at - row.at % step, *row[1:]) for step in steps for row in rows])
            for step, seconds in KEPT.items():
                db.execute("DELETE FROM rates WHERE step = ? AND at < ?", (step, now - seconds))
            db.execute("COMMIT")
    except sqlite3.Error as problem:
        log.debug("rates are not kept: %s", problem)


def read_rates(path: Path, step: int, since: int) -> list[RateRow]:
    """The rows of a step from this moment on, oldest first; none where nothing was kept."""
    if not path.is_file():
        return []
    try:
        with closing(connect(path, 1)) as db:
            rows = db.execute(
                f"SELECT {_COLUMNS} FROM rates WHERE step = ? AND at >= ? ORDER BY at", (step, since)
            ).fetchall()
    except sqlite3.Error:
        return []
    return [RateRow(*row) for row in rows]
