"""The engine's clock as one process sees it. It alone decides what all machines share; this machine's own clock only
tells how long to wait until it is worth asking.

The two are never compared but through an answer of the engine, which holds its time. It was read after the question
left and before the answer came: so the difference of the clocks is known to within the time that this took.
"""

from __future__ import annotations

import threading

US = 1000  # nanoseconds
_DRIFT_PPM = 200  # by which two clocks drift apart at most


class EngineClock:
    """The difference between the engine's clock and this machine's monotonic one, from below and from above.

    From below, so that a moment of the engine is never taken for an earlier one here: who waits until then comes a
    little late, never early. From above for the end of a request: no later one may seem further from it than it was.
    Safe to use from every thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._least_ns: int | None = None  # engine − here, at least
        self._most_ns = 0  # … and at most
        self._noted_ns = 0  # when that was known

    def note(self, asked_ns: int, answered_ns: int, engine_us: int) -> None:
        """An answer came: the engine's clock read `engine_us` between these two moments here."""
        at_least, at_most = engine_us * US - answered_ns, engine_us * US + US - asked_ns
        with self._lock:
            if self._least_ns is not None:
                apart_ns = max(0, answered_ns - self._noted_ns) * _DRIFT_PPM // 1_000_000
                self._least_ns, self._most_ns = self._least_ns - apart_ns, self._most_ns + apart_ns
            self._noted_ns = answered_ns
            if self._least_ns is None or self._least_ns > at_most or self._most_ns < at_least:
                self._least_ns, self._most_ns = at_least, at_most  # one of the clocks was set, or went slower
            else:
                self._least_ns, self._most_ns = max(self._least_ns, at_least), min(self._most_ns, at_most)

    def here_ns(self, engine_us: int) -> int:
        """A moment of the engine on this machine's monotonic clock, or a little later."""
        return engine_us * US - self._known()[0]

    def engine_us(self, here_ns: int) -> int:
        """A moment of this machine on the engine's clock, or a little earlier."""
        return (here_ns + self._known()[0]) // US

    def latest_us(self, here_ns: int) -> int:
        """A moment of this machine on the engine's clock, or a little later, but for what a microsecond hides."""
        return (here_ns + self._known()[1]) // US - 1

    def _known(self) -> tuple[int, int]:
        with self._lock:
            assert self._least_ns is not None, "the engine has answered before"
            return self._least_ns, self._most_ns
