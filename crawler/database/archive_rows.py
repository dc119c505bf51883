"""Rows of the map for an archive: visits whose results are gone, and the figures of runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from crawler.database.map_errors import MapError
from crawler.database.reader import open_map


def visits_in_map(database: Path, before: str, kept_from: int) -> Iterator[dict[str, object]]:
    """The last visits of pages that no run since `kept_from` has visited, as rows of an archive."""
    with open_map(database) as reader:
        validation = "validation, rejection_reason" if reader.has_column("pages", "validation") else "NULL, NULL"
        rows = reader.rows(
            "SELECT visited_run, url, coalesce(wire_url, url), domain, visited_at, state, status_code, content_type,"
            f" last_modified, title, bytes, error_message, retry_count, {validation} FROM pages"
            " WHERE visited_run < ? AND visited_at < ? ORDER BY id",
            (kept_from, before),
        )
        names = (
            *("run", "url", "wire_url", "domain", "visited_at", "state", "status_code", "content_type"),
            *("last_modified", "title", "bytes", "error", "retries", "validation", "rejection_reason"),
        )
        for row in rows:
            yield {"links": None, "redirect": None, "content_hash": None, **dict(zip(names, row, strict=True))}


def figures_of_runs(database: Path, before: str) -> list[dict[str, object]]:
    """The figures of runs that began before then, as they were counted when each was finished; none without a map."""
    names = ("run", "started_at", "finished_at", "status", "pages", "known", "links", "errors", "domains")
    try:
        with open_map(database) as reader:
            if not reader.has("run_figures"):
                return []
            rows = reader.all(
                "SELECT r.id, r.started_at, r.finished_at, r.status, f.pages, f.known, f.links, f.errors, f.domains"
                " FROM runs r LEFT JOIN run_figures f USING (id) WHERE r.started_at < ? ORDER BY r.id",
                (before,),
            )
    except MapError:
        return []
    return [dict(zip(names, row, strict=True)) for row in rows]
