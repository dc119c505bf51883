"""The work that is left, worked out now and then for the heartbeat: it decides nothing."""

from __future__ import annotations

import time

from crawler.model.settings import Config
from crawler.rules.time_left import WorkLeft, work_left
from ingest.writing.store import Store

_EVERY = 2.0  # seconds
_SHARE = 100  # … or so many times as long as it took: with very many domains it stays at one part in a hundred


class LeftEstimate:
    """`known` is the newest estimate; None before the first."""

    def __init__(self, config: Config, store: Store) -> None:
        self._settings = config.crawler
        self._store = store
        self._next_at = 0.0
        self.known: WorkLeft | None = None

    def update(self, run: int, now: float) -> None:
        """Work it out again if it is time. After a commit: the rows agree with the counts."""
        if now < self._next_at and self._store.counts["frontier"]:
            return
        began = time.monotonic()
        self.known = work_left(self._store.domains_left(run), self._settings)
        self._next_at = now + max(_EVERY, _SHARE * (time.monotonic() - began))
