"""The live view of a crawl: redrawn in place on a terminal, plain lines in a pipe, nothing with -q.

The figures come from the heartbeats (`processes`), the words from `live_text`. Log lines are printed above the view.
"""

from __future__ import annotations

import os
import sys
import time
from typing import IO, TYPE_CHECKING, Any, Protocol

from crawler.observe.live_text import Rate, plain_line, view_lines
from crawler.observe.processes import Snapshot

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

PLAIN_EVERY = 5.0  # seconds between plain lines
DRAW_EVERY = 1.0


class View(Protocol):
    """The display of a crawl, a context manager. Its end restores the terminal, after an error too."""

    every: float  # seconds between two calls of `show`

    def __enter__(self) -> View: ...
    def __exit__(self, *details: object) -> None: ...
    def show(self, snapshot: Snapshot, now: float) -> None: ...
    def say(self, line: str) -> None:
        """Write a log line to standard error, above the view."""


class QuietView:
    """Log lines only."""

    every = 3600.0

    def __enter__(self) -> QuietView:
        return self

    def __exit__(self, *details: object) -> None:
        return None

    def show(self, snapshot: Snapshot, now: float) -> None:
        return None

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


class PlainView(QuietView):
    """One line of figures every few seconds."""

    every = PLAIN_EVERY

    def __init__(self, out: IO[str], started: float) -> None:
        self._out = out
        self._started = started
        self._rate = Rate()

    def show(self, snapshot: Snapshot, now: float) -> None:
        rate = self._rate.update(now, snapshot.figures()["pages"])
        print(plain_line(snapshot, rate, now - self._started), file=self._out, flush=True)


class TerminalView:
    """A few lines at the bottom of the terminal, redrawn in place."""

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
            transient=True,  # the lines that shall stay are printed afterwards
        )
        self._live.start(refresh=True)
        return self

    def __exit__(self, *details: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def show(self, snapshot: Snapshot, now: float) -> None:
        rate = self._rate.update(now, snapshot.figures()["pages"])
        self.draw(view_lines(snapshot, rate, now - self._started))

    def draw(self, lines: list[tuple[str, str]]) -> None:
        """Replace the lines by these (text, style) lines."""
        if self._live is not None:
            self._live.update(styled(lines), refresh=True)

    def say(self, line: str) -> None:
        if self._live is not None and self._shares_stderr:
            from rich.text import Text

            self._console.print(Text(line, overflow="fold"))
        else:
            print(line, file=sys.stderr, flush=True)


def styled(lines: list[tuple[str, str]]) -> Text:
    """Lines as one text that never wraps: lines too long for the terminal are cut."""
    from rich.text import Text

    text = Text(no_wrap=True, overflow="ellipsis")
    for number, (line, style) in enumerate(lines):
        text.append(("\n" if number else "") + line, style=style or None)
    return text


def choose_view(*, is_quiet: bool, verbosity: int, out: IO[str] | None = None) -> View:
    """The view for these options: none with -q; the live one on a terminal, but plain lines with -v."""
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
