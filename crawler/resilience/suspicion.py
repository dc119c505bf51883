"""PURE. Failures that may be ours: which are believed, which are made again, which have to wait.

A failed request is believed at once if other requests succeeded just before and just after it. Otherwise somebody has
to prove that the network works. With a proof after the failure, the visit is made once more; if that fails too, and the
network is proved again after it, the failure is the site's. A failure during an outage is never believed.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import NamedTuple

from crawler.model.messages import LOCAL_SHORTAGE
from crawler.resilience.network_state import NetworkState

# What the crawler's own network, name server, clock or memory may have caused.
LOCAL_LOOKING = frozenset(
    {
        *("dns", "dns-temporary", "connection-failed", "connection-refused", "connection-reset", "early-close"),
        *("timeout", "tls", LOCAL_SHORTAGE),
    }
)
NAMES = frozenset({"dns", "dns-temporary"})
WITNESS_NS = 250_000_000  # a success this near to a failure says that the network worked
REMEMBERED = 512  # successes
GOOD_HOSTS = 8


class Interval(NamedTuple):
    """A request on the wire, in monotonic nanoseconds. `is_name`: it failed because its name was not found."""

    start: int
    end: int
    is_name: bool = False


class Verdict(Enum):
    BELIEVE = auto()  # the failure is the site's
    AGAIN = auto()  # make the visit once more
    WAIT = auto()  # nobody can tell yet


class Evidence:
    """What one fetcher has seen of the network. For one thread, except the attributes, which others may read."""

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._successes: deque[Interval] = deque(maxlen=REMEMBERED)
        self._failing: dict[str, None] = {}  # domains that failed since the last success
        self.last_success_ns = 0  # when the request began that succeeded last
        self.failing_since_ns = 0  # when the first request began that failed since then
        self.good_hosts: dict[str, None] = {}  # that answered, the newest last

    def add_success(self, host: str, request: Interval) -> None:
        self._successes.append(request)
        self.last_success_ns = max(self.last_success_ns, request.start)
        self._failing.clear()
        self.failing_since_ns = 0
        if host not in self.good_hosts:
            if len(self.good_hosts) >= GOOD_HOSTS:
                del self.good_hosts[next(iter(self.good_hosts))]
            self.good_hosts[host] = None

    def add_failure(self, domain: str, request: Interval) -> None:
        self._failing[domain] = None
        self.failing_since_ns = min(self.failing_since_ns or request.start, request.start)

    def forgive(self) -> None:
        """The network was proved to work: what failed so far says nothing of it."""
        self._failing.clear()
        self.failing_since_ns = 0

    @property
    def failing_domains(self) -> int:
        """Different domains that failed in a row, none succeeding in between."""
        return len(self._failing)

    @property
    def is_suspicious(self) -> bool:
        """Have requests to so many different domains failed in a row, and none succeeded?"""
        return self.failing_domains >= self._threshold

    def has_witnesses(self, failed: Interval) -> bool:
        """Did other requests succeed just before (or during) and just after this one?

        None says anything about a name: most connections are kept, and need no name server.
        """
        if failed.is_name:
            return False
        is_before = is_after = False
        for request in self._successes:
            is_before = is_before or failed.start - WITNESS_NS <= request.end <= failed.end
            earliest = max(failed.start, failed.end - WITNESS_NS)
            is_after = is_after or earliest <= request.start <= failed.end + WITNESS_NS
        return is_before and is_after


def judge(failed: Interval, *, is_confirmed: bool, evidence: Evidence, state: NetworkState) -> Verdict:
    """What becomes of a visit that ended with this failed request.

    `is_confirmed`: an earlier request of the visit failed too, and the network was proved to work in between.
    """
    if state.is_waiting:
        return Verdict.WAIT
    if state.was_out(failed.start):
        return Verdict.AGAIN
    if evidence.has_witnesses(failed):
        return Verdict.BELIEVE
    if (state.names_proof_ns if failed.is_name else state.proof_ns) >= failed.end:
        return Verdict.BELIEVE if is_confirmed else Verdict.AGAIN
    return Verdict.WAIT
