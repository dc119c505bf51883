"""Visits of a run by status code and kind of error, as the ingest counted them; waiting pages and closed domains."""

from __future__ import annotations

from crawler.database.reader import MapReader

MOST_COUNTED = 10_000  # waiting pages of a domain


def visit_totals(reader: MapReader, run: int, kind: str) -> dict[str, int]:
    """Counts by name; kind: `status`, `error` or `bytes`. {} in a map of an older program."""
    if not reader.has("visit_counts"):
        return {}
    rows = reader.rows("SELECT name, count FROM visit_counts WHERE run = ? AND kind = ? ORDER BY name", (run, kind))
    return {str(name): int(count) for name, count in rows}


def closed_domains(reader: MapReader) -> dict[str, int]:
    """Domains that were closed early in the newest run, by reason."""
    rows = reader.rows(
        "SELECT closed_reason, count(*) FROM domain_states WHERE run = (SELECT max(id) FROM runs)"
        " AND closed_reason IS NOT NULL GROUP BY closed_reason ORDER BY closed_reason"
    )
    return {str(reason): int(count) for reason, count in rows}


def waiting_of_domain(reader: MapReader, domain: str) -> int:
    """Waiting pages of a domain, counted up to MOST_COUNTED."""
    return reader.number(
        "SELECT count(*) FROM (SELECT 1 FROM frontier WHERE domain_id = (SELECT id FROM domain_states WHERE domain = ?)"
        f" LIMIT {MOST_COUNTED}) counted",
        (domain,),
    )
