"""Pages that were found, or tried, without a link. Maps before format 5 have none."""

from __future__ import annotations

from crawler.database.reader import MapReader

_CRAWLED = "count(*) FILTER (WHERE p.state = 'processed' AND coalesce(p.validation, 'ok') = 'ok')"


def unlinked_pages(reader: MapReader, run: int) -> list[tuple[str, int, int, int | None]]:
    """(way, pages, those of them that were crawled, new pages that they led to) of a run.

    Of sitemaps: pages that no link leads to; what they led to is not counted (None). Of guesses: pages that were tried.
    """
    rows: list[tuple[str, int, int, int | None]] = []
    if reader.has("sitemap_entries"):
        pages, crawled = reader.all(
            f"SELECT count(*), {_CRAWLED} FROM sitemap_entries e CROSS JOIN pages p ON p.id = e.id"
            " WHERE p.origin = 'sitemap' AND p.seen_run = ?",
            (run,),
        )[0]
        rows.append(("sitemap", pages, crawled, None))
    if reader.has("guesses"):
        rows += reader.all(
            f"SELECT g.way, count(*), {_CRAWLED}, coalesce(sum(g.found), 0) FROM guesses g CROSS JOIN pages p"
            " ON p.id = g.id WHERE g.run = ? AND g.way <> 'sitemap' GROUP BY g.way ORDER BY g.way",
            (run,),
        )
    return [row for row in rows if row[1]]


def guessed_forms(reader: MapReader, run: int) -> list[tuple[str, str, int, str | None]]:
    """(way, form, pages that were tried in a run, why no more were), most first."""
    if not reader.has("guesses"):
        return []
    parts = " UNION ALL ".join(
        f"SELECT g.way, r.form, count(*), CASE WHEN r.ended_run = ?1 THEN r.ended_by END FROM guesses g"
        f" CROSS JOIN {table} r ON r.id = g.rule_id WHERE g.run = ?1 AND g.way = '{way}' GROUP BY r.id, g.way"
        for table, way in (("pagination_rules", "speculated"), ("archive_rules", "archive"))
    )
    rows = reader.all(f"{parts} ORDER BY 3 DESC, 2", (run,))
    return [(way, form, tried, end) for way, form, tried, end in rows]
