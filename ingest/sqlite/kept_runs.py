"""The map's note of the oldest run whose results are kept: under other rules it can only be rebuilt from them."""

from __future__ import annotations

from pathlib import Path

from ingest.sqlite import setup
from ingest.sqlite.write_connection import open_for_writing, store_errors


def note_results_kept_from(database: Path, run: int) -> None:
    """Write the note, for whoever holds the ingest's role. Raises StoreError."""
    db = open_for_writing(database)
    try:
        with store_errors(database):
            before = setup.meta(db, "results_kept_from_run")
            if before is None or int(before) < run:
                setup.set_meta(db, "results_kept_from_run", str(run))
    finally:
        db.close()
