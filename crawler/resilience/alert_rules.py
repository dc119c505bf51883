"""PURE. The alerts of deploy/prometheus without Prometheus: which of them hold, from samples of a crawl.

Rates are over the last five minutes, and only where there were enough requests to speak of one.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

WINDOW = 300.0  # seconds, of a rate
STALL = 900.0  # seconds without a visit though pages wait
SILENT = 60.0  # seconds without a heartbeat
BACKLOG = 256 * 1024 * 1024  # bytes of results to apply
_ENOUGH = 30  # requests in the window: 0.1 a second
_SHARES = {"server_errors": 0.2, "rate_limited": 0.05, "timeouts": 0.2}
_WORDS = {
    "server_errors": ("server-errors", "of the answers are server errors (5xx)"),
    "rate_limited": ("rate-limited", "of the answers are 429: the crawl is too fast for these sites"),
    "timeouts": ("timeouts", "of the requests time out"),
}


class Sample(NamedTuple):
    """A crawl at one moment."""

    at: float  # seconds, of a clock that does not jump
    answers: dict[str, int]  # all, server_errors, rate_limited, timeouts: since the map was begun
    pages: int  # visited in this run
    waiting: int
    backlog: int
    silent: dict[str, float]  # running process → seconds since its last heartbeat
    is_held: bool = False  # paused, or the network is out
    network_out: str = ""  # since when


class AlertRules:
    """`holding` after every `add`."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque()

    def add(self, sample: Sample) -> None:
        last = self._samples[-1] if self._samples else None
        if last is not None and (sample.answers.get("all", 0) < last.answers.get("all", 0) or sample.is_held):
            self._samples.clear()  # counters began again, or nothing can be said of a time without requests
        self._samples.append(sample)
        while len(self._samples) > 2 and self._samples[1].at <= sample.at - STALL:
            self._samples.popleft()

    def holding(self) -> dict[str, str]:
        """Name of each alert that holds now → words."""
        now = self._samples[-1]
        found = dict(self._rates(now))
        if now.backlog > BACKLOG:
            found["backlog"] = f"the ingest is {now.backlog // 2**20:,} MiB of results behind the fetchers"
        for name, seconds in now.silent.items():
            if seconds > SILENT:
                found["silent-stage"] = f"the {name} has given no sign of life for {seconds:.0f} seconds"
        first = self._samples[0]
        if not now.is_held and now.waiting and now.at - first.at >= STALL and now.pages == first.pages:
            found["stall"] = (
                f"{now.waiting:,} pages wait, and none was visited for {(now.at - first.at) / 60:.0f} minutes"
            )
        if now.network_out:
            found["network-outage"] = f"the crawl waits for its own network since {now.network_out}"
        return found

    def _rates(self, now: Sample) -> list[tuple[str, str]]:
        before = next(sample for sample in self._samples if sample.at >= now.at - WINDOW)
        total = now.answers.get("all", 0) - before.answers.get("all", 0)
        if total < _ENOUGH:
            return []
        found = []
        for kind, share in _SHARES.items():
            count = now.answers.get(kind, 0) - before.answers.get(kind, 0)
            if count > share * total:
                name, words = _WORDS[kind]
                found.append((name, f"{100 * count // total} % {words}"))
        return found
