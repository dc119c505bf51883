"""Rows of `page_facts`: what an accepted page says about itself. A visit that was not accepted leaves the last ones."""

from __future__ import annotations

import sqlite3

from ingest.memory.changes import Changes


def write_facts(db: sqlite3.Connection, done: Changes) -> None:
    """Inside the store's transaction, after the pages."""
    visited = [(page.id, page.visit) for page in done.done if page.visit is not None]
    rows = [
        (
            page,
            visit.run,
            visit.content_hash,
            visit.stored,
            visit.noarchive,
            visit.bytes,
            visit.etag or "",
            visit.last_modified or "",
            visit.description or "",
            visit.language or "",
            visit.canonical or "",
            visit.heading or "",
            len(visit.hrefs) + visit.links_cut,
            visit.text_hash or "",
        )
        for page, visit in sorted(visited, key=lambda found: found[0])
        if visit.content_hash is not None
    ]
    db.executemany(
        "INSERT OR REPLACE INTO page_facts VALUES (?, ?, ?, ?, ?, ?, nullif(?, ''), nullif(?, ''), nullif(?, ''),"
        " nullif(?, ''), nullif(?, ''), nullif(?, ''), ?, nullif(?, ''))",
        rows,
    )
