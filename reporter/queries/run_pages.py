"""Pages, links and domains of two maps, in an order in which they can be compared row by row."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from crawler.database.ids import link_between, links_of
from crawler.database.reader import MapReader


class PageFacts(NamedTuple):
    """A page as one run saw it. `redirect` is the URL that it redirects to."""

    hash: int
    url: str
    id: int
    state: str
    title: str | None
    status: int | None
    error: str | None
    redirect: str | None


class DomainFacts(NamedTuple):
    """A domain as one run saw it. `depth` is the least of its pages; None: no followed path leads there."""

    domain: str
    klass: str
    depth: int | None


def pages_in_order(reader: MapReader) -> Iterator[PageFacts]:
    """All pages, by hash and URL."""
    for row in reader.rows(
        "SELECT p.url_hash, p.url, p.id, p.state, p.title, p.status_code, p.error_message, t.url"
        " FROM pages p LEFT JOIN pages t ON t.id = p.redirect_to ORDER BY p.url_hash, p.url"
    ):
        yield PageFacts(*row)


def page_count(reader: MapReader) -> int:
    return reader.number("SELECT count(*) FROM pages")


def targets(reader: MapReader, page: int) -> dict[str, int]:
    """URL → hash of the pages that a page links or redirects to."""
    rows = reader.rows(
        f"SELECT t.url, t.url_hash FROM links l CROSS JOIN pages t ON t.id = l.to_page_id WHERE {links_of('l', '?1')}",
        (page,),
    )
    return dict(rows)


def domains_in_order(reader: MapReader) -> Iterator[DomainFacts]:
    """All domains with a page, by name."""
    for row in reader.rows(
        "SELECT d.domain, d.class, min(p.depth) FROM pages p JOIN domain_states d ON d.id = p.domain_id"
        " GROUP BY d.id ORDER BY d.domain"
    ):
        yield DomainFacts(*row)


def domains_cut_short(reader: MapReader) -> list[str]:
    """Domains whose request budget ran out, in a map of one run."""
    rows = reader.rows("SELECT domain FROM domain_states WHERE closed_reason = 'request-limit' ORDER BY domain")
    return [domain for (domain,) in rows]


class EarlierRuns:
    """Pages, links and domains that the live map knows from runs before one of them: 16 bytes a page in memory."""

    def __init__(self, reader: MapReader, before: int) -> None:
        self._reader = reader
        self._before = before
        rows = sorted(reader.rows("SELECT url_hash, id FROM pages WHERE discovered_run < ?", (before,)))
        self._hashes = array("q", (hash_ for hash_, _ in rows))
        self._ids = array("q", (number for _, number in rows))
        # By their pages: `first_seen_run` counts a domain that only an event named, too.
        names = reader.rows("SELECT DISTINCT domain FROM pages WHERE discovered_run < ?", (before,))
        self._domains = {name for (name,) in names}

    def has_page(self, hash_: int) -> bool:
        return self._id(hash_) is not None

    def has_link(self, source: int, target: int) -> bool:
        """Was there a link between the pages with these hashes?"""
        first, second = self._id(source), self._id(target)
        if first is None or second is None:
            return False
        sql = f"SELECT 1 FROM links WHERE {link_between('links', '?1', '?2')} AND discovered_run < ?3"
        return self._reader.first(sql, (first, second, self._before)) is not None

    def has_domain(self, name: str) -> bool:
        return name in self._domains

    def _id(self, hash_: int) -> int | None:
        place = bisect_left(self._hashes, hash_)
        if place < len(self._hashes) and self._hashes[place] == hash_:
            return int(self._ids[place])
        return None
