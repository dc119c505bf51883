"""How log lines look: `[INFO] Crawling https://…`, on standard error, inert on any terminal."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable

# Control characters (escape sequences begin with them), and the marks that turn text around.
_NOT_INERT = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_LOGGERS = "sumi"


def inert(text: str) -> str:
    """The text on one line, with nothing in it that a terminal would obey."""
    return _NOT_INERT.sub("\N{REPLACEMENT CHARACTER}", text).encode("utf-8", "replace").decode()


class LineFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"[{record.levelname}] {inert(record.getMessage())}"


class CallingHandler(logging.Handler):
    """Gives every line to a function, which may do with it what it likes."""

    def __init__(self, give: Callable[[str], None]) -> None:
        super().__init__()
        self._give = give
        self.setFormatter(LineFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._give(self.format(record))
        except (OSError, ValueError):
            pass  # nobody listens any more


def level_of(verbosity: int, is_quiet: bool) -> int:
    """-q: errors; nothing: warnings; -v: what happens; -vv: everything."""
    if is_quiet:
        return logging.ERROR
    return (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)]


def configure(level: int, give: Callable[[str], None] | None = None) -> None:
    """Send this program's log lines, from `level` up, to `give`, or to standard error."""
    logger = logging.getLogger(_LOGGERS)
    logger.handlers.clear()
    logger.addHandler(CallingHandler(give or _to_stderr))
    logger.setLevel(level)
    logger.propagate = False


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
