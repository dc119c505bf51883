"""A few pages of each of some domains, as examples."""

from __future__ import annotations

from collections.abc import Iterable

from crawler.database.reader import MapReader


def sample_pages(
    reader: MapReader, domains: Iterable[int], run: int, most: int
) -> dict[int, list[tuple[str, str | None, str]]]:
    """(URL, title, state) of at most so many pages a domain that `run` saw: crawled ones first, nearest first."""
    reader.note("DROP TABLE IF EXISTS temp.sampled")
    reader.note("CREATE TEMP TABLE sampled (id INTEGER PRIMARY KEY)")
    reader.note_many("INSERT INTO temp.sampled VALUES (?)", [(domain,) for domain in domains])
    # First the ids, so that the sort carries no texts.
    rows = reader.rows(
        "SELECT p.domain_id, p.url, p.title, p.state FROM ("
        "  SELECT id, row_number() OVER (PARTITION BY domain_id ORDER BY state <> 'processed', title IS NULL,"
        "   depth IS NULL, depth, id) AS place"
        "  FROM pages WHERE seen_run = ? AND domain_id IN (SELECT id FROM temp.sampled)) chosen"
        " CROSS JOIN pages p ON p.id = chosen.id WHERE chosen.place <= ? ORDER BY p.domain_id, chosen.place",
        (run, most),
    )
    found: dict[int, list[tuple[str, str | None, str]]] = {}
    for domain, url, title, state in rows:
        found.setdefault(domain, []).append((url, title, state))
    return found
