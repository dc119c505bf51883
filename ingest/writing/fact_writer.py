"""Rows of `page_facts`, `page_answers` and `page_fields`: what an accepted page says about itself, how a visit may ask
whether it has changed, and the user's own fields.

A visit that was not accepted leaves those of the last one that was.
"""

from __future__ import annotations

import orjson
from msgspec import UNSET

from crawler.model.records import PageResult, Revalidation
from ingest.memory.changes import Changes
from ingest.writing.engine import MapConnection


def write_facts(db: MapConnection, done: Changes) -> None:
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
            _links_of(visit),
            visit.text_hash or "",
            visit.simhash or "",
        )
        for page, visit in sorted(visited, key=lambda found: found[0])
        if visit.content_hash is not None
    ]
    db.executemany(
        "INSERT OR REPLACE INTO page_facts VALUES (?, ?, ?, ?, ?, ?, nullif(?, ''), nullif(?, ''), nullif(?, ''),"
        " nullif(?, ''), nullif(?, ''), nullif(?, ''), ?, nullif(?, ''), nullif(?, ''))",
        rows,
    )
    answers = [(page, visit, visit.revalidation) for page, visit in visited if visit.content_hash is not None]
    db.executemany(
        "INSERT OR REPLACE INTO page_answers VALUES (?, ?, ?, ?, ?, ?)",
        [
            (
                *(page, visit.run, visit.answered_by or visit.wire, how.asked_as),
                *(orjson.dumps(how.headers).decode(), how.is_etag_vain),
            )
            for page, visit, how in answers
            if isinstance(how, Revalidation)
        ],
    )
    fields = [(page, visit.fields) for page, visit in visited if isinstance(visit.fields, dict)]
    if fields:
        db.executemany("DELETE FROM page_fields WHERE id = ?", [(page,) for page, _ in fields])
        db.executemany(
            "INSERT INTO page_fields VALUES (?, ?, ?, ?)",
            [
                (page, name, position, value)
                for page, found in fields
                for name, values in found.items()
                for position, value in enumerate(values)
            ],
        )


def _links_of(visit: PageResult) -> int:
    """Addresses on the page. A result that carries a page names each target once."""
    return len(visit.hrefs) + visit.links_cut if visit.carried is UNSET else visit.carried.link_count
