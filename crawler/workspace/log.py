"""PURE. A log of records as its readers and its writer see it: a position, a verified line, damage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from crawler.model.errors import SumiError


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """A position in a log: before the line that starts at `offset` of `segment`. Segment 0 is before everything."""

    segment: int = 0
    offset: int = 0


BEGINNING = Cursor()


@dataclass(frozen=True, slots=True)
class Line:
    """One verified line. `end` is the cursor after it."""

    body: bytes
    end: Cursor


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are not a line, or a line that is not a record. `place` names the segment, for people."""

    place: str
    segment: int
    offset: int
    raw: bytes
    reason: str


class LogError(SumiError, OSError):
    """A log could not be written. What was appended after the last `sync` may not be there."""


OnDamage = Callable[[Damage], None]


class LogWriter(Protocol):
    """Appends JSON objects to one log, and is the only one that does.

    An append survives the death of this process once it has returned, and a power cut once a later `sync` has.
    The first error ends the writer: every later call raises it again, as a LogError.
    """

    @property
    def end(self) -> Cursor:
        """The cursor after the last append."""

    @property
    def is_ahead(self) -> bool:
        """Are there lines that no reader sees before the next sync?"""

    def append(self, body: bytes) -> Cursor:
        """Append one JSON object; returns the cursor after it."""

    def append_all(self, bodies: Iterable[bytes]) -> Cursor:
        """Append several objects at once; returns the cursor after the last."""

    def sync(self) -> None:
        """Return once everything appended so far would survive a power cut."""

    def begin_sync(self) -> Callable[[], None]:
        """A function that syncs what was appended so far. Call it once, from any thread, while others append."""

    def close(self) -> None:
        """Sync and close. Safe to call twice."""


class LogReader(Protocol):
    """Tails one log from `cursor`, which the owner may set back. Returns only lines that verify.

    A torn line at the end is waited for; damage elsewhere is reported once to `on_damage` and passed over.
    """

    cursor: Cursor

    def read(self, limit: int = 1000) -> list[Line]:
        """Up to `limit` lines that are there now; empty: none. The cursor moves past the last of them."""

    def __iter__(self) -> Iterator[Line]:
        """Every line that is there now."""

    def sync(self) -> None:
        """Make durable what was read so far (only for readers opened with `will_sync`)."""

    def unread_bytes(self) -> int:
        """Bytes after the cursor, as far as they are written."""

    def damage(self, line: Line, reason: str) -> Damage:
        """The damage that a verified line is, if it holds no record."""

    def close(self) -> None:
        """Release the log. Reading again opens it again."""
