"""What monitoring asks of the map: a note of the ingest, and counts over domains. All zero where there is no map."""

from __future__ import annotations

from dataclasses import dataclass, field

from crawler.database.map_errors import MapError
from crawler.database.reader import MapReader, open_map
from crawler.model.map_place import MapPlace
from crawler.model.wire_counts import META, VisitCounts

_PATIENCE = 2  # seconds to wait for a lock
REASONS = ("rate-limited", "request-limit", "crawl-delay", "breaker-open", "cleared")  # of closed domains


@dataclass(frozen=True, slots=True)
class Monitored:
    counts: VisitCounts = field(default_factory=VisitCounts)
    domains: int = 0
    closed: dict[str, int] = field(default_factory=dict)  # domains closed in the run, by reason
    breakers: int = 0  # that are not closed


def monitored(database: MapPlace, run: int | None) -> Monitored:
    try:
        with open_map(database, patience=_PATIENCE) as reader:
            return _monitored(reader, run)
    except MapError:
        return Monitored()


def _monitored(reader: MapReader, run: int | None) -> Monitored:
    note = reader.first("SELECT value FROM meta WHERE name = ?", (META,))
    closed = dict.fromkeys(REASONS, 0)
    rows = reader.rows(
        "SELECT closed_reason, count(*) FROM domain_states WHERE run = ? AND closed_reason IS NOT NULL GROUP BY 1",
        (run or 0,),
    )
    closed |= {reason: count for reason, count in rows if reason in closed}
    breakers = 0
    if reader.has("breakers"):
        breakers = reader.number("SELECT count(*) FROM breakers WHERE run = ? AND state <> 'closed'", (run or 0,))
    domains = reader.number("SELECT coalesce(max(id), 0) FROM domain_states")
    return Monitored(VisitCounts.read(note[0] if note else None), domains, closed, breakers)
