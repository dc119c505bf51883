"""Links on quality domains to pages that are gone, unreachable or permanently redirected; pages that were cut
short, or have too many links.

`mark_broken` comes first: it notes the pages that the other questions are about. `broken_links` needs
`domain_links.mark_quality` too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from crawler.database.format import LINK_REDIRECT
from crawler.database.ids import links_of
from crawler.database.reader import MapReader
from reporter.queries.one_page import truncated_column
from reporter.queries.rows import BrokenLink

_MOST_REDIRECTS = 10
_SLUG = "substr(error_message, 1, instr(error_message || ':', ':') - 1)"
_GONE = f"(state = 'dead_link' OR (state IN ('unreachable', 'failed') AND {_SLUG} = 'dns'))"
_UNREACHABLE = (
    f"(state = 'unreachable' OR (state = 'failed' AND ({_SLUG} LIKE 'http-5__' OR {_SLUG} IN ('robots-unreachable',"
    " 'timeout', 'dns-temporary', 'tls', 'connection-refused', 'connection-reset', 'connection-failed',"
    " 'early-close'))))"
)


def mark_broken(reader: MapReader, run: int) -> None:
    """Note, in a temporary table, pages that are gone, unreachable or permanently redirected, have too many links, or
    were cut short: one look at all pages for all of them.

    Gone: 404, 410, or a host name that does not exist. Unreachable: no usable answer, or a server error.
    """
    reader.note("DROP TABLE IF EXISTS temp.marked")
    reader.note(
        "CREATE TEMP TABLE marked (id INTEGER PRIMARY KEY, kind TEXT, status INTEGER, target INTEGER, cut INTEGER,"
        " truncated INTEGER)"
    )
    truncated = truncated_column(reader)
    reader.note(
        "INSERT INTO temp.marked"
        f" SELECT id, CASE WHEN {_GONE} THEN 'gone' WHEN {_UNREACHABLE} THEN 'unreachable'"
        "  WHEN redirect_to IS NOT NULL AND status_code IN (301, 308) AND state = 'processed' THEN 'moved' END,"
        f" status_code, redirect_to, links_cut, {truncated} FROM pages"
        f" WHERE seen_run = ? AND visited_run = seen_run AND ({_GONE} OR {_UNREACHABLE} OR links_cut > 0"
        f"  OR {truncated} = 1"
        "  OR (redirect_to IS NOT NULL AND status_code IN (301, 308) AND state = 'processed'))",
        (run,),
    )


_FROM = f"FROM pages p CROSS JOIN links l ON {links_of('l', 'p.id')} CROSS JOIN temp.marked m ON m.id = l.to_page_id"
_WHERE = (
    "WHERE p.domain_id IN (SELECT id FROM temp.quality) AND p.visited_run = ?1"
    f" AND l.last_run = ?1 AND l.kind <> {LINK_REDIRECT} AND m.kind IS NOT NULL"
)
_BROKEN = f"{_FROM} {_WHERE}"
_BROKEN_TO = f"{_FROM} CROSS JOIN pages t ON t.id = l.to_page_id {_WHERE}"


class BrokenLinks(NamedTuple):
    """Links on quality domains by the fate of their targets. Each list: by quality domain, most pages first."""

    gone: list[BrokenLink]
    unreachable: list[BrokenLink]
    moved: list[BrokenLink]


def broken_links(reader: MapReader, run: int, examples: int = 3) -> BrokenLinks:
    """Links on pages of quality domains, as `run` saw them, to pages that are gone, unreachable or moved."""
    order = reader.ordered("p.id, l.id")
    rows = reader.rows(f"SELECT m.kind, p.domain_id, l.to_page_id, l.from_page_id {_BROKEN}{order}", (run,))
    found: dict[tuple[str, int, int], tuple[int, tuple[int, ...]]] = {}
    for kind, domain_id, target, page in rows:
        count, first = found.get((kind, domain_id, target), (0, ()))
        found[kind, domain_id, target] = (count + 1, (*first, page) if len(first) < examples else first)
    ranked = sorted(found.items(), key=lambda item: (item[0][1], -item[1][0], item[0][2]))
    return BrokenLinks(
        *(
            [BrokenLink(domain, target, *pages) for (kind, domain, target), pages in ranked if kind == wanted]
            for wanted in BrokenLinks._fields
        )
    )


def pages_with_broken_links(reader: MapReader, run: int) -> list[tuple[str, str, str, str]]:
    """(kind, quality domain, page, link) for every page with such a link, by domain and link."""
    rows = reader.rows(
        f"SELECT m.kind, p.domain, p.url, t.url {_BROKEN_TO} ORDER BY p.domain, m.kind, t.url, p.url", (run,)
    )
    return [(kind, domain, page, link) for kind, domain, page, link in rows]


def moved_to(reader: MapReader, pages: Iterable[int]) -> dict[int, int]:
    """The last page of the permanent redirects from each of these pages (page id → page id)."""
    answer = {}
    for page in pages:
        passed = {page}
        here = page
        while True:
            row = reader.first("SELECT target FROM temp.marked WHERE id = ? AND kind = 'moved'", (here,))
            if row is None or row[0] in passed or len(passed) > _MOST_REDIRECTS:
                break
            here = row[0]
            passed.add(here)
        answer[page] = here
    return answer


def truncated_pages(reader: MapReader, most: int) -> tuple[list[int], int]:
    """Pages whose compressed body ended early in the run: the first ones, and how many they are."""
    found = [page for (page,) in reader.rows("SELECT id FROM temp.marked WHERE truncated = 1 ORDER BY id")]
    return found[:most], len(found)


def cut_pages(reader: MapReader) -> list[tuple[int, int]]:
    """(page id, links left out) of pages with more links than the config allows."""
    rows = reader.rows("SELECT id, cut FROM temp.marked WHERE cut > 0 ORDER BY cut DESC, id")
    return [(page, cut) for page, cut in rows]
