"""The pace of one leased domain: its gate, and what its holder knows that the gate's record does not say yet."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from crawler.model.messages import NO_RETRIES, RetryCounts
from crawler.model.records import Closure, Exchange, Job
from crawler.model.urls import authority_of, domain_of
from crawler.pace.breaker import NO_BREAKER, Breaker
from crawler.pace.decisions import Busy, Entry, EntryRequest, next_allowed
from crawler.pace.gate_record import GateRecord, KillMark, LedgerMark, kills_of, with_pause
from crawler.visit.flow import number_of
from crawler.workspace.door import Gate

MOST_NAMES = 64
LOOK_AGAIN = 1.0  # seconds until a closed domain's gate is read again: a person may open it


class Place(NamedTuple):
    """The host of a URL, and the domain whose gate its requests pass."""

    host: str
    domain: str


class DomainPace:
    """Delays, closure, retries and uncounted ledger entries of a domain that this process holds.

    Used where the domain is: by the main thread while it is idle, else by the one greenlet that works on it.

    Invariants:
    - `run` is the run of the job in progress, or of the last one; ledger entries of other runs do not count;
    - a ledger entry is counted in the gate once: `_uncounted` is zero as soon as the gate has it;
    - the gate's record is brought up to date whenever the gate is entered, and by `flush`.
    """

    __slots__ = (
        "_breaker",
        "_closed_run",
        "_closure",
        "_delays",
        "_is_closure_found",
        "_is_closure_kept",
        "_look_again_at",
        "_mark",
        "_names",
        "_retry_counts",
        "_uncounted",
        "domain",
        "gate",
        "run",
    )

    def __init__(self, domain: str, gate: Gate) -> None:
        self.domain = domain
        self.gate = gate
        self.run = 0
        self._delays: dict[str, int] = {}  # host → ms that its robots.txt asks for between requests, if known
        self._names: dict[str, str] = {}  # host → the domain that it belongs to
        self._uncounted = 0  # ledger entries in the result log that the gate's record does not count yet
        self._mark: LedgerMark | None = None  # the end of the result log after the last of them
        self._closure: Closure | None = None
        self._closed_run = 0
        self._is_closure_found = False  # an earlier process closed the domain; this one has not reported it yet
        self._is_closure_kept = False  # the gate's record has, or had, the closure
        self._look_again_at = 0.0  # monotonic
        self._retry_counts = NO_RETRIES  # of an interrupted job
        self._breaker: Breaker | None = None  # of this run, where the gate does not have it yet

    # -- facts ---------------------------------------------------------------------------------------

    @property
    def sent(self) -> int:
        """Requests to this domain in this run, as far as this process knows."""
        return self.gate.record.sent

    def restore(self) -> None:
        """Continue with the facts in the gate's record, after a takeover."""
        record = self.gate.record
        self.run = record.run
        self._retry_counts = record.retry_counts
        self._closure, self._closed_run = record.closes, record.run
        self._is_closure_found = self._is_closure_kept = record.closes is not None

    def begin_run(self, run: int, mark: LedgerMark) -> None:
        """The next job is of another run. Ledger entries before `mark` do not count for it."""
        self.run, self._uncounted, self._mark = run, 0, mark
        self._breaker = None

    def count(self, ledger: Iterable[Exchange], mark: LedgerMark) -> None:
        """These entries are in the result log now, which ends at `mark`."""
        self._uncounted += sum(entry.domain == self.domain and entry.is_counted for entry in ledger)
        self._mark = mark

    def learn_delay(self, host: str, delay_ms: int | None) -> None:
        """The delay that a host's robots.txt asks for; None: it is not known any more."""
        if delay_ms is None:
            self._delays.pop(host, None)
        else:
            self._delays[host] = delay_ms

    def retry_counts_of(self, job: Job) -> RetryCounts:
        """The retry counts of an interrupted job. They are reset when another job starts."""
        if self._retry_counts.job and self._retry_counts.job != number_of(job):
            self._retry_counts = NO_RETRIES
        return self._retry_counts

    def kills_of(self, job: Job) -> KillMark:
        """The deaths of fetchers that this job has caused."""
        killed = self.gate.record.killed
        return kills_of(self.gate.record, number_of(job)) if killed.times else killed

    def forget_retries(self) -> None:
        """No job is in progress."""
        self._retry_counts = NO_RETRIES

    def close(self, closure: Closure) -> None:
        """No request may leave in this run any more. The gate's record says so at once, if the gate is not busy."""
        self._closure, self._closed_run, self._is_closure_kept = closure, self.run, False
        self.flush()

    def refresh(self) -> None:
        """Read the gate's record again: a person may have had the domain reset since."""
        self._look_again_at = time.monotonic() + LOOK_AGAIN
        if self.gate.update(self.run, lambda record: record):
            self._note_reset()

    @property
    def breaker(self) -> Breaker:
        """The domain's breaker, as far as this process knows."""
        record = self.gate.record
        if self._breaker is not None:
            return self._breaker
        return record.breaker if record.run == self.run else NO_BREAKER

    def keep_breaker(self, breaker: Breaker) -> None:
        """The breaker has changed. The gate's record says so at once, if the gate is not busy."""
        # The breaker alone: what else is known here, a retry count of the job that just ended say, has its own time.
        is_kept = self.gate.update(self.run, lambda record: replace(record, breaker=breaker))
        self._breaker = None if is_kept else breaker

    def is_closed(self, run: int) -> bool:
        """Is it closed for this run? A reset is noticed within a second: each of many jobs is asked about."""
        if self._closure is None or self._closed_run != run:
            return False
        if run == self.run and time.monotonic() >= self._look_again_at:
            self.refresh()
        return self._closure is not None

    def pop_found_closure(self, run: int) -> Closure | None:
        """The closure that an earlier process made in this run. It is returned once."""
        if not self.is_closed(run) or not self._is_closure_found:
            return None
        self._is_closure_found = False
        return self._closure

    # -- the gate ------------------------------------------------------------------------------------

    def place_of(self, url: str) -> Place:
        """The place of a wire URL: nearly always one that was asked before."""
        host = authority_of(url)
        name = self._names.get(host)
        if name is None:
            if len(self._names) >= MOST_NAMES:
                self._names.clear()
            name = self._names[host] = domain_of(url)
        return Place(host, name)

    def delay_of(self, host: str) -> int | None:
        """The delay that the host's robots.txt asks for, in ms; None: it is not known."""
        return self._delays.get(host)

    def due_ns(self, host: str, delay_ms: int) -> int:
        """When the gate will let a request to this host through, as far as this process knows."""
        at = next_allowed(self.gate.record, max(delay_ms, self._delays.get(host, 0)))
        return max(at, self.breaker.due_ns)

    def try_enter(self, request: EntryRequest) -> Entry:
        """Ask the domain's own gate, and bring its record up to date."""
        entry = self.gate.try_enter(request, adjust=self._bring_up_to_date)
        if not isinstance(entry.admission, Busy):
            self._note_kept()
        return entry

    def pause(self, seconds: float, retry_counts: RetryCounts) -> None:
        """A visit pauses. The gate keeps that: another fetcher after a crash waits as long, and goes on counting."""
        self._retry_counts = retry_counts
        self.gate.update(self.run, partial(with_pause, seconds=seconds, retry_counts=retry_counts))

    def refund(self, requests: int) -> None:
        """So many requests of this domain failed because of the crawler's own network: they do not count."""
        self.gate.update(self.run, lambda record: replace(record, sent=max(record.ledgered, record.sent - requests)))

    @property
    def is_flushed(self) -> bool:
        """Does the gate's record hold everything that is known here?"""
        return not (self._uncounted or self._closure or self._breaker or self.gate.is_behind)

    def flush(self) -> bool:
        """Bring the gate's record up to date. False: the gate is busy."""
        if not self.gate.update(self.run, self._bring_up_to_date):
            return False
        self._note_reset()
        self._note_kept()
        return True

    def _note_reset(self) -> None:
        """The gate's record was read: the closure that it had before may be lifted."""
        is_kept = self._is_closure_kept and self._closed_run == self.run
        if is_kept and self.gate.record.closes is None:
            self._closure, self._is_closure_kept, self._is_closure_found = None, False, False

    def _note_kept(self) -> None:
        """The gate's record has everything that was known here."""
        self._uncounted = 0
        self._breaker = None
        self._is_closure_kept = self._closure is not None

    def _new_closure(self, run: int) -> Closure | None:
        """The closure that the gate's record never had. One that it has no longer was lifted."""
        return self._closure if self._closed_run == run and not self._is_closure_kept else None

    def _bring_up_to_date(self, record: GateRecord) -> GateRecord:
        """The gate's record with everything that this process has recorded since."""
        is_new = self._uncounted or self._closure is not None or self._mark not in (None, record.mark)
        is_new = is_new or self._breaker is not None
        if record.run != self.run or not (is_new or self._retry_counts != record.retry_counts):
            return record
        return replace(
            record,
            ledgered=min(record.sent, record.ledgered + self._uncounted),
            closes=record.closes or self._new_closure(record.run),
            mark=self._mark or record.mark,
            retry_counts=self._retry_counts,
            breaker=record.breaker if self._breaker is None else self._breaker,
        )
