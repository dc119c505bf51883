"""Questions about one page: its row, depths, redirects, domain, and the pages that link to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from crawler.database.ids import ORIGIN_LOW, depth_id, depths_of_page, link_between
from crawler.database.reader import MapReader
from crawler.model.urls import hash64
from reporter.queries.domain_links import linking_domains
from reporter.queries.page_rule_rows import rule_columns
from reporter.queries.rows import DOMAIN_COLUMNS, DomainRow, PageRow

_PAGE = (
    "SELECT id, url, wire_url, domain, domain_id, state, title, status_code, content_type, visited_at, discovered_at,"
    " discovered_run, seen_run, visited_run, error_message, retry_count, depth, redirect_to, nofollow, links_cut"
)
_PROBES = 8  # two keys with one hash are next to impossible; the second has the hash of the next probe


def page_by_key(reader: MapReader, key: str) -> PageRow | None:
    """The page with this key, if it was ever seen."""
    for probe in range(_PROBES):
        row = reader.first(f"{_page_sql(reader)} WHERE url_hash = ?", (hash64(key, probe),))
        if row is None:
            return None
        if row[1] == key:
            return PageRow(*row)
    return None


def page_by_id(reader: MapReader, page: int) -> PageRow | None:
    row = reader.first(f"{_page_sql(reader)} WHERE id = ?", (page,))
    return PageRow(*row) if row else None


def truncated_column(reader: MapReader) -> str:
    """`pages.truncated`, or what it is in a map of a format without it."""
    return "truncated" if reader.has_column("pages", "truncated") else "0"


def judgement_columns(reader: MapReader) -> str:
    """`validation` and `rejection_reason`, or what they are in a map of a format without them."""
    return "validation, rejection_reason" if reader.has_column("pages", "validation") else "NULL, NULL"


def _page_sql(reader: MapReader) -> str:
    return f"{_PAGE}, {truncated_column(reader)}, {judgement_columns(reader)}, {rule_columns(reader)} FROM pages"


def urls_of(reader: MapReader, pages: Iterable[int]) -> dict[int, tuple[str, str, int | None, str | None]]:
    """(URL, state, status, error) of pages, by id."""
    answer = {}
    for page in set(pages):
        row = reader.first("SELECT url, state, status_code, error_message FROM pages WHERE id = ?", (page,))
        if row is not None:
            answer[page] = (row[0], row[1], row[2], row[3])
    return answer


def depths_of(reader: MapReader, page: int) -> list[tuple[int, str, int]]:
    """(origin number, origin, depth) of a page, nearest first."""
    rows = reader.rows(
        f"SELECT id & {ORIGIN_LOW}, quality_origin, depth FROM page_depths WHERE id BETWEEN ? AND ?"
        " ORDER BY depth, quality_origin",
        depths_of_page(page),
    )
    return [(number, origin, depth) for number, origin, depth in rows]


def depth_of(reader: MapReader, page: int, origin: int) -> int | None:
    """A page's depth for one origin."""
    row = reader.first("SELECT depth FROM page_depths WHERE id = ?", (depth_id(page, origin),))
    return None if row is None else int(row[0])


def link_kind(reader: MapReader, source: int, target: int, run: int) -> int | None:
    """The kind of the link that `run` saw from one page to another; None: there was none."""
    sql = f"SELECT kind FROM links WHERE {link_between('links', '?1', '?2')} AND last_run = ?3"
    row = reader.first(sql, (source, target, run))
    return None if row is None else int(row[0])


def linking_pages(
    reader: MapReader, page: int, domain_id: int, run: int | None, max_depth: int | None = None
) -> Iterator[tuple[int, int]]:
    """(page id, kind of link) of the pages that link to this one, in `run` or ever; those of its own domain first.

    With `max_depth`, pages whose least depth is greater may be left out. Without `idx_links_to` this asks, of every
    visited page in the domains that link to this one's, whether there is such a link: memory stays small (a number or
    two for each visited page), and `links` is never read from end to end.
    """
    if has_reverse_index(reader):
        rows = reader.rows(
            "SELECT l.from_page_id, l.kind FROM (SELECT ?1 AS target) one"
            f" CROSS JOIN {reader.links_to('l', 'one.target')}"
            f" WHERE (?2 IS NULL OR l.last_run = ?2){reader.ordered('l.from_page_id')}",
            (page, run),
        )
        yield from ((number, kind) for number, kind in rows)
        return
    _mark_visited(reader)
    for source in [domain_id, *linking_domains(reader, domain_id)]:
        rows = reader.rows(
            f"SELECT l.from_page_id, l.kind FROM temp.visited v CROSS JOIN links l ON {link_between('l', 'v.id', '?1')}"
            " WHERE v.domain_id = ?2 AND (?3 IS NULL OR l.last_run = ?3) AND (?4 IS NULL OR v.depth <= ?4)"
            + reader.ordered("v.id"),
            (page, source, run, max_depth),
        )
        yield from ((number, kind) for number, kind in rows)


def _mark_visited(reader: MapReader) -> None:
    """Note, by domain and once for a reader, the pages that can have links."""
    if reader.has_note("visited"):
        return
    reader.note(
        "CREATE TEMP TABLE visited (domain_id INTEGER, id INTEGER, depth INTEGER, PRIMARY KEY (domain_id, id))"
        " WITHOUT ROWID"
    )
    reader.note("INSERT INTO temp.visited SELECT domain_id, id, depth FROM pages WHERE visited_run IS NOT NULL")


def has_reverse_index(reader: MapReader) -> bool:
    """Can links be looked up by their target?"""
    return reader.has("idx_links_to")


def redirects_here(reader: MapReader, page: int) -> list[int]:
    """The pages whose visits were redirected to this one."""
    sql = "SELECT id FROM pages WHERE redirect_to = ? AND redirect_to IS NOT NULL ORDER BY id"
    return [number for (number,) in reader.rows(sql, (page,))]


def domain_by_name(reader: MapReader, domain: str) -> tuple[DomainRow, str | None, str | None] | None:
    """A domain with its robots.txt and the time that was fetched."""
    sql = f"SELECT robots_txt, robots_fetched_at, {DOMAIN_COLUMNS} FROM domain_states WHERE domain = ?"
    row = reader.first(sql, (domain,))
    return (DomainRow(*row[2:]), row[0], row[1]) if row else None


def revisit_of(reader: MapReader, page: PageRow) -> tuple[str | None, int, str, str, int | None] | None:
    """(next_crawl_at, interval, visited_at, changed_at, carried_run) of a page; None: its last visit made no plan."""
    if page.visited_run is None or not reader.has("revisits"):
        return None
    row = reader.first(
        "SELECT next_crawl_at, interval, visited_at, changed_at, carried_run FROM revisits WHERE id = ? AND run = ?",
        (page.id, page.visited_run),
    )
    return None if row is None else (row[0], row[1], row[2], row[3], row[4])


def closed_family(reader: MapReader, run: int, domain: str, family: str) -> str | None:
    """The error that further pages of a family get in this run; None while it is open."""
    row = reader.first(
        "SELECT error FROM closed_families WHERE run = ? AND domain = ? AND family = ?", (run, domain, family)
    )
    return None if row is None else str(row[0])
