"""Pages that are not due: carried into the run by a recorded decision, with their links, instead of being visited.

Which pages are not due is decided against the start of the run, so it does not change under way, whoever restarts. The
sitemaps of a domain are read first: their dates may tell that a page was changed since its last visit, and then it is
visited after all.
"""

from __future__ import annotations

from collections.abc import Callable

from crawler.database.carried_pages import NotDue, carried_results, not_due
from crawler.database.frontier import Frontier, Waiting
from crawler.model.settings import Config
from crawler.rules.revisit_interval import hurried
from crawler.schedule.decision_log import DecisionLog
from crawler.workspace.clock import now_text

BATCH = 200  # pages of a domain that are looked at in one turn
_PIECE = 40  # … and that are in memory at one time, with all their links


class PageCarrier:
    """`waiting` for the pages of a domain that are not due, then `carry` those that may be."""

    def __init__(self, config: Config, frontier: Frontier, decisions: DecisionLog) -> None:
        self._settings = config.revisit
        self._frontier = frontier
        self._decisions = decisions

    @property
    def is_on(self) -> bool:
        return self._settings.plans

    @property
    def reads_sitemaps_first(self) -> bool:
        return self._settings.schedule == "adaptive"

    def waiting(self, domain_id: int) -> list[NotDue]:
        return not_due(self._frontier, domain_id, BATCH) if self._settings.plans else []

    def is_hurried(self, page: NotDue) -> bool:
        """Does a sitemap tell of a change since its last visit?"""
        due = hurried(page.lastmod, page.visited_at) if self.reads_sitemaps_first else None
        return due is not None and due <= now_text()

    def carry(self, rows: list[Waiting], run: int, may_carry: Callable[[Waiting], bool]) -> list[Waiting]:
        """Record that these pages are not visited. Returns those of them for which that is so. `may_carry` counts a
        page against its limits, as if it were visited.
        """
        carried: list[Waiting] = []
        for start in range(0, len(rows), _PIECE):
            piece = rows[start : start + _PIECE]
            found = carried_results(self._frontier, run, now_text(), [row.page for row in piece])
            allowed = [row for row in piece if row.page in found and may_carry(row)]
            self._decisions.record_all([found[row.page] for row in allowed])
            carried += allowed
        return carried
