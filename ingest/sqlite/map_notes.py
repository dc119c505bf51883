"""Notes in the map (`meta`) by a command that holds the ingest's role: all of them in one commit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ingest.sqlite import setup
from ingest.sqlite.write_connection import open_for_writing, store_errors


def read_note(database: Path, name: str) -> str | None:
    """None: there is no such note. Raises StoreError."""
    db = open_for_writing(database)
    try:
        with store_errors(database):
            return setup.meta(db, name)
    finally:
        db.close()


def write_notes(database: Path, notes: Mapping[str, str]) -> None:
    """Raises StoreError."""
    db = open_for_writing(database)
    try:
        with store_errors(database):
            db.execute("BEGIN IMMEDIATE")
            for name, value in notes.items():
                setup.set_meta(db, name, value)
            db.execute("COMMIT")
    finally:
        db.close()
