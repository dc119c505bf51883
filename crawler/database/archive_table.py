"""An archive as tables of a database of its own, which nobody writes to again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

_TABLES = """
CREATE TABLE archived_pages (                  -- one row for each visit
    run INTEGER NOT NULL, url TEXT NOT NULL, wire_url TEXT, domain TEXT NOT NULL, visited_at TEXT NOT NULL,
    state TEXT NOT NULL, status_code INTEGER, content_type TEXT, last_modified TEXT, title TEXT, bytes INTEGER,
    links INTEGER, redirect TEXT, error TEXT, retries INTEGER, validation TEXT, rejection_reason TEXT,
    content_hash TEXT,                         -- the name of its blob in the store
    UNIQUE (run, url)
);
CREATE TABLE archived_failures (
    run INTEGER NOT NULL, url TEXT NOT NULL, domain TEXT NOT NULL, visited_at TEXT NOT NULL, state TEXT NOT NULL,
    status_code INTEGER, slug TEXT, error TEXT, retries INTEGER,
    UNIQUE (run, url)
);
CREATE TABLE archived_figures (
    figures TEXT NOT NULL                      -- JSON: kind is day or run
);
"""
_INDEXES = """
CREATE INDEX idx_archived_pages_domain ON archived_pages(domain);
CREATE INDEX idx_archived_failures_slug ON archived_failures(slug);
"""


def load_archive(
    target: Path,
    pages: Iterable[Sequence[str | None]],
    failures: Iterable[Sequence[str | None]],
    figures: Iterable[str],
) -> dict[str, int]:
    """Make the database, whole or not at all; returns the rows of each table. The file is read-only."""
    scratch = target.with_name(f".{target.name}.new")
    scratch.unlink(missing_ok=True)
    db = sqlite3.connect(scratch, isolation_level=None)
    try:
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + _TABLES)
        db.execute("BEGIN")
        db.executemany(f"INSERT OR IGNORE INTO archived_pages VALUES ({_marks(18)})", pages)
        db.executemany(f"INSERT OR IGNORE INTO archived_failures VALUES ({_marks(9)})", failures)
        db.executemany("INSERT INTO archived_figures VALUES (?)", ((line,) for line in figures))
        db.execute("COMMIT")
        db.executescript(_INDEXES)
        names = ("archived_pages", "archived_failures", "archived_figures")
        counts = {name: int(db.execute(f"SELECT count(*) FROM {name}").fetchone()[0]) for name in names}
        db.close()
        scratch.chmod(0o400)
        scratch.replace(target)
    except sqlite3.Error as problem:
        raise ValueError(str(problem)) from None
    finally:
        db.close()
        scratch.unlink(missing_ok=True)
    return counts


def _marks(count: int) -> str:
    return ", ".join("?" * count)
