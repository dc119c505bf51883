"""PURE. The circuit breaker of a domain: it opens after failures in a row, and then no visit begins for a while.

    closed ──(failures in a row)──▶ open ──(the cooldown has passed)──▶ half-open ──(successes in a row)──▶ closed
                                     ▲                                      │
                                     └────────────(a failure)───────────────┘

While it is half-open its visits are trials: a domain's visits are made one after the other anyway. Each opening that
follows a failed trial doubles the cooldown. A visit's outcome is a word: the slug of its error, `ok` without one, or
another word that a part of the program gives it (`hard`, say: an answer that was no page but a barrier).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec.structs import replace

from crawler.model.settings import ResilienceSettings

OK = "ok"
HARD = "hard"  # an answer that is a barrier and no page
_LARGEST_COUNT = 0xFFFF


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class Outcome(StrEnum):
    """What a visit says about its domain. NOTHING: the domain was not asked, or the failure is not counted."""

    SUCCESS = "success"
    FAILURE = "failure"
    NOTHING = "nothing"


class Breaker(msgspec.Struct, frozen=True, gc=False):
    """A domain's breaker in one run.

    `since_ns` is on the monotonic clock of the boot in which the gate's last request ended. `changes` numbers the
    changes of state in the run: of two events the one with the greater number is the later one, in whatever order they
    are read.
    """

    state: BreakerState = BreakerState.CLOSED
    failures: int = 0  # in a row
    successes: int = 0  # in a row, while half-open
    trips: int = 0  # openings since it was last closed
    changes: int = 0
    cooldown_ms: int = 0
    since_ns: int = 0  # when it opened

    @property
    def is_open(self) -> bool:
        return self.state is BreakerState.OPEN

    @property
    def due_ns(self) -> int:
        """The monotonic nanosecond from which a visit may begin; 0: at once."""
        return self.since_ns + self.cooldown_ms * 1_000_000 if self.is_open else 0


NO_BREAKER = Breaker()


def outcome_of(word: str, settings: ResilienceSettings, *, has_answer: bool) -> Outcome:
    """What a visit that ended with this word says. `has_answer`: the server answered its last request."""
    if settings.counts(word):
        return Outcome.FAILURE
    return Outcome.SUCCESS if has_answer else Outcome.NOTHING


def after(breaker: Breaker, outcome: Outcome, now_ns: int, settings: ResilienceSettings) -> Breaker:
    """The breaker after a visit's outcome. With `breaker-failures = 0` it never opens."""
    if outcome is Outcome.NOTHING or breaker.is_open or not settings.breaker_failures:
        return breaker
    if outcome is Outcome.FAILURE:
        failures = min(breaker.failures + 1, _LARGEST_COUNT)
        if breaker.state is BreakerState.CLOSED and failures < settings.breaker_failures:
            return replace(breaker, failures=failures)
        trips = min(breaker.trips + 1, _LARGEST_COUNT)
        return Breaker(BreakerState.OPEN, failures, 0, trips, breaker.changes + 1, cooldown_ms(trips, settings), now_ns)
    if breaker.state is BreakerState.CLOSED:
        return replace(breaker, failures=0) if breaker.failures else breaker
    if breaker.successes + 1 < settings.breaker_successes:
        return replace(breaker, successes=breaker.successes + 1)
    return Breaker(changes=breaker.changes + 1)


def after_cooldown(breaker: Breaker) -> Breaker:
    """The open breaker once its cooldown has passed: the next visit is a trial."""
    return replace(breaker, state=BreakerState.HALF_OPEN, successes=0, changes=breaker.changes + 1)


def cooldown_ms(trips: int, settings: ResilienceSettings) -> int:
    """The cooldown of the nth opening in a row."""
    longest = max(settings.breaker_cooldown, settings.breaker_longest_cooldown)
    return min(settings.breaker_cooldown << min(trips - 1, 32), longest) * 1000


def words(breaker: Breaker, last: str) -> str:
    """The state in words, for the event that records its change. `last`: the last visit's outcome."""
    if breaker.state is BreakerState.OPEN:
        count = f"{breaker.failures} visits in a row failed" if breaker.failures > 1 else "a visit failed"
        return f"{count}, the last with {last}; the next one in {breaker.cooldown_ms / 1000:g} s"
    if breaker.state is BreakerState.HALF_OPEN:
        return f"{breaker.cooldown_ms / 1000:g} s have passed; the next visit is a trial"
    return "visits succeed again"
