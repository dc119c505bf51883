"""How much of a map is new: for an estimate of its growth."""

from __future__ import annotations

from crawler.database.map_errors import MapError
from crawler.database.reader import open_map
from crawler.model.map_place import MapPlace

_PATIENCE = 5  # seconds to wait for a lock


def share_of_pages_since(database: MapPlace, at: str) -> float:
    """The share of the map's pages that were discovered since then (RFC 3339); 0 where there is no map to read."""
    try:
        with open_map(database, patience=_PATIENCE) as reader:
            known = reader.number("SELECT count(*) FROM pages")
            new = reader.number("SELECT count(*) FROM pages WHERE discovered_at >= ?", (at,))
    except MapError:
        return 0.0
    return new / known if known else 0.0
