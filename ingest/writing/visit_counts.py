"""Visits of a run by status code and by kind of error, counted as they are applied: no reader has to scan the pages.

The table is made where it is missing, and filled for the newest run from the pages that are there, so it is no part of
the map's format: a reader that does not find it has no such figures.
"""

from __future__ import annotations

from collections import Counter

from crawler.model.states import slug_of
from ingest.memory.changes import Changes
from ingest.writing.engine import MapConnection, MapEngine
from ingest.writing.run_rows import last_run

_TABLE = """
CREATE TABLE IF NOT EXISTS visit_counts (
    run             INTEGER NOT NULL,
    kind            TEXT NOT NULL,             -- status | error | bytes
    name            TEXT NOT NULL,             -- a status code, the slug of an error, or empty
    count           INTEGER NOT NULL,
    PRIMARY KEY (run, kind, name)
) WITHOUT ROWID
"""
_ADD = (
    "INSERT INTO visit_counts VALUES (?, ?, ?, ?)"
    " ON CONFLICT(run, kind, name) DO UPDATE SET count = visit_counts.count + excluded.count"
)


def prepare_counts(engine: MapEngine) -> None:
    """Make the table, and count what an older program has left."""
    if "visit_counts" in engine.tables():
        return
    db = engine.db
    run, _ = last_run(db)
    slug = "substr(error_message, 1, instr(error_message || ':', ':') - 1)"
    db.execute("BEGIN")
    db.execute(_TABLE)
    for kind, name, where in (("status", "CAST(status_code AS TEXT)", "status_code"), ("error", slug, "error_message")):
        db.execute(
            f"INSERT INTO visit_counts SELECT ?1, '{kind}', {name}, count(*) FROM pages"
            f" WHERE visited_run = ?1 AND {where} IS NOT NULL GROUP BY {name}",
            (run,),
        )
    db.execute(
        "INSERT INTO visit_counts SELECT ?1, 'bytes', '', sum(bytes) FROM pages WHERE visited_run = ?1"
        " HAVING sum(bytes) > 0",
        (run,),
    )
    db.execute("COMMIT")


def write_counts(db: MapConnection, done: Changes) -> None:
    """Add the visits of a batch."""
    counts: Counter[tuple[int, str, str]] = Counter()
    for page in done.done:
        result = page.visit
        if result is None:
            continue
        if result.status is not None:
            counts[result.run, "status", str(result.status)] += 1
        slug = slug_of(result.error)
        if slug is not None:
            counts[result.run, "error", slug] += 1
        counts[result.run, "bytes", ""] += result.bytes
    db.executemany(_ADD, [(*key, count) for key, count in counts.items() if count])
