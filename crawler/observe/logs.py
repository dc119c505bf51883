"""Log lines: `[INFO] Crawling https://…`, on standard error, with nothing in them that a terminal would obey."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable

# Control characters (escape sequences begin with them), and the marks that reverse the direction of text.
_UNSAFE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_LOGGERS = "sumi"


def escape_line(text: str) -> str:
    """The text on one line, with nothing in it that a terminal would obey."""
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text).encode("utf-8", "replace").decode()


class LineFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"[{record.levelname}] {escape_line(record.getMessage())}"


class CallingHandler(logging.Handler):
    """Passes every line to a function."""

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self._write = write
        self.setFormatter(LineFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write(self.format(record))
        except (OSError, ValueError):
            pass  # the reader is gone


def level_of(verbosity: int, is_quiet: bool) -> int:
    """The log level: errors with -q, warnings by default, steps of the crawl with -v, everything with -vv."""
    if is_quiet:
        return logging.ERROR
    return (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)]


def configure(level: int, write: Callable[[str], None] | None = None) -> None:
    """Send this program's log lines, from `level` up, to `write`, or to standard error."""
    logger = logging.getLogger(_LOGGERS)
    logger.handlers.clear()
    logger.addHandler(CallingHandler(write or _to_stderr))
    logger.setLevel(level)
    logger.propagate = False


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
