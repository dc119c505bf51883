"""The work that is left, worked out now and then for the heartbeat: it decides nothing."""

from __future__ import annotations

import time

from crawler.model.settings import Config
from crawler.rules.time_left import WorkLeft, work_left
from ingest.writing.store import Store

_EVERY = 2.0  # seconds …
_PARTS = 4  # … or so many times in what is left …
_LEAST_EVERY = 0.2  # … but no more often than that …
_SHARE = 100  # … or so many times as long as it took: with very many domains it stays at one part in a hundred


class LeftEstimate:
    """`known` is the newest estimate; None before the first."""

    def __init__(self, config: Config, store: Store) -> None:
        self._settings = config.crawler
        self._store = store
        self._next_at = 0.0
        self.known: WorkLeft | None = None
        self._known_at = 0.0

    def update(self, run: int, now: float) -> None:
        """Work it out again if it is time. After a commit: the rows agree with the counts."""
        if now < self._next_at and self._store.counts["frontier"]:
            return
        began = time.monotonic()
        self.known = work_left(self._store.domains_left(run), self._settings)
        self._known_at = now
        every = min(_EVERY, max(_LEAST_EVERY, self.known.most / _PARTS))
        self._next_at = now + max(every, _SHARE * (time.monotonic() - began))

    def seconds(self, now: float) -> float | None:
        """The pauses that are left, at most; more if pages of new domains are found. None: not known yet."""
        return None if self.known is None else max(0.0, self.known.most - (now - self._known_at))
