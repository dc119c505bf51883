"""A copy of the map before a run changes it, for readers (crawler/database/completed_map.py).

Invariant: at its place there is a whole copy or none. It is written under another name, made durable and renamed; a
crash in between leaves a file that the next copy replaces.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

from crawler.database.completed_map import aside_path, copy_path
from crawler.model.errors import sentence
from crawler.workspace.atomic import sync_file
from ingest.writing.engine import CopyNotMade

_STEP = 16 * 1024 * 1024  # bytes between two calls of `on_step`
_ASIDE = 256 * 1024 * 1024  # bytes of a copy that is put aside: larger ones take seconds to compare
_SPARE = 2  # times the map's size must be free: the run that begins needs room too


def keep_copy(db: sqlite3.Connection, database: Path, on_step: Callable[[], None]) -> None:
    """Copy the map that `db` has open to its place. Raises CopyNotMade: then there is no copy.

    The copy needs no -wal: one process writes it once, and readers may open it on a read-only disk.
    """
    target = copy_path(database)
    scratch = target.with_name(f".{target.name}.new")
    page_size = int(db.execute("PRAGMA page_size").fetchone()[0])
    size = page_size * int(db.execute("PRAGMA page_count").fetchone()[0])
    try:
        target.unlink(missing_ok=True)
        aside_path(database).unlink(missing_ok=True)
        target.parent.mkdir(exist_ok=True)
        scratch.unlink(missing_ok=True)
        free = shutil.disk_usage(target.parent).free
        if free < _SPARE * size:
            raise CopyNotMade(f"it takes {size:,} bytes, and of {free:,} free ones half must stay free")
        copy = sqlite3.connect(scratch, isolation_level=None)
        try:
            copy.execute("PRAGMA synchronous = OFF")
            db.backup(copy, pages=max(1, _STEP // page_size), progress=lambda status, left, total: on_step(), sleep=0)
            copy.execute("PRAGMA journal_mode = DELETE")
        finally:
            copy.close()
        sync_file(scratch)
        scratch.replace(target)
    except sqlite3.Error as problem:
        scratch.unlink(missing_ok=True)
        raise CopyNotMade(str(problem)) from None
    except OSError as problem:
        scratch.unlink(missing_ok=True)
        raise CopyNotMade(sentence(problem)) from None


def put_copy_aside(database: Path) -> None:
    """The map itself shows a completed run again: readers need no copy, and only a comparison may want it."""
    copy = copy_path(database)
    try:
        is_kept = copy.stat().st_size <= _ASIDE
    except FileNotFoundError:
        return
    if is_kept:
        copy.replace(aside_path(database))
    else:
        copy.unlink(missing_ok=True)
