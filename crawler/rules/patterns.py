"""PURE. Regular expressions over keys, in time linear in the key: RE2, an engine without backtracking.

A page chooses the keys that it links to, so an expression that some key makes slow would stop the ingest. RE2 looks at
each character once for each instruction of the compiled expression; their number is bounded here. It has no look-around
and no back-references. An expression matches anywhere in a key, unless it says `^` or `$`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

LONGEST_PATTERN = 1000  # characters
_MOST_INSTRUCTIONS = 2000  # a list of a hundred words has some 800; with 2,000 a key of 16,000 characters takes 30 ms
_MEMORY = 8 * 1024 * 1024


class PatternError(ValueError):
    """Not a usable expression. The text says why."""


class KeyPattern:
    """A compiled expression. `groups`: names and numbers of its captured groups, as text."""

    def __init__(self, text: str) -> None:
        """Raises PatternError."""
        import re2  # 10 ms: only where an expression is used

        if not text or len(text) > LONGEST_PATTERN:
            raise PatternError(f"it must have from 1 to {LONGEST_PATTERN:,} characters")
        if not text.isascii():
            raise PatternError("keys are ASCII: write other characters as they are in a URL, like %C3%BC")
        options = re2.Options()
        options.max_mem = _MEMORY
        options.log_errors = False
        try:
            self._compiled: Any = re2.compile(text.encode(), options)
        except re2.error as problem:
            reason = problem.args[0] if problem.args else b""
            raise PatternError(
                reason.decode("ascii", "replace") if isinstance(reason, bytes) else str(reason)
            ) from None
        if self._compiled.programsize > _MOST_INSTRUCTIONS:
            raise PatternError("it is too large: repeat less, or make several of it")
        self.text = text
        names = sorted(self._compiled.groupindex.items(), key=lambda item: item[1])
        self._groups = {str(number): number for number in range(1, self._compiled.groups + 1)}
        self._groups |= {name.decode() if isinstance(name, bytes) else name: number for name, number in names}
        if "group" not in self._groups and self._compiled.groups:
            self._groups["group"] = 1  # per = "group": the one that there is

    def matches(self, key: str) -> bool:
        return self._compiled.search(key.encode()) is not None

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(self._groups)

    def captured(self, key: str, group: str) -> str | None:
        """The text of a group ("" if it took no part); None: the expression does not match."""
        found = self._compiled.search(key.encode())
        if found is None:
            return None
        return (found.group(self._groups[group]) or b"").decode() if group else ""


@lru_cache(maxsize=1000)
def key_pattern(text: str) -> KeyPattern:
    """The compiled expression. Raises PatternError."""
    return KeyPattern(text)
