"""Notes in the map (`meta`) by a command that holds the ingest's role: all of them in one commit."""

from __future__ import annotations

from collections.abc import Mapping

from crawler.model.map_place import MapPlace
from ingest.writing import setup
from ingest.writing.engines import engine_of


def read_note(database: MapPlace, name: str) -> str | None:
    """None: there is no such note. Raises StoreError."""
    engine = engine_of(database)
    try:
        with engine.errors():
            return setup.meta(engine.db, name)
    finally:
        engine.close()


def write_notes(database: MapPlace, notes: Mapping[str, str]) -> None:
    """Raises StoreError."""
    engine = engine_of(database)
    try:
        with engine.errors():
            engine.begin()
            for name, value in notes.items():
                setup.set_meta(engine.db, name, value)
            engine.db.execute("COMMIT")
    finally:
        engine.close()
