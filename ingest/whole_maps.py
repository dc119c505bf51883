"""Whole maps: made under another name and put in their place when they are complete, or kept aside under a dated name.

Invariant: at its place there is a whole map or none, whenever a process dies.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from crawler.database.completed_map import copy_place
from crawler.model.map_place import EngineMap, MapPlace
from crawler.workspace.atomic import sync_file

_SUFFIXES = ("-wal", "-shm")


def exists(place: MapPlace) -> bool:
    """Is there anything at this place? Raises StoreError."""
    if isinstance(place, EngineMap):
        from ingest.postgres.map_schemas import exists as has_schema

        return has_schema(place)
    return place.exists()


def scratch_of(place: MapPlace) -> MapPlace:
    """A place of this process, where a map can be made that will go to `place`."""
    if isinstance(place, EngineMap):
        return place.beside(f"replay_{os.getpid()}")
    return place.with_name(f".{place.name}.replay-{os.getpid()}")


def put_in_place(scratch: MapPlace, place: MapPlace, kept: MapPlace | None = None) -> None:
    """Move a complete, closed map to its place; `kept`: the map that is there is moved aside first."""
    if isinstance(scratch, EngineMap):
        from ingest.postgres.map_schemas import put_in_place as put_schema

        assert isinstance(place, EngineMap) and (kept is None or isinstance(kept, EngineMap))
        put_schema(scratch, place, kept)
        return
    assert isinstance(place, Path)
    for suffix in _SUFFIXES:
        scratch.with_name(scratch.name + suffix).unlink(missing_ok=True)
    sync_file(scratch)  # no part of it has been made durable yet
    if isinstance(kept, Path):
        for suffix in (*_SUFFIXES, ""):
            source = place.with_name(place.name + suffix)
            if source.exists():
                source.replace(kept.with_name(kept.name + suffix))
    scratch.replace(place)


def discard(scratch: MapPlace) -> None:
    """Remove a map that was not completed."""
    if isinstance(scratch, EngineMap):
        from ingest.postgres.map_schemas import remove

        remove(scratch)
        return
    for suffix in ("", *_SUFFIXES, "-journal"):
        scratch.with_name(scratch.name + suffix).unlink(missing_ok=True)


def keep_aside(place: EngineMap, stamp: str) -> list[EngineMap]:
    """Give a map in the engine, and its copy for readers, a dated name; returns the new places. Raises StoreError."""
    from ingest.postgres.map_schemas import exists as has_schema
    from ingest.postgres.map_schemas import rename

    suffix = f"old_{stamp.replace('-', '_')}"
    found: list[EngineMap] = []
    for name in (place.schema, copy_place(place).name):
        source = replace(place, schema=name)
        if has_schema(source):
            found.append(source.beside(suffix))
            rename(source, found[-1])
    return found


def aside(place: MapPlace, stamp: str) -> MapPlace:
    """The place for a map that another one replaces."""
    if isinstance(place, EngineMap):
        return place.beside(f"before_{stamp.replace('-', '_')}")
    return place.with_name(f"{place.name}.before-{stamp}")
