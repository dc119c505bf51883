"""The blob of a page, where the crawl kept it."""

from __future__ import annotations

from typing import NamedTuple

from crawler.database.reader import MapReader


class StoredPage(NamedTuple):
    """`run` is that of the visit that the content is of; `is_stored`: it was put into the store then."""

    content_hash: str
    is_stored: bool
    is_noarchive: bool
    run: int
    size: int
    content_type: str | None


def stored_page(reader: MapReader, page: int) -> StoredPage | None:
    """None: no visit of this page was accepted, or the map is of an older format."""
    if not reader.has("page_facts"):
        return None
    row = reader.first(
        "SELECT f.content_hash, f.stored, f.noarchive, f.run, f.bytes, p.content_type"
        " FROM page_facts f JOIN pages p ON p.id = f.id WHERE f.id = ?",
        (page,),
    )
    return StoredPage(row[0], bool(row[1]), bool(row[2]), row[3], row[4], row[5]) if row else None
