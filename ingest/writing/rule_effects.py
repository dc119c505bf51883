"""Traces in a map of the rules that may change: does anything in it depend on them?"""

from __future__ import annotations

from collections.abc import Iterator

from ingest.writing.engine import MapConnection

_PAGE_TRACES = {
    "request-limit": "SELECT 1 FROM pages WHERE state = 'request_limit_hit' LIMIT 1",
    "crawl-delay": "SELECT 1 FROM pages WHERE error_message LIKE 'crawl-delay%' LIMIT 1",
}


def domain_names(db: MapConnection) -> Iterator[str]:
    """Every domain of the map."""
    return (name for (name,) in db.execute("SELECT domain FROM domain_states"))


def keys(db: MapConnection) -> Iterator[str]:
    """The key of every page."""
    return (url for (url,) in db.execute("SELECT url FROM pages"))


def has_closure(db: MapConnection, reason: str) -> bool:
    """Is a domain closed for this reason, or does a page say so?"""
    is_closed = db.execute("SELECT 1 FROM domain_states WHERE closed_reason = ? LIMIT 1", (reason,)).fetchone()
    return is_closed is not None or db.execute(_PAGE_TRACES[reason]).fetchone() is not None


def has_traps(db: MapConnection) -> bool:
    """Is a family closed, or does a page say that it is a trap?"""
    family = db.execute("SELECT 1 FROM closed_families LIMIT 1").fetchone()
    page = db.execute("SELECT 1 FROM pages WHERE error_message LIKE 'trap%' LIMIT 1").fetchone()
    return family is not None or page is not None
