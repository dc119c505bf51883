"""The config is read again while its crawl is under way, and takes the place of the old one if it can.

A reload is a short end and a new start: each stage finishes its batch or its requests, ends, and is started again under
the new config. So a reload is exact for the same reasons as a kill is, and at whatever moment it is cut off, the next
start reads the same file. The scheduler records the new settings with the run (`resumed`), before anything is released
or requested under them (`changeover`); where rules that decide the map changed, the ingest rebuilds it from the
results, as at any start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from crawler.config.last_used import write_last_used
from crawler.config.reading_again import differences, require_replaceable
from crawler.model.errors import SumiError, sentence
from crawler.model.settings import Config
from crawler.model.shown_text import counted
from crawler.workspace.door import Workspace
from crawler.workspace.reloads import ReloadWatch

log = logging.getLogger("sumi.crawl")

_LOOK_EVERY = 0.5  # seconds between looks for an order
LoadAgain = Callable[[], Config]  # the file as it is now, with what the command line says. Raises SumiError.


class ConfigReader:
    """Reads the config again: when `is_wanted` is set by a signal, or when an order was left in the workspace."""

    def __init__(self, load: LoadAgain, workspace: Workspace) -> None:
        self._load = load
        self._orders = ReloadWatch(workspace)
        self._looked_at = 0.0
        self.is_wanted = False

    def is_due(self, now: float) -> bool:
        if not self.is_wanted and now - self._looked_at >= _LOOK_EVERY:
            self._looked_at = now
            self.is_wanted = self._orders.is_ordered()
        return self.is_wanted

    def read(self, before: Config) -> Config | None:
        """The new config, if it differs and can be used. What came of it is logged, and told to the one who asked."""
        self.is_wanted = False
        self._orders.take_up()
        try:
            now = replace(self._load(), starts_next_run=False)
            require_replaceable(before, now)
        except (SumiError, OSError) as problem:
            lines = f"The config was not reloaded, and nothing has changed: {sentence(problem)}".splitlines()
            for line in lines:  # a config with mistakes has one for each
                log.error("%s", line)
            self._orders.answer(False, lines)
            return None
        changed = differences(before, now)
        if not changed:
            lines = [f"{before.source} was read again; nothing in it has changed"]
        else:
            lines = [f"{before.source} was read again, {counted(len(changed), 'change')}:", *changed]
            write_last_used(now)
        for line in lines:
            log.warning("%s", line if line is lines[0] else f"  {line}")
        self._orders.answer(True, lines)
        return now if changed else None
