"""The stored pages that a map names, for its next visits."""

from __future__ import annotations

import re

from crawler.database.map_errors import MapError
from crawler.database.reader import open_map
from crawler.model.map_place import MapPlace

_HASH = re.compile("[0-9a-f]{64}")


def hashes_in_map(database: MapPlace) -> set[bytes]:
    """The content hashes of pages that were stored at their last accepted visit; none without a map."""
    try:
        with open_map(database) as reader:
            if not reader.has("page_facts"):
                return set()
            sql = "SELECT content_hash FROM page_facts WHERE stored = 1 AND length(content_hash) = 64"
            return {bytes.fromhex(value) for (value,) in reader.rows(sql) if _HASH.fullmatch(value)}
    except MapError:
        return set()
