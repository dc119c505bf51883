"""How many links lead from which domain to which, added up behind the batches.

Pairs of domains lie all over `domain_links`: every page of a site with links to ten thousand others touches a row here
and a row there, and to write them with every batch was a tenth of what a link cost. So a visit is only noted (a row of
`unsummed_visits`), the domains that its new links lead to wait in memory, four bytes each, and a domain's sums are
written when there is enough of them.

Invariants:
- after every commit, a link is counted in `domain_links`, or its page stands in `unsummed_visits`, and not both;
- what stands there is of the newest run, for a new run begins by adding up. So the links that are meant are those
  that this run found on that page first, the map can say which (`unsummed_links`), and a kill loses nothing.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterable

from ingest.sqlite.schema import json_list

ENOUGH = 2_000  # links of one domain: many rows to every place of the table that is written
MOST = 400_000  # of all domains: a reader has to add them up for itself, and so has a start after a kill

Visit = tuple[int, int, tuple[int, ...]]  # (domain, page, domain of each link that is new)


class DomainSums:
    """Works inside the store's transactions. If one is taken back, `forget`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._waiting: dict[int, array[int]] = {}  # from domain → to domains, one for each link; oldest first
        self._links = 0  # in all of them
        self._is_loaded = False

    def __len__(self) -> int:
        """How many links wait in memory."""
        return self._links

    def take(self, visits: Iterable[Visit]) -> None:
        """Note these visits, and write the sums that are due."""
        self._load()
        rows: list[tuple[int, int]] = []
        due: set[int] = set()
        for domain, page, targets in visits:
            if targets:
                rows.append((domain << 32 | page, len(targets)))
                if self._add(domain, targets) >= ENOUGH:
                    due.add(domain)
        self._db.executemany("INSERT INTO unsummed_visits VALUES (?, ?)", rows)
        self._write(due)
        if self._links > MOST:
            self._write(self._oldest(self._links - MOST * 3 // 4))

    def settle(self) -> None:
        """Write all that waits."""
        self._load()
        self._write(self._waiting)

    def forget(self) -> None:
        """The transaction was taken back, and only the map knows what holds."""
        self._waiting.clear()
        self._links = 0
        self._is_loaded = False

    def _load(self) -> None:
        if not self._is_loaded:
            self._is_loaded = True
            for domain, target in self._db.execute("SELECT from_domain_id, to_domain_id FROM unsummed_links"):
                self._add(domain, (target,))

    def _add(self, domain: int, targets: tuple[int, ...]) -> int:
        """How many links of this domain wait now."""
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
        """Add up what these domains have waiting. In the order of the table."""
        rows: list[tuple[int, str]] = []
        for domain in sorted(domains):
            targets = self._waiting.pop(domain)
            self._links -= len(targets)
            sums = sorted([target << 32 | links for target, links in Counter(targets).items()])
            rows.append((domain, json_list(sums)))
        self._db.executemany(
            "INSERT INTO domain_links SELECT (?1 << 32) | (value >> 32), ?1, value >> 32, value & 0xffffffff"
            " FROM json_each(?2) WHERE true ON CONFLICT(id) DO UPDATE SET links = links + excluded.links",
            rows,
        )
        self._db.executemany(
            "DELETE FROM unsummed_visits WHERE id BETWEEN ?1 << 32 AND (?1 << 32) | 0xffffffff",
            [(domain,) for domain, _ in rows],
        )
