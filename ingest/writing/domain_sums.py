"""Links summed up by domain, some batches later than the links themselves.

Pairs of domains lie all over `domain_links`: every page of a site with links to ten thousand others touches a row here
and a row there, and writing them with every batch was a tenth of the cost of a link. So a visit is only noted (a row of
`unsummed_visits`), the target domains of its new links wait in memory, four bytes each, and a domain's sums are
written when there are enough of them.

Invariants:
- after every commit, a link is counted in `domain_links`, or its page is in `unsummed_visits`, and not both;
- visits there are of the newest run, because a new run begins by writing all sums. So they mean the links that this
  run was the first to find on that page; the map can list them (`unsummed_links`), and a kill loses nothing.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable

from crawler.database.ids import PAIR_BITS, PAIR_LOW, pair_sql, pairs_of
from ingest.memory.changes import Visit
from ingest.writing.engine import MapConnection
from ingest.writing.schema import json_list

ENOUGH = 2_000  # links of one domain: many rows for every leaf of the table that is written
MOST = 400_000  # of all domains: a reader, and a start after a kill, must add them up


class DomainSums:
    """Works inside the store's transactions. Call `forget` after a rollback."""

    def __init__(self, db: MapConnection) -> None:
        self._db = db
        self._waiting: dict[int, array[int]] = {}  # from domain → to domains, one for each link; oldest first
        self._links = 0  # in all of them
        self._is_loaded = False

    def __len__(self) -> int:
        """Links that wait in memory."""
        return self._links

    def add_visits(self, visits: Iterable[Visit]) -> None:
        """Note these visits, and write the sums that are due."""
        self._load()
        rows: list[tuple[int, int]] = []
        due: set[int] = set()
        for domain, page, targets in visits:
            if targets:
                rows.append((domain << PAIR_BITS | page, len(targets)))
                if self._add(domain, targets) >= ENOUGH:
                    due.add(domain)
        self._db.executemany("INSERT INTO unsummed_visits VALUES (?, ?)", rows)
        self._write(due)
        if self._links > MOST:
            self._write(self._oldest(self._links - MOST * 3 // 4))

    def write_all(self) -> None:
        """Write all sums that wait."""
        self._load()
        self._write(self._waiting)

    def forget(self) -> None:
        """The transaction was rolled back: read the waiting links from the map again when they are needed."""
        self._waiting.clear()
        self._links = 0
        self._is_loaded = False

    def _load(self) -> None:
        if not self._is_loaded:
            self._is_loaded = True
            for domain, target in self._db.execute("SELECT from_domain_id, to_domain_id FROM unsummed_links"):
                self._add(domain, (target,))

    def _add(self, domain: int, targets: tuple[int, ...]) -> int:
        """Add links of a domain; returns the number of its links that wait now."""
        waiting = self._waiting.get(domain)
        if waiting is None:
            waiting = self._waiting[domain] = array("I")
        waiting.extend(targets)
        self._links += len(targets)
        return len(waiting)

    def _oldest(self, links: int) -> list[int]:
        """The domains that have waited longest, with at least so many links between them."""
        found: list[int] = []
        for domain, targets in self._waiting.items():
            if links <= 0:
                break
            found.append(domain)
            links -= len(targets)
        return found

    def _write(self, domains: Iterable[int]) -> None:
        """Write the sums of these domains, in the order of the table."""
        rows: list[tuple[int, str]] = []
        for domain in sorted(domains):
            targets = self._waiting.pop(domain)
            self._links -= len(targets)
            sums = sorted([target << PAIR_BITS | links for target, links in Counter(targets).items()])
            rows.append((domain, json_list(sums)))
        self._db.executemany(
            f"INSERT INTO domain_links SELECT {pair_sql('?1', f'(value >> {PAIR_BITS})')}, ?1, value >> {PAIR_BITS},"
            f" value & {PAIR_LOW} FROM json_each(?2) WHERE true"
            " ON CONFLICT(id) DO UPDATE SET links = domain_links.links + excluded.links",
            rows,
        )
        self._db.executemany(
            f"DELETE FROM unsummed_visits WHERE id {pairs_of('?1')}",
            [(domain,) for domain, _ in rows],
        )
