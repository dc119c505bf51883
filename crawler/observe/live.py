"""The live view of a crawl: calm on a terminal, plain lines in a pipe, silent on demand.

The figures come from the heartbeats (`crawler.observe.processes`). Lines are short (60 columns): a terminal that
is made narrower does not break what has been drawn. Log lines are printed above the view.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from typing import IO, TYPE_CHECKING, Any, Protocol

from crawler.observe.processes import Glance, StageGlance
from crawler.workspace.door import STAGES
from crawler.workspace.runs import RunStatus

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

PLAIN_EVERY = 5.0  # seconds between plain lines
DRAW_EVERY = 1.0
_RATE_OVER = 15.0  # seconds over which pages a second are averaged
WIDTH = 60


# -- from a glance to words: pure ---------------------------------------------------------------------------


class Rate:
    """A figure's growth a second, over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def note(self, now: float, value: int) -> float | None:
        """Note the figure as it is now; returns its rate, or None before there is one."""
        if self._seen and value < self._seen[-1][1]:
            self._seen.clear()  # another map: begin anew
        self._seen.append((now, value))
        while len(self._seen) > 2 and now - self._seen[1][0] >= _RATE_OVER:
            self._seen.popleft()
        (then, before), (last, after) = self._seen[0], self._seen[-1]
        return (after - before) / (last - then) if last > then else None


def duration(seconds: float) -> str:
    """`0:42`, `12:03`, `3:07:55`, `2d 3:07:55`."""
    whole = max(0, int(seconds))
    days, hours, minutes, rest = whole // 86400, whole // 3600 % 24, whole // 60 % 60, whole % 60
    clock = f"{hours}:{minutes:02d}:{rest:02d}" if hours or days else f"{minutes}:{rest:02d}"
    return f"{days}d {clock}" if days else clock


def figures(glance: Glance) -> dict[str, int]:
    """The figures of a crawl, zero where nobody has told them yet."""
    map_ = glance.facts_of("ingest")
    return {
        "pages": int(map_.get("pages") or 0),
        "known": int(map_.get("known") or 0),
        "links": int(map_.get("links") or 0),
        "frontier": int(map_.get("frontier") or 0),
        "errors": int(map_.get("errors") or 0),
        "in_flight": glance.total("fetcher", "in_flight"),
    }


def plain_line(glance: Glance, rate: float | None, elapsed: float) -> str:
    """All of it on one line."""
    now = figures(glance)
    run = f"run #{glance.run.number}" if glance.run else "starting"
    state = _pause_words(glance) or _trouble_words(glance)
    parts = [
        run,
        f"{_count(now['pages'], 'page')} done" + (f" ({rate:,.1f}/s)" if rate is not None else ""),
        f"{now['frontier']:,} waiting",
        f"{now['in_flight']:,} in flight",
        _count(now["errors"], "error"),
        duration(elapsed),
    ]
    return " · ".join(parts + ([state] if state else []))


def view_lines(glance: Glance, rate: float | None, elapsed: float) -> list[tuple[str, str]]:
    """The view as (text, style) lines of at most 60 columns."""
    now = figures(glance)
    run = f"run #{glance.run.number}" if glance.run else "starting"
    lines = [
        (_between(f"Sumi-Ripple  {run}", duration(elapsed)), "bold"),
        (_between(f"  {_count(now['pages'], 'page')} done", "" if rate is None else f"{rate:,.1f} pages/s"), ""),
        (_between(f"  {now['frontier']:,} waiting", f"{now['in_flight']:,} in flight"), ""),
        (_between(f"  {now['known']:,} known, {_count(now['links'], 'link')}", _count(now["errors"], "error")), ""),
    ]
    is_over = glance.run is not None and glance.run.status is not RunStatus.RUNNING
    lines += [_stage_line(stage, [f for f in glance.stages if f.stage == stage], is_over) for stage in STAGES]
    note = _pause_words(glance) or _waiting_words(glance)
    lines.append((_cut(f"  {note}"), "yellow" if _pause_words(glance) else "dim"))
    return lines


def _stage_line(stage: str, processes: list[StageGlance], is_over: bool) -> tuple[str, str]:
    alive = [found for found in processes if found.is_running]
    stuck = [found for found in alive if found.is_stuck]
    name = "fetchers" if stage == "fetcher" else stage
    if not alive:
        return (f"  {name:<10} ended", "dim") if is_over else (f"  {name:<10} not running", "red")
    if stuck:
        return _cut(f"  {name:<10} no sign of life from {', '.join(found.name for found in stuck)}"), "red"
    doing = sorted({found.doing for found in alive})
    words = " and ".join(doing) if len(alive) == 1 else f"{len(alive)} {', '.join(doing)}"
    detail = {
        "scheduler": lambda: (
            f"{_count(_fact(alive, 'active_domains'), 'domain')} active, {_fact(alive, 'waiting_domains'):,} in line"
        ),
        "fetcher": lambda: _count(_fact(alive, "requests"), "request"),
        "ingest": lambda: f"{_fact(alive, 'backlog') / 1024:,.0f} KiB to take in",
    }[stage]()
    return _cut(f"  {name:<10} {words}, {detail}"), "" if doing != ["paused"] else "yellow"


