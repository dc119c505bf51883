"""One request on the wire: through the gate of its domain, out, and back with its ledger entry.

The gate is that of the requested host's domain. That is nearly always the visited page's own domain; a robots.txt may
redirect to another one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import replace

from crawler.fetch.domain_pace import DomainPace, Place
from crawler.model.messages import Answer, Failure, Request
from crawler.model.moments import Moment
from crawler.model.records import Exchange
from crawler.model.settings import Config
from crawler.net.client import HttpClient
from crawler.pace.decisions import Busy, Closed, EntryRequest, NotYet, is_in_force
from crawler.pace.gate_record import GateRecord
from crawler.resilience.suspicion import Interval
from crawler.rules.budgets import Budgets
from crawler.visit.flow import Refusal
from crawler.workspace.door import Gate, Workspace

log = logging.getLogger("sumi.fetcher")

BUSY_AGAIN_NS = 50_000_000
_MOST_TOLD = 20  # requests on the wire that a heartbeat names
_MOST_URL = 500  # characters; a longer URL is not named


@dataclass(frozen=True, slots=True)
class Later:
    """The gate is not open yet: nothing was sent. Try again at this monotonic nanosecond."""

    due_ns: int


@dataclass(frozen=True, slots=True)
class Sent:
    """The request left: its answer, its ledger entry and its time on the monotonic clock."""

    answer: Answer
    entry: Exchange
    interval: Interval


class GatedRequester:
    """Sends requests for domains that the caller holds. Used by the request loop's thread.

    Invariants:
    - a request is counted in its gate before it leaves, and the gate is held until it has ended;
    - every request that left has a ledger entry, whatever the answer.
    """

    def __init__(self, config: Config, workspace: Workspace, client: HttpClient, clock: Callable[[], Moment]) -> None:
        self._config = config
        self._settings = config.crawler
        self._budgets = Budgets(config)
        self._workspace = workspace
        self._client = client
        self._clock = clock
        self._out: dict[str, tuple[Request, int]] = {}  # by domain: a gate lets one out at a time
        self._longest_ms = config.network.total_timeout
        self.ended = 0  # requests that are over

    @property
    def in_flight(self) -> int:
        """Requests on the wire now. Takes no lock: it may be called from a signal handler."""
        return len(self._out)

    def on_the_wire(self, now_ns: int) -> list[dict[str, Any]]:
        """Some of these requests, the oldest first, for people who look. Takes no lock either."""
        return [
            {
                "domain": domain,
                "method": request.method,
                "url": request.url if len(request.url) <= _MOST_URL else "",
                "seconds": round(max(0, now_ns - since) / 1e9, 1),
            }
            for domain, (request, since) in list(self._out.items())[:_MOST_TOLD]
        ]

    def forget_failed_names(self) -> None:
        """Ask name servers again for names that were not found: they may have been out."""
        self._client.forget_failed_names()

    def due_ns(self, pace: DomainPace, request: Request) -> int:
        """When the gate will let this request through, as far as this process knows."""
        place = pace.place_of(request.url)
        return pace.due_ns(place.host, self._settings.minimum_time_on_page) if place.domain == pace.domain else 0

    def try_send(self, pace: DomainPace, request: Request) -> Sent | Refusal | Later:
        """Send a request if its gate is open. `Refusal`: its domain is closed for this run."""
        place = pace.place_of(request.url)
        is_own = place.domain == pace.domain
        wish = EntryRequest(
            run=pace.run,
            delay_ms=self._settings.minimum_time_on_page,
            limit=self._budgets.of(place.domain),
            crawl_delay_ms=pace.delay_of(place.host),
            is_visit=is_own,
        )
        gate = pace.gate if is_own else self._workspace.gate(place.domain, self._clock, self._longest_ms)
        try:
            entry = pace.try_enter(wish) if is_own else gate.try_enter(wish, adjust=partial(self._reopen, place.domain))
            admission = entry.admission
            if isinstance(admission, Busy):
                return Later(entry.at.mono_ns + BUSY_AGAIN_NS)
            if isinstance(admission, NotYet):
                return Later(admission.at_ns)
            if isinstance(admission, Closed):
                return Refusal(admission.closes, is_own)
            # A request to another domain counts as ledgered in that domain's gate at once: its entry will be in a
            # result of the visited domain, which a takeover of the other one does not read.
            return self._exchange(request, gate, entry.at, place, admission.number, is_ledgered=not is_own)
        finally:
            if not is_own:
                gate.close()

    def _exchange(
        self, request: Request, gate: Gate, start: Moment, place: Place, number: int, *, is_ledgered: bool
    ) -> Sent:
        self._out[place.domain] = request, start.mono_ns
        try:
            answer = self._client.send(request)
        except Exception as problem:  # promised not to happen; a request that left must still be recorded
            log.exception("internal error while requesting %s", request.url)
            answer = Failure("bad-response", f"internal error ({type(problem).__name__})")
        finally:
            self._out.pop(place.domain, None)
            self.ended += 1
            end = gate.finish(is_ledgered=is_ledgered)
        span = gate.span
        entry = Exchange(
            span.wall_ms,
            span.start_ms,
            request.method,
            place.host,
            answer.slug if isinstance(answer, Failure) else answer.status,
            span.elapsed_ms,
            place.domain,
            number,
        )
        return Sent(answer, entry, Interval(start.mono_ns, end.mono_ns))

    def _reopen(self, domain: str, record: GateRecord) -> GateRecord:
        """The record without a closure that the present config would not make."""
        if record.closes is None or is_in_force(record.closes, self._config, self._budgets.of(domain)):
            return record
        return replace(record, closes=None)
