"""Everything that can be wrong with a map. The text of each is one sentence for a person."""

from __future__ import annotations

from crawler.model.errors import SumiError
from crawler.model.map_place import EngineMap, MapPlace


class MapError(SumiError):
    """The map cannot be read."""


class NoDatabase(MapError):
    """There is no file there."""

    def __init__(self, path: MapPlace) -> None:
        is_engine = isinstance(path, EngineMap)
        super().__init__(
            f"there is no {'map' if is_engine else 'database at'} {path}: nothing has been crawled yet, or it was moved"
            " or deleted; from the spools of a crawl it is rebuilt by: sumi-ripple replay CONFIG --into"
            f" {'postgresql://…' if is_engine else path}"
        )
        self.path = path


class MapUnreachable(MapError):
    """The engine that holds the map cannot be reached, or not used."""


class NotAMap(MapError):
    """There is a file, but not a Sumi-Ripple database that this version can read."""

    def __init__(self, path: MapPlace, why: str) -> None:
        what = "map" if isinstance(path, EngineMap) else "database"
        super().__init__(f"{path} is not a Sumi-Ripple {what} that can be read: {why}")
        self.path = path


class BadQuery(MapError):
    """The map is fine, but this question to it is not."""

    def __init__(self, path: MapPlace, why: str) -> None:
        super().__init__(f"the query to {path} cannot be answered: {why}")
        self.path = path


class NoSuchRun(NotAMap):
    """The map is fine, but it does not show the run that was asked for."""

    def __init__(self, path: MapPlace, why: str) -> None:
        MapError.__init__(self, f"{path}: {why}")
        self.path = path


class NotOnMap(MapError):
    """The map is fine, but it has no such page or domain."""

    def __init__(self, path: MapPlace, name: str) -> None:
        super().__init__(f"{name} is not on the map")
        self.path = path


def other_place(path: MapPlace) -> str:
    """What to do where another program's tables are in a map's place."""
    if isinstance(path, EngineMap):
        return f"name another database in [engine] url, or move the schema {path.schema} away"
    return "choose another database-path"


class MapAway(MapError):
    """A live map is missing, not complete yet, or was replaced: open it again later and ask everything again."""


class MapMoved(MapError):
    """More was added to the map than indexes while it was read in several snapshots: ask everything again in one."""

    def __init__(self, path: MapPlace) -> None:
        super().__init__(f"the map {path} changed while it was read")


class StoreError(MapError):
    """The map cannot be written, or not read by its writer; the text says why and what to do."""


class MapLost(StoreError):
    """The connection to the map was lost; a new process finds it when it is there again."""
