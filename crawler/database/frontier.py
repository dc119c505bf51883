"""The frontier as the scheduler sees it: one question a method, never the whole frontier at once.

Inside a domain, pages that were never visited go before those of earlier runs (`turn`), then the nearest ones, then
the oldest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from crawler.database.format import NOT_DUE_TURN, SITEMAP_TURN
from crawler.database.live_map import LiveMap
from crawler.database.map_errors import MapAway
from crawler.model.records import SITEMAP_KEY, UNSET, Job, PageResult, Validators, parse
from crawler.workspace.log import Cursor

__all__ = ["DomainInLine", "Frontier", "MapAway", "Waiting"]  # a question raises MapAway

_CHUNK = 400

# One seek a domain: the next domain number above the last one, and there the best row. The index has it all.
_DOMAINS = """
WITH RECURSIVE waiting(domain_id) AS (
    SELECT min(domain_id) FROM frontier
    UNION ALL
    SELECT (SELECT min(domain_id) FROM frontier WHERE domain_id > waiting.domain_id)
    FROM waiting WHERE waiting.domain_id IS NOT NULL
)
SELECT s.domain, f.priority, f.id
FROM waiting CROSS JOIN domain_states s ON s.id = waiting.domain_id
CROSS JOIN frontier f ON f.id = (
    SELECT id FROM frontier WHERE domain_id = waiting.domain_id ORDER BY turn, priority, id LIMIT 1
)
"""
_WINDOW = """
SELECT f.page_id, f.priority, p.url, p.wire_url, p.family, f.turn
FROM frontier f INDEXED BY idx_frontier_domain CROSS JOIN pages p ON p.id = f.page_id
WHERE f.domain_id = ? AND f.turn < ? ORDER BY f.turn, f.priority, f.id LIMIT ?
"""
# The best of the sitemaps of a domain that wait; their rows have numbers below zero.
_SITEMAP = """
SELECT -s.id, f.priority, s.url, s.wire_url, NULL, f.turn, s.announced_by, s.level
FROM frontier f INDEXED BY idx_frontier_domain CROSS JOIN sitemaps s ON s.id = -f.id
WHERE f.domain_id = ? AND f.turn = ? ORDER BY f.priority, f.id DESC LIMIT 1
"""
_HELD_LINES = "SELECT id, line FROM held_results WHERE run = ? AND id > ? ORDER BY id LIMIT ?"


class Waiting(NamedTuple):
    """A page that waits to be visited, or (`page` is below zero) a sitemap that waits to be read."""

    page: int
    priority: int
    key: str
    wire: str | None
    family: int | None
    turn: int = 0  # 0: it was never visited
    announced_by: str = ""
    level: int = 0

    def job(self, run: int, domain: str, validators: Validators | None = None) -> Job:
        wire = self.wire or self.key
        if self.page >= 0:
            return Job(run, self.key, wire, domain, self.page, validators=UNSET if validators is None else validators)
        return Job(run, SITEMAP_KEY + self.key, wire, domain, self.page, "sitemap", self.announced_by, self.level)


class DomainInLine(NamedTuple):
    """A domain with waiting pages, and the place of the best of them."""

    name: str
    priority: int
    row: int


class Frontier(LiveMap):
    """The scheduler's questions. Each raises MapAway."""

    # -- the map as a whole --------------------------------------------------------------------------

    def last_run(self) -> tuple[int, str] | None:
        """(number, status) of the newest run that the map knows."""
        rows = self.ask("SELECT id, status FROM runs ORDER BY id DESC LIMIT 1")
        return (int(rows[0][0]), str(rows[0][1])) if rows else None

    def taken_orders(self) -> set[str]:
        """Ids of the orders that were taken up, in any run."""
        if not self.has("orders"):
            return set()
        return {str(row[0]) for row in self.ask("SELECT id FROM orders")}

    def started_at(self, run: int) -> str | None:
        rows = self.ask("SELECT started_at FROM runs WHERE id = ?", (run,))
        return str(rows[0][0]) if rows else None

    def positions(self) -> dict[str, Cursor]:
        """The place up to which each result log was applied."""
        rows = self.ask("SELECT writer, segment, offset FROM spool_positions")
        return {writer: Cursor(segment, offset) for writer, segment, offset in rows}

    def visited_pages(self, run: int) -> int:
        """The number of pages that were visited in a run, those included whose visit does not count under the rules of
        now; those that were carried into it are none of them. Reads all pages: for a start, not for every step.
        """
        visited = int(self.ask("SELECT count(*) FROM pages WHERE visited_run = ?", (run,))[0][0])
        carried = int(self.ask("SELECT count(*) FROM revisits WHERE carried_run = ?", (run,))[0][0])
        if carried:
            return visited - carried + self._held_visits(run)
        return visited + int(self.ask("SELECT count(*) FROM held_results WHERE run = ?", (run,))[0][0])

    def _held_visits(self, run: int) -> int:
        """Visits whose pages are not open. Reads their results, in pieces: some may have been carried."""
        found, last = 0, -(2**63)
        while rows := self.ask(_HELD_LINES, (run, last, _CHUNK)):
            last = rows[-1][0]
            results = (parse(bytes(line)) for _, line in rows)
            found += sum(isinstance(result, PageResult) and not result.is_carried for result in results)
        return found

    def visited_domains(self, run: int) -> list[str]:
        """The domains that were requested in a run."""
        return [
            name for (name,) in self.ask("SELECT domain FROM domain_states WHERE run = ? AND request_count > 0", (run,))
        ]

    # -- waiting pages -------------------------------------------------------------------------------

    def is_empty(self) -> bool:
        return not self.ask("SELECT 1 FROM frontier LIMIT 1")

    def count(self) -> int:
        return int(self.ask("SELECT count(*) FROM frontier")[0][0])

    def domains(self) -> list[DomainInLine]:
        """Every domain with waiting pages, those to be served first in front."""
        return sorted((DomainInLine(*row) for row in self.ask(_DOMAINS)), key=lambda found: (found.priority, found.row))

    def domain_id(self, name: str) -> int | None:
        rows = self.ask("SELECT id FROM domain_states WHERE domain = ?", (name,))
        return int(rows[0][0]) if rows else None

    def was_cut_short(self, domain_id: int, run: int) -> bool:
        """Did the domain's budget run out in the run before this one?"""
        return bool(self.ask("SELECT 1 FROM domain_states WHERE id = ? AND cut_run = ?", (domain_id, run - 1)))

    def window(self, domain_id: int, limit: int, *, has_not_due: bool = True) -> list[Waiting]:
        """The first `limit` waiting pages of a domain, released or not. `has_not_due`: those that are not due, too."""
        before = SITEMAP_TURN if has_not_due else NOT_DUE_TURN
        return [Waiting(*row) for row in self.ask(_WINDOW, (domain_id, before, limit))]

    def next_sitemap(self, domain_id: int) -> Waiting | None:
        """The sitemap of a domain that is to be read next; None: none waits."""
        rows = self.ask(_SITEMAP, (domain_id, SITEMAP_TURN))
        return Waiting(*rows[0]) if rows else None

    def still_waiting(self, pages: Iterable[int]) -> set[int]:
        """Those of these pages that still wait to be visited."""
        found: set[int] = set()
        numbers = sorted(pages)
        for start in range(0, len(numbers), _CHUNK):
            chunk = numbers[start : start + _CHUNK]
            marks = ",".join("?" * len(chunk))
            found.update(row[0] for row in self.ask(f"SELECT id FROM frontier WHERE id IN ({marks})", chunk))
        return found

    def waiting_pages(self, pages: Iterable[int]) -> list[Waiting]:
        """These pages, as far as they wait, in the order in which they would be released."""
        numbers = sorted(pages)
        marks = ",".join("?" * len(numbers))
        sql = (
            "SELECT f.page_id, f.priority, p.url, p.wire_url, p.family, f.turn"
            " FROM frontier f JOIN pages p ON p.id = f.page_id"
            f" WHERE f.id IN ({marks}) ORDER BY f.turn, f.priority, f.id"
        )
        found = [Waiting(*row) for row in self.ask(sql, numbers)]
        if numbers and numbers[0] < 0:
            sql = (
                "SELECT f.id, f.priority, s.url, s.wire_url, NULL, f.turn, s.announced_by, s.level"
                f" FROM frontier f JOIN sitemaps s ON s.id = -f.id WHERE f.id IN ({marks})"
            )
            found += [Waiting(*row) for row in self.ask(sql, numbers)]
        return found

    def waiting_page(self, job: Job) -> tuple[int, int | None] | None:
        """(number, family) of the page (or sitemap) of this job, if it waits."""
        if job.task == "sitemap":
            sql = "SELECT f.id, NULL FROM sitemaps s JOIN frontier f ON f.id = -s.id WHERE s.url = ?"
            rows = self.ask(sql, (job.key.removeprefix(SITEMAP_KEY),))
            return rows[0] if rows else None
        rows = self.ask("SELECT url, family FROM pages WHERE id = ?", (job.page,))
        if rows and rows[0][0] == job.key:
            return (job.page, rows[0][1]) if self.still_waiting([job.page]) else None
        # A rebuilt map numbers its pages anew. While a run is under way there is no index by key.
        found = self.ask(
            "SELECT p.id, p.family FROM domain_states d JOIN frontier f ON f.domain_id = d.id"
            " JOIN pages p ON p.id = f.id WHERE d.domain = ? AND p.url = ?",
            (job.domain, job.key),
        )
        return found[0] if found else None

    def asked_domains(self, run: int) -> list[str]:
        """Domains to which requests were sent in this run."""
        return [
            row[0] for row in self.ask("SELECT domain FROM domain_states WHERE run = ? AND request_count > 0", (run,))
        ]

    # -- families of similar URLs --------------------------------------------------------------------

    def is_family_closed(self, family: int, run: int) -> bool:
        return bool(self.ask("SELECT 1 FROM closed_families WHERE id = ? AND run = ?", (family, run)))

    def visited_in_family(self, family: int, run: int) -> set[int]:
        """Pages of a family that were visited in this run."""
        return {row[0] for row in self.ask("SELECT id FROM pages WHERE family = ? AND visited_run = ?", (family, run))}

    def visited_under_cap(self, unit: int, run: int) -> set[int]:
        """Pages of a unit of a cap that were visited in this run."""
        rows = self.ask(
            "SELECT id FROM cap_pages CROSS JOIN pages ON id = page_id WHERE unit = ? AND visited_run = ?", (unit, run)
        )
        return {row[0] for row in rows}
