"""The map's note of the oldest run whose results are kept: under other rules it can only be rebuilt from them."""

from __future__ import annotations

from crawler.model.map_place import MapPlace
from ingest.writing.map_notes import read_note, write_notes

_NOTE = "results_kept_from_run"


def note_results_kept_from(database: MapPlace, run: int) -> None:
    """Write the note, for whoever holds the ingest's role. Raises StoreError."""
    before = read_note(database, _NOTE)
    if before is None or int(before) < run:
        write_notes(database, {_NOTE: str(run)})
