"""The pages whose content the map knows (`page_facts`): which blob is whose. For `crawler.store`, by hash."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from crawler.database.reader import MapReader, Row
from crawler.model.urls import hash64


class PageCopy(NamedTuple):
    """The content of a page's last accepted visit."""

    url: str
    domain: str
    run: int
    content_hash: str
    stored: bool
    noarchive: bool
    bytes: int
    visited_at: str = ""  # empty: the map has only the time of a later visit, which was not accepted


_COLUMNS = (
    "SELECT p.url, p.domain, f.run, f.content_hash, f.stored, f.noarchive, f.bytes,"
    " CASE WHEN p.visited_run = f.run THEN coalesce(p.visited_at, '') ELSE '' END"
)
_COPIES = f"{_COLUMNS} FROM page_facts f CROSS JOIN pages p ON p.id = f.id"
_ONE = f"{_COLUMNS} FROM pages p CROSS JOIN page_facts f ON f.id = p.id WHERE p.url_hash = ? AND p.url = ?"
_PROBES = 8  # of two keys with one hash the second has the hash of the next probe


def copies(reader: MapReader) -> Iterator[PageCopy]:
    """Of all pages. A map of a format without them has none."""
    if reader.has("page_facts"):
        yield from map(_copy, reader.rows(_COPIES))


def copy_of(reader: MapReader, key: str) -> PageCopy | None:
    """Of the page with this key; None: it was never accepted, or is not known."""
    if not reader.has("page_facts"):
        return None
    for probe in range(_PROBES):
        row = reader.first(_ONE, (hash64(key, probe), key))
        if row is not None:
            return _copy(row)
    return None


def _copy(row: Row) -> PageCopy:
    url, domain, run, digest, stored, noarchive, size, at = row
    return PageCopy(url, domain, run, digest, bool(stored), bool(noarchive), size, at)
