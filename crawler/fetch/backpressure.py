"""Looks once a second whether results pile up or the disk fills up, for the main thread of a fetcher."""

from __future__ import annotations

import logging

from crawler.model.settings import SpoolSettings
from crawler.pace.pressure import Load, Pressure, pressure
from crawler.workspace.door import Workspace
from crawler.workspace.unapplied import unapplied

log = logging.getLogger("sumi.fetcher")

_LOOK_EVERY = 1.0  # seconds


class Backpressure:
    """`now` is the pressure as it was last seen. `is_telling`: this fetcher logs for all of them."""

    def __init__(self, settings: SpoolSettings, workspace: Workspace, *, is_telling: bool) -> None:
        self._settings = settings
        self._workspace = workspace
        self._is_telling = is_telling
        self._looked_at = 0.0
        self.now = Pressure()

    @property
    def holds_requests(self) -> bool:
        return self.now.share <= 0

    def look(self, now: float) -> None:
        if now - self._looked_at < _LOOK_EVERY and self._looked_at:
            return
        self._looked_at = now
        before, self.now = self.now, pressure(self._load(), self._settings)
        if self._is_telling and (before.share <= 0) != self.holds_requests:
            if self.holds_requests:
                log.warning("The fetchers wait: %s ([spool])", self.now.reason)
            else:
                log.warning("The fetchers go on")

    def _load(self) -> Load:
        results, size, map_free = unapplied(self._workspace) or (None, None, None)
        free = [each for each in (self._workspace.free_bytes(), map_free) if each is not None]
        return Load(results, size, min(free, default=None))
