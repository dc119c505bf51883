"""The engine's clock as one process sees it. It alone decides what all machines share; this machine's own clock only
tells how long to wait until it is worth asking.

The two are never compared but through an answer of the engine, which holds its time. It was read after the question
left and before the answer came: so the difference of the clocks is known to within the time that this took.
"""

from __future__ import annotations

import threading

US = 1000  # nanoseconds


class EngineClock:
    """The difference between the engine's clock and this machine's monotonic one, from below.

    From below, because then a moment of the engine is never taken for an earlier one here: who waits until then comes
    a little late, never early. Safe to use from every thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._difference_ns: int | None = None  # engine − here, at least

    def note(self, asked_ns: int, answered_ns: int, engine_us: int) -> None:
        """An answer came: the engine's clock read `engine_us` between these two moments here."""
        at_least, at_most = engine_us * US - answered_ns, engine_us * US + US - asked_ns
        with self._lock:
            known = self._difference_ns
            # More than at most: one of the clocks was set, or went slower.
            if known is None or known < at_least or known > at_most:
                self._difference_ns = at_least

    def here_ns(self, engine_us: int) -> int:
        """A moment of the engine on this machine's monotonic clock, or a little later."""
        return engine_us * US - self._known()

    def engine_us(self, here_ns: int) -> int:
        """A moment of this machine on the engine's clock, or a little earlier."""
        return (here_ns + self._known()) // US

    def _known(self) -> int:
        with self._lock:
            assert self._difference_ns is not None, "the engine has answered before"
            return self._difference_ns
