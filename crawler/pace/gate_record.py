"""PURE. The gate record: everything that is remembered of a domain's requests.

A new fact of a domain is a new field here, with its default, and a row in the layout table of each implementation of
the gate (`crawler/workspace/files/gate_file.py`). Every other module names the fields that it reads or replaces.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from crawler.model.messages import NO_RETRIES, RetryCounts
from crawler.model.moments import Moment
from crawler.model.records import Closure
from crawler.pace.breaker import NO_BREAKER, Breaker, BreakerState

# Closures that a person may lift. The others say what the config says: a budget, the longest Crawl-delay.
RESETTABLE = ("rate-limited", "breaker-open", "cleared")
LONGEST_PAUSE_MS = 0xFFFFFFFF
_JOB_BITS = 0xFFFFFFFF


class LedgerMark(NamedTuple):
    """A position in a fetcher's result log. Ledger entries before it are counted in `GateRecord.ledgered`."""

    writer: int = 0
    segment: int = 0
    offset: int = 0


NO_MARK = LedgerMark()


class KillMark(NamedTuple):
    """The job that a fetcher was at when it was killed because that job took too much time or memory.

    `job` is the end of the job's number (32 bits), `times` the deaths so far, `reason` one of `KILL_REASONS`. Only who
    watches the fetchers writes it: a fetcher that dies of anything else leaves none.
    """

    job: int = 0
    times: int = 0
    reason: int = 0


NO_KILL = KillMark()
TOO_SLOW, TOO_COSTLY = 1, 2
KILL_REASONS = {TOO_SLOW: "too-slow", TOO_COSTLY: "too-costly"}  # their slugs
MOST_KILLS = 2  # the second try is made alone; a job that ends that one too is not tried again


class GateRecord(msgspec.Struct, frozen=True, gc=False):
    """One domain's requests, budget, closure and pauses. `ended` is None for a domain that was never asked.

    Invariants:
    - `ledgered` <= `sent`: requests of this run with a ledger entry, and all requests of this run;
    - `is_in_flight` is set from just before a request leaves until it has ended.

    A struct, because it is replaced twice for every request: 0.2 µs each, where `NamedTuple._replace` takes 1 µs.
    """

    run: int = 0
    sent: int = 0
    ledgered: int = 0
    is_in_flight: bool = False
    ended: Moment | None = None  # when the last request ended
    crawl_delay_ms: int = 0  # of the host that was asked last
    closes: Closure | None = None  # no request may leave in this run any more
    unreported: int = 0  # lost requests whose record may not have reached the result log after `mark`
    mark: LedgerMark = NO_MARK
    pause_ms: int = 0  # a visit waits before its next request (Retry-After, say): no fetcher asks the domain before
    retry_counts: RetryCounts = NO_RETRIES  # of the visit that was last interrupted or paused
    killed: KillMark = NO_KILL
    breaker: Breaker = NO_BREAKER


def for_run(record: GateRecord, run: int) -> GateRecord:
    """The record as a new run sees it: a new budget, no closure and a closed breaker, but the same clock."""
    if record.run == run:
        return record
    return replace(
        record,
        run=run,
        sent=0,
        ledgered=0,
        closes=None,
        unreported=0,
        mark=NO_MARK,
        retry_counts=NO_RETRIES,
        breaker=NO_BREAKER,
    )


def reset(record: GateRecord) -> GateRecord:
    """The record of a domain that a person had reset. Its budget, its delays and the pause that it asked for stay."""
    closes, breaker = record.closes, record.breaker
    if closes is not None and closes.reason in RESETTABLE:
        closes = None
    if breaker.state is not BreakerState.CLOSED or breaker.failures:
        breaker = Breaker(changes=breaker.changes + (breaker.state is not BreakerState.CLOSED))
    return replace(record, closes=closes, breaker=breaker)


def resolve_unknowns(record: GateRecord, now: Moment) -> GateRecord:
    """The record with an unknown end of the last request replaced by `now`.

    The end is unknown if a process died with a request out, after a reboot, and if it lies in the future. After a
    reboot the cooldown of an open breaker begins again too, and where its beginning lies in the future.
    """
    ended = record.ended
    is_other_clock = ended is not None and (ended.boot != now.boot or ended.mono_ns > now.mono_ns)
    if record.breaker.is_open and (is_other_clock or record.breaker.since_ns > now.mono_ns):
        record = replace(record, breaker=replace(record.breaker, since_ns=now.mono_ns))
    return replace(record, is_in_flight=False, ended=now) if record.is_in_flight or is_other_clock else record


def with_kill(record: GateRecord, job: int, reason: int) -> GateRecord:
    """The record of a domain whose fetcher is killed because of this job."""
    times = record.killed.times if record.killed.job == job & _JOB_BITS else 0
    return replace(record, killed=KillMark(job & _JOB_BITS, min(times + 1, 255), reason))


def kills_of(record: GateRecord, job: int) -> KillMark:
    """The deaths that this job has caused."""
    return record.killed if record.killed.times and record.killed.job == job & _JOB_BITS else NO_KILL


def with_pause(record: GateRecord, *, seconds: float, retry_counts: RetryCounts) -> GateRecord:
    """The record of a domain whose visit pauses for so long. It holds until the next request leaves."""
    return replace(record, pause_ms=min(int(seconds * 1000), LONGEST_PAUSE_MS), retry_counts=retry_counts)
