"""PURE. The words of the live view: lines as wide as the terminal, so that nothing is broken."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from crawler.model.shown_text import counted, cut, domain_words

if TYPE_CHECKING:
    from crawler.observe.processes import Snapshot, StageProcess

WIDTH = 60
_RATE_SECONDS = 15.0


class Rate:
    """Growth of a figure per second, averaged over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def update(self, now: float, value: int) -> float | None:
        """The rate, now that the figure has this value; None after the first value."""
        if self._seen and value < self._seen[-1][1]:
            self._seen.clear()  # another map: start again
        self._seen.append((now, value))
        while len(self._seen) > 2 and now - self._seen[1][0] >= _RATE_SECONDS:
            self._seen.popleft()
        (then, before), (last, after) = self._seen[0], self._seen[-1]
        return (after - before) / (last - then) if last > then else None


def duration(seconds: float) -> str:
    """`0:42`, `12:03`, `3:07:55`, `2d 3:07:55`."""
    whole = max(0, int(seconds))
    days, hours, minutes, rest = whole // 86400, whole // 3600 % 24, whole // 60 % 60, whole % 60
    clock = f"{hours}:{minutes:02d}:{rest:02d}" if hours or days else f"{minutes}:{rest:02d}"
    return f"{days}d {clock}" if days else clock


def plain_line(snapshot: Snapshot, rate: float | None, elapsed: float, left: str = "") -> str:
    """The view as one line. `left`: how long it may take yet."""
    now = snapshot.figures()
    run = f"run #{snapshot.run.number}" if snapshot.run else "starting"
    state = _pause_words(snapshot) or _network_words(snapshot) or _stuck_words(snapshot)
    parts = [
        run,
        f"{counted(now['crawled'], 'page')} crawled" + (f" ({rate:,.1f}/s)" if rate is not None else ""),
        f"{now['failed']:,} failed",
        f"{now['waiting']:,} waiting",
        f"{now['in_flight']:,} in flight",
        f"{now['known']:,} known",
        duration(elapsed),
    ]
    return " · ".join(parts + [words for words in (left, state) if words])


def view_lines(
    snapshot: Snapshot, rate: float | None, elapsed: float, width: int = WIDTH, left: str = ""
) -> list[tuple[str, str]]:
    """The view as (text, style) lines of at most `width` columns. `left`: how long it may take yet."""
    now = snapshot.figures()
    run = f"run #{snapshot.run.number}" if snapshot.run else "starting"
    lines = [
        (_row(f"Sumi-Ripple  {run}", duration(elapsed), width), "bold"),
        (
            _row(f"  {counted(now['crawled'], 'page')} crawled", "" if rate is None else f"{rate:,.1f} pages/s", width),
            "",
        ),
        (_row(f"  {now['waiting']:,} waiting", f"{now['in_flight']:,} in flight", width), ""),
        (_row(f"  {now['known']:,} known, {counted(now['links'], 'link')}", f"{now['failed']:,} failed", width), ""),
    ]
    if left:
        lines.append((f"  {left}", ""))
    lines += [_stage_line(stage, found, snapshot.has_run_ended) for stage, found in snapshot.by_stage().items()]
    note = _pause_words(snapshot) or _network_words(snapshot)
    lines.append((f"  {note or _waiting_words(snapshot)}", "yellow" if note else "dim"))
    return [(cut(text, width), style) for text, style in lines]


def _stage_line(stage: str, processes: list[StageProcess], has_run_ended: bool) -> tuple[str, str]:
    alive = [found for found in processes if found.is_running]
    stuck = [found for found in alive if found.is_stuck]
    name = "fetchers" if stage == "fetcher" else stage
    if not alive and has_run_ended:
        return f"  {name:<10} ended", "dim"
    if not alive:
        has_started = any(found.age is not None for found in processes)
        return (f"  {name:<10} not running", "red") if has_started else (f"  {name:<10} starting", "dim")
    if stuck:
        return f"  {name:<10} no heartbeat from {', '.join(found.name for found in stuck)}", "red"
    doing = sorted({found.doing for found in alive})
    words = " and ".join(doing) if len(alive) == 1 else f"{len(alive)} {', '.join(doing)}"
    detail = {
        "scheduler": lambda: (
            f"{counted(_fact(alive, 'active_domains'), 'domain')} active, {_fact(alive, 'waiting_domains'):,} waiting"
        ),
        "fetcher": lambda: counted(_fact(alive, "requests"), "request"),
        "ingest": lambda: f"{_fact(alive, 'backlog') / 1024:,.0f} KiB to apply",
    }[stage]()
    return f"  {name:<10} {words}, {detail}", "" if doing != ["paused"] else "yellow"


def _fact(processes: list[StageProcess], name: str) -> int:
    return sum(int(found.facts.get(name) or 0) for found in processes)


def _pause_words(snapshot: Snapshot) -> str:
    flags = snapshot.pause_flags
    return f"paused by {', '.join(flags)} (sumi-ripple resume)" if flags else ""


def _network_words(snapshot: Snapshot) -> str:
    if not snapshot.network.is_waiting:
        return ""
    word = snapshot.network.findings[0].partition(":")[0] if snapshot.network.findings else "network"
    return f"waiting: {word} (sumi-ripple status says more)"


def _stuck_words(snapshot: Snapshot) -> str:
    stuck = [found.name for found in snapshot.stages if found.is_stuck]
    return f"no heartbeat from {', '.join(stuck)}" if stuck else ""


def _waiting_words(snapshot: Snapshot) -> str:
    due = snapshot.next_due()
    if snapshot.figures()["in_flight"] or due is None:
        return ""
    return f"next request: {domain_words(due[0])} in {due[1]:.1f} s"


def _row(left: str, right: str, width: int) -> str:
    return (left + " " * max(1, width - len(left) - len(right)) + right).rstrip()
