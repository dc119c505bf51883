"""Notes the rates of a crawl once a second, from the heartbeats, and writes them down every few seconds."""

from __future__ import annotations

import time
from pathlib import Path

from crawler.database.rate_log import RateRow, add_rates, rates_path
from crawler.observe.processes import observe
from crawler.workspace.door import Workspace

_EVERY = 1.0  # seconds
_WRITE_EVERY = 10  # rows


class RateWatch:
    """`look` as often as you like; `close` writes the rest."""

    def __init__(self, workspace: Workspace, root: Path) -> None:
        self._workspace = workspace
        self._path = rates_path(root)
        self._looked_at = 0.0
        self._before: tuple[int, dict[str, int]] | None = None  # run, figures
        self._rows: list[RateRow] = []

    def look(self, now: float) -> None:
        if now - self._looked_at < _EVERY:
            return
        self._looked_at = now
        snapshot = observe(self._workspace, with_locks=False)
        run = snapshot.run.number if snapshot.run else 0
        figures = {**snapshot.figures(), "requests": snapshot.total("fetcher", "requests")}
        before = self._before[1] if self._before is not None and self._before[0] == run else None
        self._before = run, figures
        if before is None:  # of what was there already nobody knows when it came
            return
        came = {name: max(0, figures[name] - before[name]) for name in ("crawled", "failed", "requests")}
        self._rows.append(
            RateRow(
                int(time.time()),
                came["crawled"],
                came["failed"],
                came["requests"],
                figures["waiting"],
                figures["known"],
                figures["in_flight"],
            )
        )
        if len(self._rows) >= _WRITE_EVERY:
            self._write()

    def close(self) -> None:
        self._looked_at = 0.0
        self.look(time.monotonic())
        self._write()

    def _write(self) -> None:
        if self._rows:
            add_rates(self._path, self._rows, int(time.time()))
            self._rows = []
