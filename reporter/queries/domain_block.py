"""Why a domain is left alone in the newest run."""

from __future__ import annotations

from typing import NamedTuple

from crawler.database.reader import MapReader


class DomainBlock(NamedTuple):
    """`closed`: the reason, None where it is open. `breaker`: closed, open or half-open."""

    closed: str | None
    breaker: str

    @property
    def is_breaker_open(self) -> bool:
        return self.breaker != "closed"


def block_of(reader: MapReader, domain: str) -> DomainBlock | None:
    """None: the map has no such domain."""
    run = reader.number("SELECT coalesce(max(id), 0) FROM runs")
    row = reader.first(
        "SELECT id, CASE WHEN run = ? THEN closed_reason END FROM domain_states WHERE domain = ?", (run, domain)
    )
    if row is None:
        return None
    found = None
    if reader.has("breakers"):
        found = reader.first("SELECT state FROM breakers WHERE id = ? AND run = ?", (row[0], run))
    return DomainBlock(row[1], str(found[0]) if found else "closed")
