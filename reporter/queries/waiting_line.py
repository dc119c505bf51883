"""A page's place among the waiting pages of its domain, and the way to it inside the domain."""

from __future__ import annotations

import orjson

from crawler.database.format import LINK_NOT_FOLLOWED
from crawler.database.reader import MapReader
from reporter.queries.rows import PageRow

_MOST_PAGES = 50_000  # that the search for a way looks at
_LINKED_FROM = (
    "SELECT DISTINCT l.from_page_id, p.domain_id FROM json_each(?) wanted"
    " CROSS JOIN {links} CROSS JOIN pages p ON p.id = l.from_page_id"
    f" WHERE l.last_run = ? AND l.kind <> {LINK_NOT_FOLLOWED} AND l.from_page_id <> l.to_page_id"
)


def pages_before(reader: MapReader, page: PageRow) -> int:
    """Pages of its domain that wait too, and go before it in the next run (crawler/database/frontier.py)."""
    return reader.number(
        "SELECT count(*) FROM pages WHERE domain_id = ? AND seen_run = ? AND state IN ('queued', 'request_limit_hit')"
        " AND (coalesce(visited_run, 0), coalesce(depth, 0), id) < (?, ?, ?)",
        (page.domain_id, page.seen_run, page.visited_run or 0, page.depth or 0, page.id),
    )


def pages_visited(reader: MapReader, domain_id: int, run: int) -> int:
    """Pages of a domain that were visited in a run."""
    return reader.number("SELECT count(*) FROM pages WHERE domain_id = ? AND visited_run = ?", (domain_id, run))


def steps_inside(reader: MapReader, page: PageRow) -> int | None:
    """The least number of pages of its domain that a run visits on the way to it: 0 for a seed, or where another domain
    links to it. None: not known, because links cannot be looked up by their target now, or the search is too long.
    """
    if not reader.has("idx_links_to"):
        return None
    row = reader.first("SELECT value FROM meta WHERE name = 'seeds'")
    starts = set(orjson.loads(row[0])) if row else set()
    known, level, steps = {page.id}, [page.id], 0
    while level and len(known) < _MOST_PAGES:
        if starts.intersection(level):
            return steps
        found = reader.all(
            _LINKED_FROM.format(links=reader.links_to("l", "wanted.value")),
            (orjson.dumps(level).decode(), page.seen_run),
        )
        if any(domain != page.domain_id for _, domain in found):
            return steps
        level = [number for number, _ in found if number not in known]
        known.update(level)
        steps += 1
    return None
