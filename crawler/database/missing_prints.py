"""What domains show for missing pages in a run, by the prints of their texts.

A print that the domain's front page has as well tells nothing: there are sites that answer every missing page with
their front page, and 404.
"""

from __future__ import annotations

from crawler.database.live_map import LiveMap

# (domain_id, text_print), for the run ?1. Reads all pages: for the moments in which nothing else is left to do.
MISSING_PRINTS = """
    SELECT domain_id, text_print FROM pages
    WHERE visited_run = ?1 AND state = 'dead_link' AND text_print IS NOT NULL
    EXCEPT
    SELECT domain_id, text_print FROM pages
    WHERE visited_run = ?1 AND text_print IS NOT NULL AND validation = 'ok' AND url = 'https://' || domain || '/'
"""


class MissingPrints:
    """The prints by domain, asked for once. Raises MapAway."""

    def __init__(self, live_map: LiveMap, run: int) -> None:
        self._map = live_map
        self._run = run
        self._prints: dict[str, set[int]] | None = None

    def of(self, domain: str) -> set[int]:
        if self._prints is None:
            self._prints = {}
            sql = f"SELECT d.domain, m.text_print FROM ({MISSING_PRINTS}) m JOIN domain_states d ON d.id = m.domain_id"
            for name, number in self._map.ask(sql, (self._run,)):
                self._prints.setdefault(name, set()).add(number)
        return self._prints.get(domain, set())
