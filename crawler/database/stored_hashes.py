"""The stored pages that a map names, for its next visits."""

from __future__ import annotations

from pathlib import Path

from crawler.database.map_errors import MapError
from crawler.database.reader import open_map


def hashes_in_map(database: Path) -> set[bytes]:
    """The content hashes of pages that were stored at their last accepted visit; none without a map."""
    try:
        with open_map(database) as reader:
            if not reader.has("page_facts"):
                return set()
            sql = "SELECT content_hash FROM page_facts WHERE stored AND content_hash NOT GLOB '*[^0-9a-f]*'"
            return {bytes.fromhex(value) for (value,) in reader.rows(f"{sql} AND length(content_hash) = 64")}
    except MapError:
        return set()
