"""Questions that need no snapshot, for `status` and the live view. None where there is no map that answers."""

from __future__ import annotations

from typing import NamedTuple

from crawler.database.map_errors import MapError, NoDatabase
from crawler.database.reader import open_map
from crawler.model.map_place import MapPlace
from crawler.workspace.log import Cursor

_PATIENCE = 2  # seconds to wait for a lock
_MOST_CLOSED = 20  # closed domains that are named


def spool_positions(database: MapPlace) -> dict[str, Cursor] | None:
    """The place up to which each result log was applied to the map."""
    try:
        with open_map(database, patience=_PATIENCE) as reader:
            rows = reader.all("SELECT writer, segment, offset FROM spool_positions")
    except MapError:
        return None
    return {writer: Cursor(segment, offset) for writer, segment, offset in rows}


def map_fault(database: MapPlace) -> str | None:
    """Why the map does not answer; None: it does, or there is none yet."""
    try:
        with open_map(database, patience=_PATIENCE) as reader:
            reader.number("SELECT 1")
    except NoDatabase:
        return None
    except MapError as problem:
        return str(problem)
    return None


def results_kept_from(database: MapPlace) -> int | None:
    """The oldest run whose results are kept; None: those of all runs are."""
    try:
        with open_map(database, patience=_PATIENCE) as reader:
            row = reader.first("SELECT value FROM meta WHERE name = 'results_kept_from_run'")
    except MapError:
        return None
    return None if row is None else int(row[0])


class PlannedVisits(NamedTuple):
    """What `[revisit] schedule` has planned for the pages of a run.

    `next_at` is when the first of those is due that are not yet; None: all are due.
    """

    pages: int
    due: int
    next_at: str | None


def planned_visits(database: MapPlace, run: int, now: str) -> PlannedVisits | None:
    """None: the run has planned nothing; its pages are visited with the next one."""
    try:
        with open_map(database, patience=_PATIENCE) as reader:
            if not reader.has("revisits"):
                return None
            row = reader.first(
                "SELECT count(*), count(*) FILTER (WHERE next_crawl_at IS NULL OR next_crawl_at <= ?1),"
                " min(next_crawl_at) FILTER (WHERE next_crawl_at > ?1) FROM revisits WHERE run = ?2",
                (now, run),
            )
    except MapError:
        return None
    return PlannedVisits(row[0], row[1], row[2]) if row is not None and row[0] else None


def open_breakers(database: MapPlace, run: int, *, is_uncut: bool = False) -> tuple[int, list[tuple[str, str, str]]]:
    """The number of domains whose circuit breaker is not closed, and the first of them (`is_uncut`: all), with
    state and reason.
    """
    most = -1 if is_uncut else _MOST_CLOSED
    those = "FROM breakers JOIN domain_states d USING (id) WHERE breakers.run = ? AND state <> 'closed'"
    try:
        with open_map(database, patience=_PATIENCE) as reader:
            if not reader.has("breakers"):
                return 0, []
            count = reader.number(f"SELECT count(*) {those}", (run,))
            sql = f"SELECT domain, state, coalesce(detail, '') {those} ORDER BY domain LIMIT {most}"
            rows = reader.all(sql, (run,))
    except MapError:
        return 0, []
    return count, [(str(domain), str(state), str(detail)) for domain, state, detail in rows]


def closed_domains(database: MapPlace, run: int, *, is_uncut: bool = False) -> tuple[int, list[tuple[str, str]]]:
    """The number of domains that are closed in a run, and the first of them (`is_uncut`: all) with the reason."""
    most = -1 if is_uncut else _MOST_CLOSED
    closed = "FROM domain_states WHERE run = ? AND closed_reason IS NOT NULL"
    try:
        with open_map(database, patience=_PATIENCE) as reader:
            count = reader.number(f"SELECT count(*) {closed}", (run,))
            rows = reader.all(f"SELECT domain, closed_reason {closed} ORDER BY domain LIMIT {most}", (run,))
    except MapError:
        return 0, []
    return count, [(str(domain), str(reason)) for domain, reason in rows]
