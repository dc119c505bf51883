"""The live view of a crawl: redrawn in place on a terminal, plain lines in a pipe, nothing with -q.

The figures come from the heartbeats (`processes`), the words from `live_text`. Log lines are printed above the view.
"""

from __future__ import annotations

import os
import sys
import time
from typing import IO, TYPE_CHECKING, Any, Protocol

from crawler.observe.left_words import left_facts, left_short
from crawler.observe.live_text import Rate, plain_line, view_lines
from crawler.observe.processes import Snapshot
from crawler.observe.wrapping import fitted, terminal_width

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PLAIN_EVERY = 5.0  # seconds between plain lines
DRAW_EVERY = 1.0
_WIDEST = 120  # a longer row is hard to follow with the eye
_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


class View(Protocol):
    """The display of a crawl, a context manager. Its end restores the terminal, after an error too."""

    every: float  # seconds between two calls of `show`

    def __enter__(self) -> View: ...
    def __exit__(self, *details: object) -> None: ...
    def show(self, snapshot: Snapshot, now: float) -> None: ...
    def say(self, line: str) -> None:
        """Write a log line to standard error, above the view."""

    def suspend(self) -> None:
        """The process is about to be stopped (Ctrl-Z); the next `show` draws again."""


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

    def suspend(self) -> None:
        return None


class PlainView(QuietView):
    """One line of figures every few seconds."""

    every = PLAIN_EVERY

    def __init__(self, out: IO[str], started: float) -> None:
        self._out = out
        self._started = started
        self._rate = Rate()

    def show(self, snapshot: Snapshot, now: float) -> None:
        rate = self._rate.update(now, snapshot.figures()["crawled"])
        left = left_short(left_facts(snapshot))
        print(plain_line(snapshot, rate, now - self._started, left), file=self._out, flush=True)


class TerminalView:
    """A few lines at the bottom of the terminal, redrawn in place.

    A terminal that is made narrower breaks the lines that are there: they then take more rows, and as many are erased.
    """

    every = DRAW_EVERY

    def __init__(self, out: IO[str], started: float) -> None:
        from rich.console import Console

        self._out = out
        self._console: Console = Console(file=out, highlight=False, soft_wrap=False)
        self._shares_stderr = _is_terminal(sys.stderr)
        self._started = started
        self._rate = Rate()
        self._is_open = False
        self._lines: list[tuple[str, str]] = []  # on the screen now
        self._lengths: list[int] = []  # their columns as they were drawn
        self._narrowest = 0  # columns of the terminal when they had been drawn

    @property
    def width(self) -> int:
        """Columns for a line. The last one stays free: a full line would move the cursor."""
        return max(20, self._columns - 1)

    @property
    def _columns(self) -> int:
        """Columns of the terminal now. (The variable COLUMNS, which rich prefers, does not follow a resize.)"""
        return terminal_width(self._out) or 80

    def __enter__(self) -> TerminalView:
        self._is_open = True
        self._out.write(_HIDE_CURSOR)
        self.draw([("Sumi-Ripple  starting", "bold")])
        return self

    def __exit__(self, *details: object) -> None:
        if self._is_open:
            self.suspend()
            self._is_open = False

    def suspend(self) -> None:
        """Leave the terminal as it was, for as long as nothing is drawn."""
        self._write(self._erasing() + _SHOW_CURSOR)
        self._lines, self._lengths = [], []

    def show(self, snapshot: Snapshot, now: float) -> None:
        rate = self._rate.update(now, snapshot.figures()["crawled"])
        left = left_short(left_facts(snapshot))
        self.draw(view_lines(snapshot, rate, now - self._started, min(self.width, _WIDEST), left))

    def draw(self, lines: list[tuple[str, str]]) -> None:
        """Replace the lines by these (text, style) lines."""
        if not self._is_open:
            return
        shown, width = lines[: max(1, self._console.height - 1)], self.width
        hide = "" if self._lines else _HIDE_CURSOR
        self._write(hide + self._erasing() + self._rendered(shown))
        self._lines = shown
        self._lengths = [min(len(text), width) for text, _ in shown]
        self._narrowest = self._columns  # it may have become narrower while this was written

    def say(self, line: str) -> None:
        if not (self._is_open and self._shares_stderr):
            print(line, file=sys.stderr, flush=True)
            return
        lines, text = self._lines, fitted(line, self._columns)
        self._write(f"{self._erasing()}{text}\n")
        self._lines, self._lengths = [], []
        self.draw(lines)

    def _erasing(self) -> str:
        """The control sequence that erases the view, wherever the terminal has put its lines."""
        rows = rows_taken(self._lengths, min(self._columns, self._narrowest))
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") + "\x1b[J" if rows else ""

    def _rendered(self, lines: list[tuple[str, str]]) -> str:
        self._console.width = self.width
        with self._console.capture() as captured:
            self._console.print(styled(lines), end="")
        return captured.get().rstrip("\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def rows_taken(lengths: list[int], width: int) -> int:
    """The rows that lines of these lengths take on a terminal of this width."""
    return sum(max(1, -(-length // max(width, 1))) for length in lengths)


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
