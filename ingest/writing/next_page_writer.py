"""Rows of `next_pages` and `pagination_rules`: labels of lists over several pages."""

from __future__ import annotations

from crawler.model.urls import hash64
from ingest.memory.changes import Changes
from ingest.writing.engine import MapConnection


def write_next_pages(db: MapConnection, done: Changes, run: int) -> None:
    """Inside the store's transaction."""
    if not done.next_pages:
        return
    gone = [(page,) for page, following in done.next_pages.items() if following is None]
    db.executemany("DELETE FROM next_pages WHERE id = ?", gone)
    labelled = [(page, following) for page, following in sorted(done.next_pages.items()) if following is not None]
    db.executemany(
        "INSERT OR REPLACE INTO next_pages VALUES (?, ?, ?, ?)",
        [(page, f.page, f.evidence, hash64(f.form) if f.form is not None else None) for page, f in labelled],
    )
    db.executemany(
        "INSERT INTO pagination_rules (id, form, domain_id, last_number, first_run, last_run)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?5) ON CONFLICT(id) DO UPDATE SET"
        " last_number = CASE WHEN excluded.last_number > pagination_rules.last_number THEN excluded.last_number"
        " ELSE pagination_rules.last_number END, last_run = excluded.last_run",
        [(hash64(f.form), f.form, f.domain, f.number, run) for _, f in labelled if f.form is not None],
    )
