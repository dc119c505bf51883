"""The live figures of a crawl: one sample a second for all who look, and none while nobody does.

A sample is the status of the workspace as `observe` reads it, with the pages a second since the sample before. Streams
wait for the next sample; who cannot hold a stream open asks for the newest one (`newest`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from crawler.observe.alert_state import read_alerts
from crawler.observe.left_words import left_facts
from crawler.observe.live_text import Rate
from crawler.observe.processes import observe
from crawler.workspace.door import Workspace

EVERY = 1.0  # seconds
MOST_STREAMS = 200


class LiveFigures:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._rate = Rate()
        self._newest: dict[str, Any] | None = None
        self._taken_at = 0.0
        self._number = 0
        self._watchers = 0
        self._changed: asyncio.Condition | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def watchers(self) -> int:
        return self._watchers

    def newest(self) -> dict[str, Any]:
        """The newest sample, at most a second old."""
        if self._newest is None or time.monotonic() - self._taken_at >= EVERY:
            self._newest = self._sample()
        return self._newest

    async def samples(self) -> AsyncIterator[dict[str, Any]]:
        """One sample now, then each new one. A slow reader misses some."""
        if self._changed is None:
            self._changed = asyncio.Condition()
        self._watchers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._take_samples())
        try:
            seen = self._number
            yield await run_in_threadpool(self.newest)
            while True:
                async with self._changed:
                    while self._number == seen:
                        await self._changed.wait()
                    seen = self._number
                assert self._newest is not None
                yield self._newest
        finally:
            self._watchers -= 1

    async def _take_samples(self) -> None:
        assert self._changed is not None
        while self._watchers:
            await asyncio.sleep(EVERY)
            self._newest = await run_in_threadpool(self._sample)
            async with self._changed:
                self._number += 1
                self._changed.notify_all()

    def _sample(self) -> dict[str, Any]:
        snapshot = observe(self._workspace)
        now = time.monotonic()
        figures = snapshot.figures()
        rate = self._rate.update(now, figures["crawled"])
        self._taken_at = now
        due = snapshot.next_due()
        return {
            "v": 1,
            "kind": "live",
            "at": snapshot.at,
            "run": {"number": snapshot.run.number, "status": snapshot.run.status.value, "reason": snapshot.run.reason}
            if snapshot.run
            else None,
            "flags": list(snapshot.flags),
            "alerts": [asdict(alert) for alert in read_alerts(self._workspace)],
            "network": {
                "is_waiting": snapshot.network.is_waiting,
                "since": snapshot.network.since or None,
                "findings": list(snapshot.network.findings),
                "withheld": snapshot.total("fetcher", "withheld"),
            },
            "pages_per_second": round(rate, 2) if rate is not None else None,
            "figures": figures,
            "left": left_facts(snapshot),
            "on_the_wire": snapshot.on_the_wire(),
            "next_due": {"domain": due[0], "seconds": due[1]} if due else None,
            "stages": [
                {
                    "name": stage.name,
                    "stage": stage.stage,
                    "is_running": stage.is_running,
                    "is_stuck": stage.is_stuck,
                    "doing": stage.doing,
                    "pid": stage.pid,
                    "memory_bytes": memory_of(stage.pid) if stage.is_running else None,
                    "heartbeat_age_seconds": None if stage.age is None else round(stage.age, 1),
                    "standing_seconds": None if stage.standing is None else round(stage.standing, 1),
                    "facts": {name: value for name, value in stage.facts.items() if name != "on_the_wire"},
                }
                for stage in snapshot.stages
            ],
        }


def memory_of(pid: int | None) -> int | None:
    """The memory that a process on this machine holds; None: that is not known here."""
    try:
        text = Path(f"/proc/{pid}/status").read_text("ascii", "replace")
    except OSError:
        return None
    found = re.search(r"^VmRSS:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else None
