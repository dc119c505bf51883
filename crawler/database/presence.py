"""Is there a map at a place?"""

from __future__ import annotations

from crawler.database.map_errors import NoDatabase, NotAMap
from crawler.database.reader import open_map
from crawler.model.map_place import EngineMap, MapPlace


def is_there(place: MapPlace) -> bool:
    """A file or a schema of any kind counts: whoever opens it is told what is wrong. Raises MapUnreachable."""
    if not isinstance(place, EngineMap):
        return place.exists()
    try:
        with open_map(place):
            return True
    except NoDatabase:
        return False
    except NotAMap:
        return True


def format_of(place: MapPlace) -> int | None:
    """The format of the map at a place; None: there is no map. Raises NotAMap, MapUnreachable."""
    try:
        with open_map(place) as reader:
            return reader.number("SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'schema_version'")
    except NoDatabase:
        return None
