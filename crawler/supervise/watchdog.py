"""The watchdog over the fetchers: it finds the one that a page has brought to a stop, and kills it.

Whatever a page makes a fetcher do, from outside it is only time and memory. A fetcher tells beforehand which job it
works on (`crawler.workspace.door.Activity`), so that a stuck one need not be asked. Before its successor starts, the
domain's gate says which job it was (`GateRecord.killed`); a fetcher that dies of anything else leaves no such mark, and
its jobs are simply done again.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from crawler.model.settings import NetworkSettings
from crawler.pace.gate_record import TOO_COSTLY, TOO_SLOW, with_kill
from crawler.workspace.clock import read_clock
from crawler.workspace.door import BusyWork, GateError, Workspace

MARKING = 2.0  # seconds in which the gate of a dead fetcher's domain must be free
WITHOUT_CPU = 6  # times the limit that a fetcher may stand still without using CPU: a slow disk, a stopped process
SPARE_BYTES = 256 * 1024 * 1024  # of memory, besides twice `parse-memory`
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds and resident bytes of a process so far; None where the system does not tell."""

    cpu: float | None
    resident: int | None


@dataclass(frozen=True, slots=True)
class Limits:
    seconds: float
    resident: int

    @classmethod
    def of(cls, network: NetworkSettings) -> Limits:
        return cls(network.processing_timeout / 1000, 2 * network.parse_memory + SPARE_BYTES)


def judge(busy_seconds: float, cpu_seconds: float | None, resident: int | None, limits: Limits) -> int | None:
    """The reason to kill a fetcher that has been at one piece of work for so long; None: let it work.

    `cpu_seconds`: the CPU that it has used since. One that uses none is not at fault: it waits for a disk, say.
    """
    if resident is not None and resident > limits.resident:
        return TOO_COSTLY
    is_working = cpu_seconds is None or cpu_seconds >= limits.seconds / 2
    if busy_seconds >= limits.seconds * (1 if is_working else WITHOUT_CPU):
        return TOO_SLOW
    return None


def usage_of(pid: int) -> Usage:
    """The usage of a process, where there is a /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return Usage((int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * _PAGE)
    except (OSError, ValueError, IndexError):
        return Usage(None, None)


class Watchdog:
    """Looks at fetchers, at every round of the supervisor."""

    def __init__(
        self, network: NetworkSettings, workspace: Workspace, usage: Callable[[int], Usage] = usage_of
    ) -> None:
        self._limits = Limits.of(network)
        self._workspace = workspace
        self._usage = usage
        self._first_seen: dict[tuple[int, int], float | None] = {}  # (pid, since) → the CPU used when first seen

    def find_stuck(self, pids: set[int], now_ns: int) -> list[tuple[BusyWork, int]]:
        """For each stuck fetcher among these processes the work that it is at, and the reason to kill it."""
        found: dict[int, tuple[BusyWork, int]] = {}
        seen: dict[tuple[int, int], float | None] = {}
        for work in self._workspace.busy_work():
            if work.pid not in pids or work.pid in found:
                continue
            usage = self._usage(work.pid)
            before = seen[work.pid, work.since_ns] = self._first_seen.get((work.pid, work.since_ns), usage.cpu)
            cpu = None if usage.cpu is None or before is None else usage.cpu - before
            reason = judge((now_ns - work.since_ns) / 1e9, cpu, usage.resident, self._limits)
            if reason is not None:
                found[work.pid] = (work, reason)
        self._first_seen = seen
        return list(found.values())

    def is_busy(self, pid: int, now_ns: int, seconds: float) -> bool:
        """Has this fetcher been at one piece of work for so long?"""
        return any(work.pid == pid and now_ns - work.since_ns > seconds * 1e9 for work in self._workspace.busy_work())

    def kill(self, work: BusyWork, reason: int) -> bool:
        """Kill a stuck fetcher and mark the job. False: the mark could not be made, and the job is tried once more."""
        try:
            os.kill(work.pid, signal.SIGSTOP)  # so that it cannot get on with other work meanwhile
            is_marked = self._mark(work, reason)
            os.kill(work.pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        give_up = time.monotonic() + MARKING
        while not is_marked and time.monotonic() < give_up:  # it held the gate until it died
            time.sleep(0.01)
            is_marked = self._mark(work, reason)
        return is_marked

    def _mark(self, work: BusyWork, reason: int) -> bool:
        try:
            gate = self._workspace.gate(work.domain, read_clock)
        except GateError:
            return False
        try:
            return gate.update(work.run, partial(with_kill, job=work.job, reason=reason))
        finally:
            gate.close()
