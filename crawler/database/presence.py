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
