"""PURE. A visit as a row of an archive."""

from __future__ import annotations

from crawler.model.records import PageResult
from crawler.model.states import slug_of

COLUMNS = (
    *("run", "url", "wire_url", "domain", "visited_at", "state", "status_code", "content_type", "last_modified"),
    *("title", "bytes", "links", "redirect", "error", "retries", "validation", "rejection_reason", "content_hash"),
)
FAILURE_COLUMNS = ("run", "url", "domain", "visited_at", "state", "status_code", "slug", "error", "retries")


def archived_visit(result: PageResult) -> dict[str, object]:
    """The row of a result, by the names of `COLUMNS`."""
    return {
        "run": result.run,
        "url": result.key,
        "wire_url": result.wire,
        "domain": result.domain,
        "visited_at": result.at,
        "state": result.state,
        "status_code": result.status,
        "content_type": result.content_type,
        "last_modified": result.last_modified,
        "title": result.title,
        "bytes": result.bytes,
        "links": len(result.hrefs),
        "redirect": result.redirect,
        "error": result.error,
        "retries": result.retries,
        "validation": result.validation,
        "rejection_reason": result.rejection_reason,
        "content_hash": result.content_hash,
    }


def failure_of(row: dict[str, object]) -> dict[str, object] | None:
    """The row of `FAILURE_COLUMNS` for a visit that failed; None if it did not."""
    error = row["error"]
    if row["state"] == "processed" or not error:
        return None
    return {**{name: row.get(name) for name in FAILURE_COLUMNS}, "slug": slug_of(str(error))}
