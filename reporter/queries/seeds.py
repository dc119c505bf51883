"""The seeds of the newest run, and the outcome of each."""

from __future__ import annotations

from collections.abc import Mapping

from crawler.database.reader import MapReader
from reporter.queries.rows import SeedRow

_MOST_REDIRECTS = 10
_FAILED = ("dead_link", "unreachable", "rate_limited", "failed")
_PAGES = (
    "SELECT s.value, p.url, p.state, p.error_message, p.redirect_to"
    " FROM meta m, json_each(m.value) s JOIN pages p ON p.id = s.value WHERE m.name = 'seeds' ORDER BY s.key"
)
_PAGE = "SELECT url, state, error_message, redirect_to FROM pages WHERE id = ?"


def seed_rows(reader: MapReader) -> list[SeedRow]:
    """The seeds that the run started from; none in a map that was made before they were noted."""
    return [_outcome(reader, *row) for row in reader.all(_PAGES)]


def _outcome(reader: MapReader, page: int, url: str, state: str, error: str | None, redirect_to: int | None) -> SeedRow:
    """Follow the redirects of a seed: its outcome is that of the page that they lead to."""
    end, passed = url, {page}
    while state == "processed" and redirect_to is not None and redirect_to not in passed:
        if len(passed) > _MOST_REDIRECTS:
            break
        passed.add(redirect_to)
        row = reader.first(_PAGE, (redirect_to,))
        if row is None:
            break
        end, state, error, redirect_to = row
    return SeedRow(url, end, state, error)


def one_failed_page(reader: MapReader, run: int, states: Mapping[str, int]) -> str | None:
    """The URL of a page that failed in this run, as an example; None if none did. `states`: its pages by state."""
    if not any(states.get(state) for state in _FAILED):
        return None  # without a look at each page
    names = ", ".join(f"'{state}'" for state in _FAILED)
    row = reader.first(
        f"SELECT url FROM pages WHERE seen_run = ? AND state IN ({names}){reader.ordered('id')} LIMIT 1",
        (run,),
    )
    return None if row is None else str(row[0])
