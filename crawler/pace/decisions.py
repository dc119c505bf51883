"""PURE. May a request to a domain start now? What the gate record becomes when one starts and when it has ended.

    enter    a request wants to start: `Open`, `NotYet` or `Closed`, and the record to keep
    finish   it has ended: the record to keep
    revise   the record is changed without a request

An implementation of the gate adds the lock (`Busy`), the storage and the clock, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from crawler.model.moments import Moment
from crawler.model.records import Closure
from crawler.model.settings import Config
from crawler.pace.gate_record import GateRecord, for_run, resolve_unknowns

CLOSURE_REASONS = ("rate-limited", "request-limit", "crawl-delay", "breaker-open", "cleared")

Adjust = Callable[[GateRecord], GateRecord]


class EntryRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A wish to send one request to a domain.

    `delay_ms` is the least time since the last request by the config, `limit` the budget of the run.
    `crawl_delay_ms` is the delay that the requested host's robots.txt asks for, None if that is not known. The record
    keeps it; the delay of the host that was asked before counts once more. `is_visit`: it is for a visit of this
    domain, which an open breaker holds back; another domain's robots.txt may lead here too.
    """

    run: int
    delay_ms: int
    limit: int
    crawl_delay_ms: int | None = None
    is_visit: bool = True


class Open(msgspec.Struct, frozen=True, gc=False):
    """The request may leave: the gate is held, and this is its number in the run."""

    number: int


class NotYet(msgspec.Struct, frozen=True, gc=False):
    """The request may leave from this monotonic nanosecond on."""

    at_ns: int


class Busy(msgspec.Struct, frozen=True, gc=False):
    """Another holder of the gate has a request to this domain on the wire."""


class Closed(msgspec.Struct, frozen=True, gc=False):
    """No request may leave for this domain in this run any more."""

    closes: Closure


Decision = Open | NotYet | Closed
Admission = Decision | Busy


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A gate's answer to an `EntryRequest`, and the moment at which it was given."""

    admission: Admission
    at: Moment


class Entering(msgspec.Struct, frozen=True, gc=False):
    """The decision on an `EntryRequest`, and the record to keep."""

    admission: Decision
    record: GateRecord


def enter(record: GateRecord, request: EntryRequest, now: Moment, adjust: Adjust | None = None) -> Entering:
    """Decide whether a request may leave now.

    `adjust` may change the record first, when it is of this run and its unknowns are resolved. (The holder of a domain
    brings the record up to date with its ledger.)
    """
    record = revise(record, request.run, now, adjust)
    crawl_delay_ms = request.crawl_delay_ms
    if crawl_delay_ms is None:
        admission = admit(record, request.delay_ms, request.limit, now, is_visit=request.is_visit)
        crawl_delay_ms = record.crawl_delay_ms
    else:
        delay_ms = max(request.delay_ms, crawl_delay_ms)
        admission = admit(record, delay_ms, request.limit, now, is_visit=request.is_visit)
    if isinstance(admission, Open):
        record = replace(record, sent=admission.number, is_in_flight=True, crawl_delay_ms=crawl_delay_ms, pause_ms=0)
    return Entering(admission, record)


def finish(record: GateRecord, now: Moment, *, is_ledgered: bool = False) -> GateRecord:
    """The record of a request that has ended. `is_ledgered`: it counts as recorded in a ledger already."""
    return replace(record, is_in_flight=False, ended=now, ledgered=record.ledgered + is_ledgered)


def revise(record: GateRecord, run: int, now: Moment, adjust: Adjust | None = None) -> GateRecord:
    """The record of this run, without unknowns, after `adjust`."""
    record = resolve_unknowns(for_run(record, run), now)
    return record if adjust is None else adjust(record)


def admit(record: GateRecord, delay_ms: int, limit: int, now: Moment, *, is_visit: bool = True) -> Decision:
    """May a request start now? The record must be of this run and have no unknowns."""
    if record.closes is not None:
        return Closed(record.closes)
    if record.sent >= limit:
        return Closed(Closure("request-limit", record.sent, limit))
    at = next_allowed(record, delay_ms)
    if is_visit and record.breaker.is_open:
        at = max(at, record.breaker.due_ns)
    return Open(record.sent + 1) if now.mono_ns >= at else NotYet(at)


def next_allowed(record: GateRecord, delay_ms: int) -> int:
    """The monotonic nanosecond from which the next request may start. The record must have no unknowns."""
    if record.ended is None:
        return 0
    return record.ended.mono_ns + max(delay_ms, record.crawl_delay_ms, record.pause_ms) * 1_000_000


def is_in_force(closure: Closure, config: Config, budget: int) -> bool:
    """Would this config have closed the domain, which has this budget, too? A larger one opens it again."""
    if closure.reason not in CLOSURE_REASONS:
        return False
    if closure.limit is None:
        return True
    if closure.reason == "request-limit":
        return budget <= closure.limit
    if closure.reason == "crawl-delay":
        return config.crawler.max_crawl_delay <= closure.limit
    return True


def fair_share(limit: int, fetchers: int) -> int:
    """The share of `limit` requests on the wire that one of `fetchers` processes may claim."""
    return max(1, -(-limit // max(1, fetchers)))
