"""Which engine a map is in."""

from __future__ import annotations

from pathlib import Path

from crawler.model.map_place import MapPlace
from ingest.writing.engine import MapEngine


def engine_of(place: MapPlace) -> MapEngine:
    """The map at this place, open for its one writer. Raises StoreError."""
    if isinstance(place, Path):
        from ingest.sqlite.sqlite_engine import SqliteEngine

        return SqliteEngine(place)
    from ingest.postgres.postgres_engine import PostgresEngine

    return PostgresEngine(place)
