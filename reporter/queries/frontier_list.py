"""Waiting pages, as the frontier table has them: how many, of which domains, and a few at a time."""

from __future__ import annotations

from typing import NamedTuple

from crawler.database.reader import MapReader

# One seek a domain, as in crawler/database/frontier.py: the index has it all.
_DOMAINS = """
WITH RECURSIVE waiting(domain_id) AS (
    SELECT min(domain_id) FROM frontier
    UNION ALL
    SELECT (SELECT min(domain_id) FROM frontier WHERE domain_id > waiting.domain_id)
    FROM waiting WHERE waiting.domain_id IS NOT NULL
)
SELECT count(domain_id) FROM waiting
"""


class WaitingPage(NamedTuple):
    row: int
    url: str
    domain: str
    priority: int
    added_at: str


def waiting_domains(reader: MapReader) -> int:
    """Different domains with waiting pages."""
    return reader.number(_DOMAINS)


def waiting_pages(reader: MapReader, domain_id: int | None, after: int, limit: int) -> list[WaitingPage]:
    """At most so many rows of the frontier after this one, pages alone."""
    where = "" if domain_id is None else " AND domain_id = :domain"
    # The rows first, then their pages: a domain may have a million.
    some = f"SELECT id FROM frontier WHERE id > :after{where} ORDER BY id LIMIT :limit"
    rows = reader.rows(
        f"SELECT f.id, p.url, p.domain, f.priority, f.added_at FROM ({some}) next_ones"
        " CROSS JOIN frontier f ON f.id = next_ones.id CROSS JOIN pages p ON p.id = f.page_id"
        f"{reader.ordered('f.id')}",
        {"after": after, "domain": domain_id, "limit": limit},
    )
    return [WaitingPage(*row) for row in rows]
