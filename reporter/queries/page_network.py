"""Pages and the links between them: pages of one domain, surroundings of a page, links behind a domain link.

Every answer is bounded, whatever the size of the map.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from crawler.database.ids import links_of, pair_id
from crawler.database.reader import MapReader
from reporter.queries.link_texts import link_contexts
from reporter.queries.one_page import has_reverse_index


class NetworkPage(NamedTuple):
    """A page as the map shows it. `klass` is its domain's."""

    id: int
    url: str
    title: str | None
    state: str
    depth: int | None
    klass: str


class PageLink(NamedTuple):
    """One link between two pages. `text` is what a reader clicks, where it is known."""

    source: str
    target: str
    text: str


_COLUMNS = "p.id, p.url, p.title, p.state, p.depth, d.class"


def pages_of_domain(reader: MapReader, domain_id: int, run: int, most: int) -> tuple[list[NetworkPage], int]:
    """At most so many pages of a domain that `run` saw (crawled first, nearest first), and the number of all."""
    total = reader.number("SELECT count(*) FROM pages WHERE domain_id = ? AND seen_run = ?", (domain_id, run))
    rows = reader.rows(
        f"SELECT {_COLUMNS} FROM ("
        "  SELECT id FROM pages WHERE domain_id = ?1 AND seen_run = ?2"
        "  ORDER BY state <> 'processed', depth IS NULL, depth, id LIMIT ?3) chosen"
        " CROSS JOIN pages p ON p.id = chosen.id CROSS JOIN domain_states d ON d.id = p.domain_id"
        + reader.ordered("p.state <> 'processed', p.depth IS NULL, p.depth, p.id"),
        (domain_id, run, most),
    )
    return [NetworkPage(*row) for row in rows], total


def pages_by_id(reader: MapReader, pages: Iterable[int]) -> list[NetworkPage]:
    """These pages, by id."""
    sql = f"SELECT {_COLUMNS} FROM pages p CROSS JOIN domain_states d ON d.id = p.domain_id WHERE p.id = ?"
    found = (reader.first(sql, (page,)) for page in sorted(set(pages)))
    return [NetworkPage(*row) for row in found if row is not None]


def linked_pages(reader: MapReader, page: int, run: int, most: int) -> tuple[list[int], int]:
    """At most so many pages that a page links or redirects to, and the number of all."""
    of_run = f"FROM links WHERE {links_of('links', '?1')} AND last_run = ?2"
    total = reader.number(f"SELECT count(*) {of_run}", (page, run))
    rows = reader.rows(f"SELECT to_page_id {of_run} ORDER BY id LIMIT ?3", (page, run, most))
    return [target for (target,) in rows], total


def links_among(reader: MapReader, pages: Iterable[int], run: int, most: int) -> list[tuple[int, int]]:
    """At most so many links that begin and end at these pages."""
    reader.note("DROP TABLE IF EXISTS temp.among")
    reader.note("CREATE TEMP TABLE among (id INTEGER PRIMARY KEY)")
    reader.note_many("INSERT INTO temp.among VALUES (?)", [(page,) for page in sorted(set(pages))])
    rows = reader.rows(
        f"SELECT l.from_page_id, l.to_page_id FROM temp.among a CROSS JOIN links l ON {links_of('l', 'a.id')}"
        f" WHERE l.last_run = ? AND l.to_page_id IN (SELECT id FROM temp.among){reader.ordered('a.id, l.id')} LIMIT ?",
        (run, most),
    )
    return [(source, target) for source, target in rows]


def links_between(reader: MapReader, source: int, target: int, most: int) -> list[PageLink]:
    """At most so many page links from one domain to another, in any run. Reads the pages of the smaller domain."""
    if has_reverse_index(reader) and _pages(reader, target) < _pages(reader, source):
        path = (
            f"pages t CROSS JOIN {reader.links_to('l', 't.id')} CROSS JOIN pages f ON f.id = l.from_page_id"
            " WHERE t.domain_id = ?2 AND f.domain_id = ?1"
        )
    else:
        path = (
            f"pages f CROSS JOIN links l ON {links_of('l', 'f.id')} CROSS JOIN pages t ON t.id = l.to_page_id"
            " WHERE f.domain_id = ?1 AND t.domain_id = ?2"
        )
    rows = reader.all(
        f"SELECT f.id, t.id, f.url, t.url FROM {path}{reader.ordered('f.id, t.id')} LIMIT ?3", (source, target, most)
    )
    contexts = link_contexts(reader, ((a, b) for a, b, _, _ in rows))
    return [PageLink(one, other, contexts.get((a, b), ("",))[0]) for a, b, one, other in rows]


def links_between_count(reader: MapReader, source: int, target: int) -> int:
    """The links from one domain to another, as they are summed up."""
    summed = reader.first("SELECT links FROM domain_links WHERE id = ?", (pair_id(source, target),))
    return int(summed[0]) if summed else 0


def _pages(reader: MapReader, domain_id: int) -> int:
    return reader.number("SELECT count(*) FROM pages WHERE domain_id = ?", (domain_id,))
