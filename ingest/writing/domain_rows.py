"""Rows of `domain_states` in memory: those of the newest batches, read in lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from crawler.rules.lists import Classifier
from ingest.memory.generations import Generations
from ingest.memory.map_rows import MapDomain
from ingest.rules.depth import Distances
from ingest.writing.engine import MapConnection
from ingest.writing.schema import id_lists

_MOST = 40_000  # domains in a generation
_DOMAINS = (
    "SELECT domain_states.id, domain, run, closed_reason, closed_at_request, request_count, lost_requests,"
    " robots_fetched_at, robots_outcome, robots_status, crawl_delay, first_seen_run"
    " FROM json_each(?) AS wanted CROSS JOIN domain_states ON domain_states.id = wanted.value"
)


class DomainRows(Generations[int, MapDomain]):
    """Domains by number. `get` is None for one that was not loaded."""

    def __init__(self, db: MapConnection, classifier: Classifier, distances: Distances) -> None:
        super().__init__(_MOST)
        self._db = db
        self._classifier = classifier
        self._distances = distances

    def load(self, numbers: Iterable[int]) -> None:
        """Bring these domains into memory; every number must exist."""
        missing = sorted({number for number in numbers if self.get(number) is None})
        for chunk in id_lists(missing):
            for row in self._db.execute(_DOMAINS, (chunk,)):
                self.put(row[0], self._of_row(row))

    def make(self, number: int, name: str, run: int) -> MapDomain:
        """A domain as its first link finds it."""
        verdict = self._classifier.classify(name)
        pin = self._distances.pack((origin, 0) for origin in verdict.origins)
        made = MapDomain(number, name, verdict.klass, pin, run)
        made.parts = tuple((part.path, self._distances.pack([(part.origin, 0)])) for part in verdict.parts)
        return made

    def _of_row(self, row: tuple[Any, ...]) -> MapDomain:
        number, name, run, closed, closed_at, count, lost, at, outcome, status, delay, first = row
        made = self.make(number, name, run)
        made.closed, made.closed_at_request, made.request_count, made.lost_requests = closed, closed_at, count, lost
        made.robots_at, made.robots_outcome, made.robots_status = at, outcome, status
        made.crawl_delay, made.first_seen_run = delay, first
        return made
