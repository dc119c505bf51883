"""PURE. May a request to a domain start now? What a gate record means, and what it becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from crawler.model.messages import NO_RETRIES, RetryCounts
from crawler.model.moments import Moment
from crawler.model.records import Closure
from crawler.model.settings import Config

_LONGEST_REST_MS = 0xFFFFFFFF
CLOSURE_REASONS = ("rate-limited", "request-limit", "crawl-delay")


class LedgerMark(NamedTuple):
    """Up to where, in whose result spool, the ledger entries have been counted into `ledgered`."""

    writer: int = 0
    segment: int = 0
    offset: int = 0


NO_MARK = LedgerMark()


class GateRecord(NamedTuple):
    """What is known of a domain's requests. `ended` is None for a domain that was never asked."""

    run: int = 0
    sent: int = 0
    ledgered: int = 0
    is_in_flight: bool = False
    ended: Moment | None = None
    crawl_delay_ms: int = 0
    closes: Closure | None = None
    untold: int = 0  # requests found lost, whose record may not have reached the spool behind `mark`
    mark: LedgerMark = NO_MARK
    rest_ms: int = 0  # a visit waits before it asks again (Retry-After, say): nobody else asks before that either
    tried: RetryCounts = NO_RETRIES  # what that visit has tried; it holds until another one is at work


# -- deciding ---------------------------------------------------------------------------------------------


def for_run(record: GateRecord, run: int) -> GateRecord:
    """The record as a new run sees it: budget and closure begin anew, the clock does not."""
    if record.run == run:
        return record
    return record._replace(run=run, sent=0, ledgered=0, closes=None, untold=0, mark=NO_MARK, tried=NO_RETRIES)


def settle(record: GateRecord, now: Moment) -> GateRecord:
    """The record with what cannot be known taken as "just now"."""
    ended = record.ended
    is_unknown = record.is_in_flight or (ended is not None and (ended.boot != now.boot or ended.mono_ns > now.mono_ns))
    return record._replace(is_in_flight=False, ended=now) if is_unknown else record


def next_allowed(record: GateRecord, delay_ms: int) -> int:
    """The monotonic nanosecond from which the next request may start. The record must be settled."""
    if record.ended is None:
        return 0
    return record.ended.mono_ns + max(delay_ms, record.crawl_delay_ms, record.rest_ms) * 1_000_000


def resting(record: GateRecord, seconds: float, tried: RetryCounts) -> GateRecord:
    """The record once a visit has promised to let this much time pass. It holds until the next request leaves."""
    return record._replace(rest_ms=min(int(seconds * 1000), _LONGEST_REST_MS), tried=tried)


def is_in_force(closure: Closure, config: Config) -> bool:
    """Would these rules have closed the domain too? A larger budget or allowance opens it again."""
    if closure.reason not in CLOSURE_REASONS:
        return False
    if closure.limit is None:
        return True
    if closure.reason == "request-limit":
        return config.crawler.max_domain_requests <= closure.limit
    if closure.reason == "crawl-delay":
        return config.crawler.max_crawl_delay <= closure.limit
    return True


@dataclass(frozen=True, slots=True)
class Open:
    """Go: the gate is held, the request is counted."""

    number: int


@dataclass(frozen=True, slots=True)
class NotYet:
    """Come back at this monotonic nanosecond."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class Busy:
    """Somebody else is asking this domain right now."""


@dataclass(frozen=True, slots=True)
class Shut:
    """No request may go to this domain in this run any more."""

    closes: Closure


Admission = Open | NotYet | Busy | Shut


def admit(record: GateRecord, delay_ms: int, limit: int, now: Moment) -> Open | NotYet | Shut:
    """May a request start now? The record must be settled and of this run."""
    if record.closes is not None:
        return Shut(record.closes)
    if record.sent >= limit:
        return Shut(Closure("request-limit", record.sent, limit))
    at = next_allowed(record, delay_ms)
    return Open(record.sent + 1) if now.mono_ns >= at else NotYet(at)


# Twice for every request, and `_replace` is slow.


def departed(record: GateRecord, sent: int, crawl_delay_ms: int) -> GateRecord:
    """The record of a request that is about to leave."""
    run, _, ledgered, _, ended, _, closes, untold, mark, _, tried = record
    return GateRecord(run, sent, ledgered, True, ended, crawl_delay_ms, closes, untold, mark, 0, tried)


def arrived(record: GateRecord, now: Moment, ledgered: int) -> GateRecord:
    """The record of a request that ended just now."""
    run, sent, _, _, _, crawl_delay_ms, closes, untold, mark, _, tried = record
    return GateRecord(run, sent, ledgered, False, now, crawl_delay_ms, closes, untold, mark, 0, tried)


def fair_share(limit: int, fetchers: int) -> int:
    """How many of `limit` requests on the wire one of `fetchers` processes may claim."""
    return max(1, -(-limit // max(1, fetchers)))
