"""Pages of candidate domains, and the links from quality domains to them.

`mark_candidates` comes first: it notes the domains that the other questions are about. `referrers` needs
`domain_links.mark_quality` too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from crawler.database.format import LINK_REDIRECT
from crawler.database.ids import links_of
from crawler.database.reader import MapReader
from reporter.queries.one_page import has_reverse_index


def mark_candidates(reader: MapReader, domains: Iterable[int]) -> None:
    """Note, in a temporary table, the ids of these domains."""
    reader.note("DROP TABLE IF EXISTS temp.candidate")
    reader.note("CREATE TEMP TABLE candidate (id INTEGER PRIMARY KEY)")
    reader.note_many("INSERT INTO temp.candidate VALUES (?)", [(number,) for number in domains])


def least_depths(reader: MapReader, run: int) -> dict[int, int]:
    """Domain id → least depth of its pages that `run` saw; a domain without a followed path is left out."""
    rows = reader.rows(
        "SELECT domain_id, min(depth) FROM pages WHERE domain_id IN (SELECT id FROM temp.candidate)"
        " AND seen_run = ? AND depth IS NOT NULL GROUP BY domain_id",
        (run,),
    )
    return dict(rows)


def page_states(reader: MapReader, run: int) -> list[tuple[int, str, str | None, int]]:
    """(domain id, state, slug of the error, pages) of the pages that `run` saw."""
    return [
        (domain, state, slug, count)
        for domain, state, slug, count in reader.rows(
            "SELECT domain_id, state, substr(error_message, 1, instr(error_message || ':', ':') - 1), count(*)"
            " FROM pages WHERE domain_id IN (SELECT id FROM temp.candidate) AND seen_run = ? GROUP BY 1, 2, 3",
            (run,),
        )
    ]


def counted_states(rows: Iterable[tuple[int, str, str | None, int]]) -> dict[int, Counter[tuple[str, str | None]]]:
    """Domain id → pages by (state, slug of the error), of the rows of `page_states`."""
    found: dict[int, Counter[tuple[str, str | None]]] = {}
    for domain, state, slug, count in rows:
        found.setdefault(domain, Counter())[state, slug] += count
    return found


def front_titles(reader: MapReader) -> dict[int, str]:
    """Domain id → title of its front page, or of the page that the front page redirects to."""
    rows = reader.rows(
        "SELECT p.domain_id, coalesce(p.title, t.title) FROM pages p LEFT JOIN pages t ON t.id = p.redirect_to"
        " WHERE p.domain_id IN (SELECT id FROM temp.candidate) AND p.url = 'https://' || p.domain || '/'"
    )
    return {domain: title for domain, title in rows if title}


def referrers(reader: MapReader, run: int, most: int) -> dict[int, list[tuple[int, int]]]:
    """Domain id → at most `most` of (page of a quality domain, target), each of another quality domain."""
    reader.note("DROP TABLE IF EXISTS temp.candidate_page")
    reader.note("CREATE TEMP TABLE candidate_page (id INTEGER PRIMARY KEY, domain_id INTEGER)")
    reader.note(
        "INSERT INTO temp.candidate_page SELECT id, domain_id FROM pages"
        " WHERE domain_id IN (SELECT id FROM temp.candidate)"
    )
    if has_reverse_index(reader):
        source = (
            f"temp.candidate_page c CROSS JOIN {reader.links_to('l', 'c.id')}"
            " CROSS JOIN pages p ON p.id = l.from_page_id"
        )
    else:
        source = (
            f"pages p CROSS JOIN links l ON {links_of('l', 'p.id')}"
            " CROSS JOIN temp.candidate_page c ON c.id = l.to_page_id"
        )
    rows = reader.rows(
        f"SELECT c.domain_id, p.domain_id, l.from_page_id, l.to_page_id FROM {source}"
        " WHERE p.domain_id IN (SELECT id FROM temp.quality) AND p.visited_run = ?1 AND l.last_run = ?1"
        f" AND l.kind <> {LINK_REDIRECT}",
        (run,),
    )
    first: dict[int, dict[int, tuple[int, int]]] = {}
    for domain, quality, page, target in rows:
        of_domain = first.setdefault(domain, {})
        of_domain[quality] = min(of_domain.get(quality, (page, target)), (page, target))
    return {domain: sorted(found.values())[:most] for domain, found in first.items()}
