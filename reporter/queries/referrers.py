"""The pages that link to a page, one after the other: all of them, or those of one domain."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from crawler.database.format import LINK_FOLLOWED, LINK_NOT_FOLLOWED, LINK_REDIRECT
from crawler.database.reader import MapReader
from reporter.queries.link_texts import link_contexts
from reporter.queries.one_page import linking_pages
from reporter.queries.rows import PageRow

LINK_WORDS = {LINK_FOLLOWED: "link", LINK_NOT_FOLLOWED: "nofollow", LINK_REDIRECT: "redirect"}
_PART = 500  # links that are looked up at one time


class Referrer(NamedTuple):
    """A page with a link, and the link: its kind (link, nofollow, redirect), and its text and rel where known."""

    url: str
    domain: str
    title: str | None
    kind: str
    text: str = ""
    rel: str = ""


def referring_pages(reader: MapReader, page: PageRow, domain: str | None = None) -> Iterator[Referrer]:
    """The pages that link to this one in the run that saw it last; with `domain`, those of that domain."""
    rows = linking_pages(reader, page.id, page.domain_id, page.seen_run)
    while part := list(islice(rows, _PART)):
        contexts = link_contexts(reader, ((number, page.id) for number, _ in part))
        for number, kind in part:
            row = reader.first("SELECT url, domain, title FROM pages WHERE id = ?", (number,))
            if row is not None and domain in (None, row[1]):
                text, rel = contexts.get((number, page.id), ("", ""))
                yield Referrer(row[0], row[1], row[2], LINK_WORDS.get(kind, "link"), text, rel)
