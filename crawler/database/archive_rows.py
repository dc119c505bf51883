"""Rows of the map for an archive: visits whose results are gone, and the figures of runs."""

from __future__ import annotations

from collections.abc import Iterator

from crawler.database.map_errors import MapError
from crawler.database.reader import open_map
from crawler.model.map_place import MapPlace

_NAMES = (
    *("run", "url", "wire_url", "domain", "visited_at", "state", "status_code", "content_type"),
    *("last_modified", "title", "bytes", "error", "retries", "redirect"),
    *("validation", "rejection_reason", "content_hash", "links"),
)


def visits_in_map(database: MapPlace, before: str, kept_from: int) -> Iterator[dict[str, object]]:
    """The last visits of pages from before the run `kept_from`, as rows of an archive.

    A page that later runs carried, because it was not due, has the time of its visit, and so the run of that time.
    """
    with open_map(database) as reader:
        judged = "p.validation, p.rejection_reason" if reader.has_column("pages", "validation") else "NULL, NULL"
        facts, join = "NULL, NULL", ""
        if reader.has("page_facts"):
            facts = "f.content_hash, f.link_count"
            join = " LEFT JOIN page_facts f ON f.id = p.id AND f.run = p.visited_run"
        rows = reader.rows(
            "SELECT CASE WHEN p.visited_at >= (SELECT started_at FROM runs WHERE id = p.visited_run) THEN p.visited_run"
            " ELSE coalesce((SELECT max(id) FROM runs WHERE started_at <= p.visited_at), p.visited_run) END, p.url,"
            " coalesce(p.wire_url, p.url), p.domain, p.visited_at, p.state, p.status_code, p.content_type,"
            f" p.last_modified, p.title, p.bytes, p.error_message, p.retry_count, target.url, {judged}, {facts}"
            f" FROM pages p LEFT JOIN pages target ON target.id = p.redirect_to{join}"
            " WHERE p.visited_at < ?2 AND (p.visited_run < ?1"
            " OR p.visited_at < (SELECT started_at FROM runs WHERE id = ?1)) ORDER BY p.id",
            (kept_from, before),
        )
        for row in rows:
            yield dict(zip(_NAMES, row, strict=True))


def figures_of_runs(database: MapPlace, before: str) -> list[dict[str, object]]:
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
