"""Whole maps: made under another name and put in their place when they are complete, or kept aside under a dated name.

Invariant: at its place there is a whole map or none, whenever a process dies.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def scratch_of(place: MapPlace) -> Iterator[MapPlace]:
    """A place of this process, where a map can be made that will go to `place`. If that fails, nothing stays of it."""
    if isinstance(place, EngineMap):
        scratch: MapPlace = place.beside(f"replay_{os.getpid()}_{secrets.token_hex(4)}")
    else:
        scratch = place.with_name(f".{place.name}.replay-{os.getpid()}")
    with made_here(scratch):
        try:
            yield scratch
        except BaseException:
            discard(scratch)
            raise


@contextmanager
def made_here(place: MapPlace) -> Iterator[None]:
    """While this process makes a map there for a while, nobody takes it for one that a dead process left."""
    if not isinstance(place, EngineMap):
        yield
        return
    from ingest.postgres.map_schemas import made_here as made_in_engine

    with made_in_engine(place):
        yield


def remove_left(place: MapPlace) -> None:
    """Remove the maps in this engine whose makers died before they were whole. Raises StoreError."""
    if isinstance(place, EngineMap):
        from ingest.postgres.map_schemas import remove_left as remove_left_schemas

        remove_left_schemas(place)


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


def step_in_place(scratch: MapPlace, place: MapPlace) -> str:
    """The statement that moves a complete map of the engine to its place, for a transaction that does more."""
    from ingest.postgres.map_schemas import renaming

    assert isinstance(scratch, EngineMap) and isinstance(place, EngineMap)
    return renaming(scratch, place)


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
