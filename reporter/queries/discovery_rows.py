"""How pages became known: their origin, and the sitemaps that were read. Maps before format 5 know links alone."""

from __future__ import annotations

from typing import NamedTuple

from crawler.database.reader import MapReader


class SitemapRow(NamedTuple):
    """A sitemap of a domain, or announced by its robots.txt."""

    url: str
    run: int
    state: str  # waiting | read | failed
    form: str | None
    entries: int
    left_out: int
    is_cut: int
    error: str | None


class ListRow(NamedTuple):
    """A list over several pages of a domain."""

    form: str
    last: int  # the highest number that is known
    guesses: int  # pages that were tried in the run that last saw the list
    ended_by: str | None  # why no more of them were


def has_origins(reader: MapReader) -> bool:
    """Does the map tell how pages became known?"""
    return reader.has("sitemaps")


def origin_column(reader: MapReader, pages: str) -> str:
    """The origin of a page, as an expression over the table `pages` under this name."""
    return f"{pages}.origin" if has_origins(reader) else "'linked'"


def origin_of(reader: MapReader, page: int) -> str:
    row = reader.first(f"SELECT {origin_column(reader, 'p')} FROM pages p WHERE id = ?", (page,))
    return str(row[0]) if row else "linked"


def sitemap_entry(reader: MapReader, page: int) -> tuple[str, str | None] | None:
    """(URL of the sitemap, date of the last change) of a page that is in one."""
    if not has_origins(reader):
        return None
    sql = "SELECT s.url, e.lastmod FROM sitemap_entries e JOIN sitemaps s ON s.id = e.sitemap_id WHERE e.id = ?"
    row = reader.first(sql, (page,))
    return (str(row[0]), row[1]) if row else None


def sitemaps_of(reader: MapReader, domain: str) -> list[SitemapRow]:
    """The sitemaps that a domain's robots.txt led to, the robots.txt itself left out."""
    if not has_origins(reader):
        return []
    rows = reader.rows(
        "SELECT url, run, state, form, entries, left_out, is_cut, error_message FROM sitemaps"
        " WHERE announced_by = ? AND level > 0 ORDER BY level, id",
        (domain,),
    )
    return [SitemapRow(*row) for row in rows]


def next_page_of(reader: MapReader, page: int) -> tuple[str, str] | None:
    """(URL, evidence) of the next page of the list that a page belongs to, where it is labelled."""
    if not reader.has("next_pages"):
        return None
    row = reader.first(
        "SELECT p.url, n.evidence FROM next_pages n JOIN pages p ON p.id = n.next_id WHERE n.id = ?", (page,)
    )
    return (str(row[0]), str(row[1])) if row else None


def lists_of(reader: MapReader, domain_id: int) -> list[ListRow]:
    """A domain's lists over several pages, longest first."""
    if not reader.has("pagination_rules"):
        return []
    rows = reader.all(
        "SELECT form, (SELECT max(number) FROM (SELECT number FROM list_pages m WHERE m.rule_id = r.id"
        "  UNION ALL SELECT r.last_number) known),"
        " (SELECT count(*) FROM guesses g WHERE g.rule_id = r.id AND g.run = r.last_run),"
        " CASE WHEN ended_run = last_run THEN ended_by END"
        " FROM pagination_rules r WHERE domain_id = ? ORDER BY 2 DESC, form LIMIT 50",
        (domain_id,),
    )
    return [ListRow(*row) for row in rows]


def archives_of(reader: MapReader, domain_id: int) -> list[ListRow]:
    """Forms of archives that a domain's links show; `last` is the number of such addresses."""
    if not reader.has("archive_rules"):
        return []
    rows = reader.all(
        "SELECT form, (SELECT count(*) FROM archive_pages a WHERE a.rule_id = r.id AND a.run = r.last_run),"
        " (SELECT count(*) FROM guesses g WHERE g.rule_id = r.id AND g.run = r.last_run),"
        " CASE WHEN ended_run = last_run THEN ended_by END"
        " FROM archive_rules r WHERE domain_id = ? ORDER BY 2 DESC, form LIMIT 50",
        (domain_id,),
    )
    return [ListRow(*row) for row in rows]


def count_by_origin(reader: MapReader, domain_id: int | None = None) -> dict[str, int]:
    """Pages that no link leads to, by origin; of one domain, or of the whole map."""
    if not has_origins(reader):
        return {}
    where, values = ("", ()) if domain_id is None else (" AND domain_id = ?", (domain_id,))  # else no index would serve
    rows = reader.rows(
        f"SELECT origin, count(*) FROM pages WHERE origin NOT IN ('linked', 'seed'){where}"
        " GROUP BY origin ORDER BY origin",
        values,
    )
    return dict(rows)
