"""Texts and rels of links. A map has them of pages that were read with [crawler] link-text, from format 5 on."""

from __future__ import annotations

from collections.abc import Iterable

from crawler.database.ids import pair_id
from crawler.database.reader import MapReader
from crawler.model.link_context import LinkContext


def has_link_texts(reader: MapReader) -> bool:
    return reader.has("link_texts") and reader.first("SELECT 1 FROM link_texts LIMIT 1") is not None


def link_contexts(reader: MapReader, links: Iterable[tuple[int, int]]) -> dict[tuple[int, int], LinkContext]:
    """(from page, to page) → text and rel of the link, of those that have some."""
    found: dict[tuple[int, int], LinkContext] = {}
    if has_link_texts(reader):
        for source, target in set(links):
            row = reader.first("SELECT text, rel FROM link_texts WHERE id = ?", (pair_id(source, target),))
            if row is not None:
                found[source, target] = LinkContext(row[0] or "", row[1] or "")
    return found
