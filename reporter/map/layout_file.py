"""The places of domains, kept beside the database, so that a domain is found where it was in the run before.

The folder beside a database (`face_folder`) holds what is derived from the map for people who look at it.
It may be deleted at any time; the next look makes it anew, and domains may then get other places.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import orjson

from crawler.model.map_place import MapPlace, files_of
from crawler.workspace.atomic import write_atomically

_FORMAT = 1
_MOST = 20_000  # domains whose place is kept; those that are not on the map any more are forgotten first


def face_folder(place: MapPlace) -> Path:
    """The folder beside a database for what is derived from its map."""
    database = files_of(place)
    return database.with_name(f"{database.name}.face")


def _layout_path(database: MapPlace) -> Path:
    return face_folder(database) / "layout.json"


def kept_places(database: MapPlace) -> dict[str, tuple[float, float]]:
    """The place of each domain in the last map that was drawn; {}: none was, or the file is not one of ours."""
    try:
        content = orjson.loads(_layout_path(database).read_bytes())
        if content["v"] != _FORMAT:
            return {}
        return {str(name): (float(x), float(y)) for name, (x, y) in content["places"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def keep_places(database: MapPlace, places: Mapping[str, tuple[float, float]]) -> bool:
    """Keep these places, and those of domains that are not among them. False: the folder cannot be written."""
    merged = {**places, **{name: place for name, place in kept_places(database).items() if name not in places}}
    content = {"v": _FORMAT, "places": dict(list(merged.items())[:_MOST])}
    try:
        face_folder(database).mkdir(parents=True, exist_ok=True)
        write_atomically(_layout_path(database), orjson.dumps(content))
    except OSError:
        return False
    return True
