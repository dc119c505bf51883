"""Runs with the figures and settings that were kept of them."""

from __future__ import annotations

from typing import NamedTuple

from crawler.database.reader import MapReader


class RunHistoryRow(NamedTuple):
    """A run. The figures are None for a run that is not finished, and for one of a map of an older format."""

    id: int
    started_at: str
    finished_at: str | None
    status: str
    config_hash: str
    pages: int | None
    known: int | None
    links: int | None
    errors: int | None
    domains: int | None


def run_history(reader: MapReader) -> list[RunHistoryRow]:
    """All runs, oldest first."""
    kept, join = "f.pages, f.known, f.links, f.errors, f.domains", "LEFT JOIN run_figures f ON f.id = r.id"
    if not reader.has("run_figures"):
        kept, join = "NULL, NULL, NULL, NULL, NULL", ""
    rows = reader.rows(
        f"SELECT r.id, r.started_at, r.finished_at, r.status, r.config_hash, {kept} FROM runs r {join} ORDER BY r.id"
    )
    return [RunHistoryRow(*row) for row in rows]


def run_settings(reader: MapReader) -> list[tuple[int, str]]:
    """(run, settings as recorded), in the order in which they came to hold."""
    if not reader.has("run_settings"):
        return []
    rows = reader.rows("SELECT run, settings FROM run_settings ORDER BY run, id")
    return [(run, settings) for run, settings in rows]
