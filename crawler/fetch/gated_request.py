"""One request on the wire: through the gate of its domain, out, and into the ledger.

The gate is the domain's whose host is asked, which is nearly always the visited page's own; a robots.txt may
redirect elsewhere.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from crawler.fetch.lease import Domain
from crawler.model.messages import BodyWanted, Failure, Request
from crawler.model.moments import Moment
from crawler.model.records import Exchange
from crawler.model.settings import Config
from crawler.net.client import HttpClient
from crawler.pace.decisions import Busy, Closed, EntryRequest, NotYet, is_in_force
from crawler.pace.gate_record import GateRecord
from crawler.visit.flow import Refusal, Reply
from crawler.workspace.door import Gate, Workspace

log = logging.getLogger("sumi.fetcher")

BUSY_AGAIN_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class Later:
    """The gate is not open yet: nothing was sent. Ask again at this monotonic nanosecond."""

    due_ns: int


class Asker:
    """Puts requests on the wire for domains that the caller holds. For the wire thread.

    Invariants:
    - a request is counted in its gate before it leaves, and the gate is held until it has ended;
    - what has left is in the domain's ledger when `ask` returns, whatever came of it.
    """

    def __init__(
        self, config: Config, workspace: Workspace, transport: HttpClient, clock: Callable[[], Moment]
    ) -> None:
        self._config = config
        self._settings = config.crawler
        self._workspace = workspace
        self._transport = transport
        self._clock = clock
        self._on_wire: set[Domain] = set()

    @property
    def in_flight(self) -> int:
        """How many requests are on the wire. Takes no lock: it may be asked from a signal handler."""
        return len(self._on_wire)

    def due(self, domain: Domain, request: Request) -> int:
        """When the gate will let this request through, as far as this process knows."""
        host, name = domain.place_of(request.url)
        if name != domain.name:
            return 0
        record = domain.gate.record
        if record.ended is None:
            return 0
        wants = domain.delays.get(host, 0)
        delay = max(self._settings.minimum_time_on_page, record.crawl_delay_ms, wants)
        return record.ended.mono_ns + delay * 1_000_000

    def ask(self, domain: Domain, request: Request) -> Reply | Later:
        """What came of a request, or `Later`, if the gate of its domain is not open."""
        assert domain.job is not None
        host, name = domain.place_of(request.url)
        is_own = name == domain.name
        gate = domain.gate if is_own else self._workspace.gate(name, self._clock)
        try:
            entry = gate.try_enter(
                EntryRequest(
                    run=domain.job.run,
                    delay_ms=self._settings.minimum_time_on_page,
                    limit=self._settings.max_domain_requests,
                    crawl_delay_ms=domain.delays.get(host),
                ),
                adjust=domain.bring_up_to_date if is_own else self._reopen,
            )
            admission, start = entry.admission, entry.at
            if isinstance(admission, Busy):
                return Later(start.mono_ns + BUSY_AGAIN_NS)
            if is_own:
                domain.uncounted = 0
            if isinstance(admission, NotYet):
                return Later(admission.at_ns)
            if isinstance(admission, Closed):
                return Refusal(admission.closes, is_own)
            return self._exchange(domain, request, gate, start, name, host)
        finally:
            if not is_own:
                gate.close()

    def _exchange(self, domain: Domain, request: Request, gate: Gate, start: Moment, name: str, host: str) -> Reply:
        domain.has_asked = True
        self._on_wire.add(domain)
        try:
            answer = self._transport.send(request)
        except Exception as problem:  # promised not to happen; a request that left must still be written down
            log.exception("asking for %s found a mistake in this program", request.url)
            answer = Failure("bad-response", f"internal error ({type(problem).__name__})")
        finally:
            self._on_wire.discard(domain)
            end = gate.finish(is_ledgered=name != domain.name)
        mono_ms = start.mono_ns // 1_000_000
        entry = Exchange(
            start.wall_ms,
            mono_ms,
            request.method,
            host,
            answer.slug if isinstance(answer, Failure) else answer.status,
            end.mono_ns // 1_000_000 - mono_ms,
            name,
        )
        (domain.robots_ledger if request.wanted is BodyWanted.ANYTHING else domain.ledger).append(entry)
        return answer

    def _reopen(self, record: GateRecord) -> GateRecord:
        """The record without a closure that the config of now would not make."""
        if record.closes is None or is_in_force(record.closes, self._config):
            return record
        return replace(record, closes=None)
