"""Links on quality domains to dead and to permanently redirected pages, and pages with too many links.

`mark_broken` comes first: it notes the pages that the other questions are about. `broken_links` needs
`domain_links.mark_quality` too.
"""

from __future__ import annotations

from collections.abc import Iterable

from crawler.database.format import LINK_REDIRECT
from crawler.database.ids import pairs_of
from crawler.database.reader import MapReader
from reporter.queries.rows import BrokenLink

_MOST_REDIRECTS = 10


def mark_broken(reader: MapReader, run: int) -> None:
    """Note, in a temporary table, the pages that are dead, permanently redirected, or have too many links."""
    reader.note("DROP TABLE IF EXISTS temp.marked")
    reader.note(
        "CREATE TEMP TABLE marked (id INTEGER PRIMARY KEY, kind TEXT, status INTEGER, target INTEGER, cut INTEGER)"
    )
    reader.note(
        "INSERT INTO temp.marked"
        " SELECT id, CASE WHEN state = 'dead_link' THEN 'dead' WHEN redirect_to IS NOT NULL THEN 'moved' END,"
        "  status_code, redirect_to, links_cut FROM pages"
        " WHERE seen_run = ? AND visited_run = seen_run AND (state = 'dead_link' OR links_cut > 0"
        "  OR (redirect_to IS NOT NULL AND status_code IN (301, 308) AND state = 'processed'))",
        (run,),
    )


def broken_links(reader: MapReader, run: int, examples: int = 3) -> tuple[list[BrokenLink], list[BrokenLink]]:
    """Links on pages of quality domains, as `run` saw them, to dead and to permanently redirected pages.

    Both lists are sorted by quality domain, most pages first.
    """
    rows = reader.rows(
        "SELECT m.kind, p.domain_id, l.to_page_id, l.from_page_id"
        f" FROM pages p CROSS JOIN links l ON l.id {pairs_of('p.id')}"
        " CROSS JOIN temp.marked m ON m.id = l.to_page_id"
        " WHERE p.domain_id IN (SELECT id FROM temp.quality) AND p.visited_run = ?1"
        f" AND l.last_run = ?1 AND l.kind <> {LINK_REDIRECT} AND m.kind IS NOT NULL",
        (run,),
    )
    found: dict[tuple[str, int, int], tuple[int, tuple[int, ...]]] = {}
    for kind, domain_id, target, page in rows:
        count, first = found.get((kind, domain_id, target), (0, ()))
        found[kind, domain_id, target] = (count + 1, (*first, page) if len(first) < examples else first)
    ranked = sorted(found.items(), key=lambda item: (item[0][1], -item[1][0], item[0][2]))
    dead, moved = (
        [BrokenLink(domain, target, *pages) for (kind, domain, target), pages in ranked if kind == wanted]
        for wanted in ("dead", "moved")
    )
    return dead, moved


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


def cut_pages(reader: MapReader) -> list[tuple[int, int]]:
    """(page id, links left out) of pages with more links than the config allows."""
    rows = reader.rows("SELECT id, cut FROM temp.marked WHERE cut > 0 ORDER BY cut DESC, id")
    return [(page, cut) for page, cut in rows]
