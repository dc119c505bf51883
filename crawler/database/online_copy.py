"""A copy of the map while the ingest writes it: SQLite's online backup, of one snapshot."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from crawler.database.completed_map import copy_path
from crawler.database.map_errors import NoDatabase, NotAMap
from crawler.database.reader import check_format, connect
from crawler.workspace.log import Cursor

_PATIENCE = 30  # seconds to wait for a lock


def copy_map(database: Path, target: Path) -> dict[str, Cursor]:
    """Copy the map as it is now to a new file; returns the place in each result log up to which it was applied.

    The ingest goes on meanwhile. The copy is one step inside of one read transaction: what is committed meanwhile is
    not in it. It needs no -wal. Raises MapError.
    """
    if not database.is_file():
        raise NoDatabase(database)
    try:
        source = connect(database, _PATIENCE)
        copy = sqlite3.connect(target, isolation_level=None)
        try:
            check_format(source, database)
            source.execute("BEGIN")
            rows = source.execute("SELECT writer, segment, offset FROM spool_positions").fetchall()
            copy.execute("PRAGMA synchronous = OFF")
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
        finally:
            copy.close()
            source.close()
    except sqlite3.Error as problem:
        raise NotAMap(database, str(problem)) from None
    return {writer: Cursor(segment, offset) for writer, segment, offset in rows}


def copy_completed(database: Path, target: Path) -> bool:
    """Copy the map of the last completed run, which readers see while a run is under way. False: there is none."""
    try:
        shutil.copyfile(copy_path(database), target)
    except FileNotFoundError:
        return False
    return True


def fault_of(database: Path) -> str | None:
    """What SQLite finds wrong in the pages of a map; None: nothing."""
    try:
        connection = connect(database, _PATIENCE)
        try:
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as problem:
        return str(problem)
    return None if answer == "ok" else str(answer)
