"""Counters over all runs for monitoring: outcomes of visits, answers on the wire, bytes, durations.

They are committed with the results that they count, so they never go back, whatever dies. A map that is rebuilt begins
again at zero, as counters may.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

import orjson

from crawler.model.records import Exchange
from crawler.model.states import slug_of
from crawler.model.wire_counts import BUCKETS_MS, META, VisitCounts
from ingest.writing.store import Store

_MOST_KINDS = 200  # of names that results choose: one that somebody forged cannot fill the map


class VisitCounters:
    """`count` before every commit."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.counts = VisitCounts.read(store.meta(META))

    def count(self) -> None:
        """Count what the next commit applies."""
        changes = self._store.changes
        visits = [page.visit for page in changes.done if page.visit is not None and not page.visit.is_carried]
        if not visits and not changes.exchanges:
            return
        counts = self.counts
        for visit in visits:
            counts.outcomes[visit.state] += 1
            counts.bytes += visit.bytes_sent
            counts.robots_denials += slug_of(visit.error) == "robots-denied"
        for exchange in changes.exchanges:
            self._count_exchange(exchange)
        changes.meta[META] = orjson.dumps(counts.as_json()).decode()

    def _count_exchange(self, exchange: Exchange) -> None:
        counts, answer = self.counts, exchange.answer
        if isinstance(answer, int):
            counts.codes[str(answer) if 100 <= answer <= 599 else "other"] += 1
        else:
            _count_kind(counts.failures, answer)
        elapsed = max(0, exchange.elapsed_ms)
        counts.durations[bisect_left(BUCKETS_MS, elapsed)] += 1
        counts.duration_ms += elapsed


def _count_kind(kinds: Counter[str], name: str) -> None:
    kinds[name if name in kinds or len(kinds) < _MOST_KINDS else "other"] += 1
