"""Lines for people, as wide as the terminal is: broken between words there, never in a pipe."""

from __future__ import annotations

import os
import re
import textwrap
from typing import Any


def terminal_width(stream: Any) -> int | None:
    """The columns of the terminal that this stream writes to; None: it is a pipe or a file."""
    try:
        if not stream.isatty():
            return None
        return os.get_terminal_size(stream.fileno()).columns or None
    except (AttributeError, ValueError, OSError):
        return None


def fitted(text: str, width: int | None) -> str:
    """The text broken between words, so that no line is wider. Longer words (URLs, paths) stay whole."""
    if width is None or all(len(line) <= width for line in text.split("\n")):
        return text
    return "\n".join(_fitted_line(line, max(width, 20)) for line in text.split("\n"))


def _fitted_line(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    label = re.match(r"\s*\S+(?: \S+)* {2,}", line)  # `  class         `: what follows it stays in its column
    is_labelled = label is not None and label.end() <= width // 2
    pieces = textwrap.wrap(
        line.lstrip(),
        width,
        initial_indent=indent,
        subsequent_indent=" " * label.end() if label and is_labelled else indent + "    ",
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    return "\n".join(pieces)
