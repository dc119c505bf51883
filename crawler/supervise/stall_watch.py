"""Finds stages that stand still though work is due, and stages that have outgrown their memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from crawler.model.settings import ResilienceSettings
from crawler.observe.processes import read_heartbeats, seconds_standing
from crawler.resilience.stalls import MOST_STALLS, stall_words
from crawler.supervise.watchdog import Usage, usage_of
from crawler.workspace.door import Workspace

AT_WORK = 12  # times `stall-after` that a stage may be silent while it uses CPU: it rebuilds a large map, say
IN_A_ROW = 4  # times `stall-after`: a stall this long after the one before is the first again
_LITTLE_CPU = 0.05  # of the time


class _Beat(NamedTuple):
    beat_ns: int
    cpu: float | None  # seconds used so far, when this heartbeat was first seen


class StallWatch:
    """Looks at the heartbeats of live stages, by their process ids."""

    def __init__(
        self, settings: ResilienceSettings, workspace: Workspace, usage: Callable[[int], Usage] = usage_of
    ) -> None:
        self._settings = settings
        self._workspace = workspace
        self._usage = usage
        self._last: dict[int, _Beat] = {}
        self._stalls: dict[str, tuple[int, float]] = {}  # stage → (stalls in a row, when the last one was found)

    def find_stalled(self, started_ns: Mapping[int, int], now_ns: int) -> list[tuple[int, str]]:
        """Process ids of stalled stages, with the reason. `started_ns`: when each live process was started."""
        beats = {beat.get("pid"): beat for beat in read_heartbeats(self._workspace).values()}
        found = []
        seen: dict[int, _Beat] = {}
        for pid, started in started_ns.items():
            beat = beats.get(pid, {})
            at = max(_number(beat, "beat_ns"), started)
            last = self._last.get(pid)
            seen[pid] = last if last is not None and last.beat_ns == at else _Beat(at, self._usage(pid).cpu)
            silent = (now_ns - at) / 1e9
            if self._is_at_work(pid, seen[pid], silent):
                silent /= AT_WORK
            standing = None if beat.get("doing") == "paused" else seconds_standing(beat)
            words = stall_words(silent, standing, self._settings.stall_after)
            if words is not None:
                found.append((pid, words))
        self._last = seen
        return found

    def count(self, name: str, now: float) -> bool:
        """A stage was stalled. True: it has been so often in a row that a restart does not help."""
        before, at = self._stalls.get(name, (0, now))
        is_in_a_row = now - at <= IN_A_ROW * self._settings.stall_after
        self._stalls[name] = (before + 1 if is_in_a_row else 1, now)
        return self._stalls[name][0] >= MOST_STALLS

    def find_outgrown(self, pids: Iterable[int]) -> list[tuple[int, int]]:
        """Process ids of stages that have more memory than they may, with their bytes."""
        most = self._settings.max_memory
        sizes = [(pid, self._usage(pid).resident or 0) for pid in pids] if most else []
        return [(pid, size) for pid, size in sizes if size > most]

    def _is_at_work(self, pid: int, last: _Beat, silent: float) -> bool:
        """Has a silent stage used CPU since its last heartbeat?"""
        cpu = self._usage(pid).cpu if silent >= self._settings.stall_after else None
        return cpu is not None and last.cpu is not None and cpu - last.cpu > silent * _LITTLE_CPU


def _number(beat: Mapping[str, Any], name: str) -> int:
    value = beat.get(name)
    return value if isinstance(value, int) else 0