def _fact(processes: list[StageGlance], name: str) -> int:
    return sum(int(found.facts.get(name) or 0) for found in processes)


def _pause_words(glance: Glance) -> str:
    flags = [flag for flag in glance.flags if flag.startswith("pause")]
    return f"paused by {', '.join(flags)} (sumi-ripple resume)" if flags else ""


def _trouble_words(glance: Glance) -> str:
    stuck = [found.name for found in glance.stages if found.is_stuck]
    return f"no sign of life from {', '.join(stuck)}" if stuck else ""


def _waiting_words(glance: Glance) -> str:
    due = glance.next_due()
    if figures(glance)["in_flight"] or due is None:
        return ""
    return f"next: {due[0]} in {due[1]:.1f} s"


def _between(left: str, right: str) -> str:
    return _cut(left + " " * max(1, WIDTH - len(left) - len(right)) + right)


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


# -- showing it ---------------------------------------------------------------------------------------------


class View(Protocol):
    """Where a crawl is shown. Used as a context manager; whatever happens, leaving it restores the terminal."""

    every: float  # seconds between two looks

    def __enter__(self) -> View: ...
    def __exit__(self, *details: object) -> None: ...
    def show(self, glance: Glance, now: float) -> None: ...
    def say(self, line: str) -> None:
        """A line for the log (standard error), not disturbing the view."""


class QuietView:
    """Nothing but what is said."""

    every = 3600.0

    def __enter__(self) -> QuietView:
        return self

    def __exit__(self, *details: object) -> None:
        return None

    def show(self, glance: Glance, now: float) -> None:
        return None

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


class PlainView(QuietView):
    """A line of facts every few seconds."""

    every = PLAIN_EVERY

    def __init__(self, out: IO[str], started: float) -> None:
        self._out = out
        self._started = started
        self._rate = Rate()

    def show(self, glance: Glance, now: float) -> None:
        rate = self._rate.note(now, figures(glance)["pages"])
        print(plain_line(glance, rate, now - self._started), file=self._out, flush=True)


class TerminalView:
    """A few lines that are drawn over and over at the bottom of the terminal."""

    every = DRAW_EVERY

    def __init__(self, out: IO[str], started: float) -> None:
        from rich.console import Console

        self._console: Console = Console(file=out, highlight=False, soft_wrap=False)
        self._shares_stderr = _is_terminal(sys.stderr)
        self._started = started
        self._rate = Rate()
        self._live: Live | None = None

    def __enter__(self) -> TerminalView:
        from rich.live import Live
        from rich.text import Text

        self._live = Live(
            Text("Sumi-Ripple  starting", style="bold"),
            console=self._console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
            transient=True,  # what remains to be read is printed afterwards
        )
        self._live.start(refresh=True)
        return self

    def __exit__(self, *details: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def show(self, glance: Glance, now: float) -> None:
        rate = self._rate.note(now, figures(glance)["pages"])
        self.draw(view_lines(glance, rate, now - self._started))

    def draw(self, lines: list[tuple[str, str]]) -> None:
        """Draw these (text, style) lines in place of the last ones."""
        if self._live is not None:
            self._live.update(styled(lines), refresh=True)

    def say(self, line: str) -> None:
        if self._live is not None and self._shares_stderr:
            from rich.text import Text

            self._console.print(Text(line, overflow="fold"))
        else:
            print(line, file=sys.stderr, flush=True)


def styled(lines: list[tuple[str, str]]) -> Text:
    """Lines as one text that never wraps: what is too long for the terminal is cut."""
    from rich.text import Text

    text = Text(no_wrap=True, overflow="ellipsis")
    for number, (line, style) in enumerate(lines):
        text.append(("\n" if number else "") + line, style=style or None)
    return text


def choose_view(*, is_quiet: bool, verbosity: int, out: IO[str] | None = None) -> View:
    """The view that fits: none with -q; on a terminal the live one (but with -v the log is the view)."""
    out = out or sys.stdout
    started = time.monotonic()
    if is_quiet:
        return QuietView()
    if verbosity == 0 and _is_terminal(out) and os.environ.get("TERM") != "dumb":
        return TerminalView(out, started)
    return PlainView(out, started)


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


__all__ = [
    "PlainView",
    "QuietView",
    "Rate",
    "TerminalView",
    "View",
    "choose_view",
    "duration",
    "figures",
    "plain_line",
    "styled",
    "view_lines",
]
