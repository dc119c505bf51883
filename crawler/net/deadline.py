"""The one deadline of a request: every step of it (look-up, connection, handshake, each read) asks for what is left."""

from __future__ import annotations

import time


class Deadline:
    """The end of one request. `left` raises TimeoutError once it has passed."""

    __slots__ = ("_end", "_per_read")

    def __init__(self, total: float, per_read: float) -> None:
        self._end = time.monotonic() + total
        self._per_read = per_read

    def left(self, most: float | None = None) -> float:
        """Seconds that the next step may take: at most `most`, or the limit for one read."""
        seconds = min(self._end - time.monotonic(), self._per_read if most is None else most)
        if seconds <= 0:
            raise TimeoutError
        return seconds

    def extend(self, seconds: float) -> None:
        """This long the request had to wait for its own side."""
        self._end += seconds

    def shorten(self, total: float) -> None:
        self._end = min(self._end, time.monotonic() + total)
