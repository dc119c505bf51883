"""The only connection that writes to the map, and the engine's errors in plain sentences."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crawler.database.map_errors import StoreError


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Connect. Raises StoreError, with advice, where the file cannot be used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # An index over millions of links is sorted in a file, beside the map, where there is room for such things.
        # In memory it takes longer, too (4 million links: 3.2 s against 1.9 s, and 80 MB).
        os.environ.setdefault("SQLITE_TMPDIR", str(path.parent))
        db = sqlite3.connect(path, isolation_level=None, timeout=30, cached_statements=256)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        # No PRAGMA foreign_keys: the ingest numbers runs and domains itself, and looking each of them up took 1 %.
        db.execute("PRAGMA cache_size = -40960")  # 40 MB: a batch goes all over a large map, more gains nothing
        db.execute("PRAGMA wal_autocheckpoint = 0")  # see ingest/sqlite/checkpoint.py
        db.execute("PRAGMA journal_size_limit = 0")  # a log that is restarted begins as an empty file
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return db
    except OSError as problem:
        raise StoreError(f"the database {path} cannot be opened: {problem.strerror}") from None
    except sqlite3.DatabaseError as problem:
        raise StoreError(describe(problem, path)) from None


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Errors of the engine inside the block become StoreError."""
    try:
        yield
    except sqlite3.Error as problem:
        raise StoreError(describe(problem, path)) from problem


def describe(problem: sqlite3.Error, path: Path) -> str:
    """A database error in one sentence, with advice."""
    text = str(problem)
    if "not a database" in text or "malformed" in text or "corrupt" in text:
        return (
            f"the database {path} is damaged ({text}); move it aside and rebuild it from the spools with: "
            "sumi-ripple replay CONFIG --into new.db"
        )
    if "disk I/O error" in text:
        return f"the disk under {path} has no room or fails ({text}); repair that and start again, nothing is lost"
    if "full" in text:
        return f"the disk is full: {path} cannot be written; make room and start again, nothing is lost"
    if "readonly" in text or "unable to open" in text:
        return f"the database {path} cannot be written ({text}); correct its permissions and start again"
    return f"the database {path} failed: {text}"
