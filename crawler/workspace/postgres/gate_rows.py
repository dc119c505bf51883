"""Gates as rows. `crawler.pace.decisions` decides here as everywhere; a row keeps the outcome.

A holder decides upon the row as it last saw it, and the engine makes the change only if that is still the row: its
`version` says so. The engine's clock has the last word on the time: an entry names the moment from which it is allowed,
and is refused before. So a request leaves only if, in the row, the domain is open and within its budget, nobody's
request is out, the delay since the last one has passed, and the process that asks has its lease.

Moments of the record (`ended`, the breaker's `since_ns`) are on this machine's clock here, and on the engine's in the
row. What this holder itself did stays on its own clock: if the engine's is set forward, it still waits its delay.

**Nobody waits for a leave.** The end of a request is sent on its way, and the visit goes on; who next uses the gate
waits for the outcome, which has come long before. The row's end is the later one of two moments: the engine's clock
when the leave is made, and the holder's own moment as the latest that it can be on that clock. The ledger has the
second, and so has the holder's next entry: so no request is nearer to the one before it than the ledgers say.

Where the delay is short, the leave is held for a moment, and goes into the row with the holder's next entry: one change
that says both. Until then the row says that a request is out, which is true for all that others can know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import replace as with_changes
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from crawler.engine.packed_arrays import bools, byteas, int8s, texts
from crawler.model.moments import Moment
from crawler.pace.decisions import Adjust, Busy, Entry, EntryRequest, NotYet, Open, enter, finish, next_allowed, revise
from crawler.pace.gate_record import GateRecord, for_run
from crawler.workspace.door import GateError, RequestSpan
from crawler.workspace.log import Cursor
from crawler.workspace.postgres.engine_clock import US, EngineClock
from crawler.workspace.postgres.engine_session import HOLD, Connection, EngineSession, Fenced, Gone, LaterCall
from crawler.workspace.postgres.record_logs import ResultRecords

_MARGIN_MS = 5_000  # a request that is given up takes a moment to end
_APART_US = 1_000_000  # two clocks that seem further apart than this: one of them was set
_TRIES = 20  # a row that changes under a decision is decided upon again
_MOST_JOINED = 15  # leaves in a row that go with the next entry: others may have their turn after the next one

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(GateRecord).decode

_COLUMNS = "holder, version, is_in_flight, flight_by, flight_until_us, entered_us, ended_us, record"
_READ = f"SELECT {_COLUMNS}, clock_us() FROM gates WHERE domain = %s"
_MAKE = "INSERT INTO gates (domain, used_us) VALUES (%s, clock_us()) ON CONFLICT DO NOTHING"
_PUT = (
    "INSERT INTO gates (domain, record, ended_us, used_us)"
    " SELECT %s, %s, CASE WHEN %s THEN now END, now FROM clock_us() AS now"
    " ON CONFLICT (domain) DO UPDATE SET version = gates.version + 1, record = excluded.record, is_in_flight = false,"
    " ended_us = coalesce(excluded.ended_us, gates.ended_us), used_us = excluded.used_us"
)
# A request that left in the future left before the clock was set back. Its time is up when it is from now on.
_ENTERED_BY_NOW = """
UPDATE gates SET entered_us = now, flight_until_us = now + greatest(0, flight_until_us - entered_us)
FROM clock_us() AS now WHERE domain = %s AND is_in_flight AND entered_us > now
"""
# One row a call. `from_us`: not before. `is_entry`: a request leaves, if the process has its lease (and the domain, if
# it is the domain's holder that asks). `ends_us`: the last request counts as ended now, or then if that is a bit later.
_CHANGE = """
WITH asked AS (
    SELECT * FROM unnest(%(domains)s::text[], %(versions)s::bigint[], %(records)s::bytea[], %(from_us)s::bigint[],
        %(entries)s::boolean[], %(own)s::boolean[], %(in_flight)s::boolean[], %(ends_us)s::bigint[],
        %(flight_us)s::bigint[])
        AS a(domain, version, record, from_us, is_entry, is_own, is_in_flight, ends_us, flight_us)
), moment AS MATERIALIZED (SELECT clock_us() AS now), changed AS (
    UPDATE gates g SET
        version = g.version + 1, record = a.record, is_in_flight = a.is_in_flight, used_us = m.now,
        flight_by = CASE WHEN a.is_entry THEN %(me)s::bigint ELSE g.flight_by END,
        flight_until_us = CASE WHEN a.is_entry THEN m.now + a.flight_us
                               WHEN a.is_in_flight THEN m.now ELSE 0 END,
        entered_us = CASE WHEN a.is_entry THEN m.now ELSE g.entered_us END,
        ended_us = CASE WHEN a.ends_us IS NULL THEN g.ended_us
                        ELSE greatest(m.now, least(a.ends_us, m.now + %(apart)s)) END
    FROM asked a, moment m
    WHERE g.domain = a.domain AND g.version = a.version AND m.now >= a.from_us
        AND (NOT a.is_entry OR (
            EXISTS (SELECT FROM holders h WHERE h.id = %(me)s::bigint AND NOT h.is_fenced AND h.until_us > m.now)
            AND (NOT a.is_own OR g.holder = %(me)s::bigint)))
    RETURNING g.domain, g.entered_us, g.ended_us
)
SELECT a.domain, c.domain IS NOT NULL, c.entered_us, c.ended_us, m.now
FROM asked a CROSS JOIN moment m LEFT JOIN changed c USING (domain)
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A gate's row, and the engine's clock when it was read."""

    holder: int | None
    version: int
    is_in_flight: bool
    flight_by: int | None
    flight_until_us: int
    entered_us: int | None
    ended_us: int | None
    record: bytes
    now_us: int
    own_end_us: int | None = None  # the last request's end, if it was ours and nobody has changed the row since

    @property
    def is_out(self) -> bool:
        """Is a request out, and its time not up?"""
        return self.is_in_flight and self.flight_until_us > self.now_us


@dataclass(frozen=True, slots=True)
class Changed:
    """The outcome of a change: was it made, and what the engine's clock was."""

    is_made: bool
    entered_us: int | None
    ended_us: int | None
    now_us: int


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a row. See `_CHANGE`. Several are made by one statement (`engine_session.Batched`)."""

    domain: str
    version: int
    record: bytes
    me: int | None
    from_us: int = 0
    is_entry: bool = False
    is_own: bool = False
    is_in_flight: bool = False
    ends_us: int | None = None
    flight_us: int = 0

    def __call__(self, connection: Connection) -> Changed:
        return self.with_others(connection, ())[0]

    def with_others(self, connection: Connection, others: Iterable[Change]) -> list[Changed]:
        asked = [self, *others]
        first: dict[str, Change] = {}
        for each in asked:
            first.setdefault(each.domain, each)
        outcomes = _made(connection, list(first.values()))
        found = dict(zip(first, outcomes, strict=True))
        # A second change of the same row was decided upon one that is not there any more, or the first was not made.
        return [found[each.domain] if first[each.domain] is each else each(connection) for each in asked]


def _made(connection: Connection, changes: list[Change]) -> list[Changed]:
    """Changes of different rows, by one statement."""
    values = {
        "domains": texts([each.domain for each in changes]),
        "versions": int8s([each.version for each in changes]),
        "records": byteas([each.record for each in changes]),
        "from_us": int8s([each.from_us for each in changes]),
        "entries": bools([each.is_entry for each in changes]),
        "own": bools([each.is_own for each in changes]),
        "in_flight": bools([each.is_in_flight for each in changes]),
        "ends_us": int8s([each.ends_us for each in changes]),
        "flight_us": int8s([each.flight_us for each in changes]),
        "me": changes[0].me,
        "apart": _APART_US,
    }
    rows = connection.execute(_CHANGE, values, binary=True).fetchall()
    found = {row[0]: Changed(*row[1:]) for row in rows}
    return [found[each.domain] for each in changes]


class _Leaving(NamedTuple):
    """A request's end that the row does not have yet: the records before and after it, and this machine's moment.

    `ends_us`: that moment on the engine's clock, at the latest, by what was known of it then.
    """

    before: GateRecord
    ended: GateRecord
    at: Moment
    ends_us: int
    is_ledgered: bool
    call: LaterCall  # its work is the change


class GateRow:
    """One domain's gate, as one holder sees it. See `crawler.workspace.door.Gate`.

    Invariant: `_row` is the row that `record` was made from, or None if it is to be read again.
    """

    def __init__(
        self,
        session: EngineSession,
        domain: str,
        clock: Callable[[], Moment],
        longest_ms: int,
        results: ResultRecords,
    ) -> None:
        """`results` has the log that this process's ledger entries go to, and gather in for a moment."""
        self._session = session
        self._domain = domain
        self._clock = clock
        self._flight_us = (longest_ms + _MARGIN_MS) * US
        self._half_ns = longest_ms * 500_000
        self._results = results
        self._row: Row | None = None
        self._kept = GateRecord()  # as it is in the row
        self._generation = 0  # the session's, when `_row` was read
        self._is_out = False  # a request of ours
        self._leaving: _Leaving | None = None
        self._wait_ms = 0  # the delay before the last request
        self._joined = 0  # leaves in a row that went with the next entry
        self.record = GateRecord()
        self.span = RequestSpan("", 0, 0, 0)

    # -- the door ----------------------------------------------------------------------------------------

    @property
    def clock_name(self) -> str:
        return self._session.era

    @property
    def is_behind(self) -> bool:
        """Is there something in `record` that the row does not have yet, because the log does not have it?"""
        return (self.record.ledgered, self.record.mark) != (self._kept.ledgered, self._kept.mark)

    def try_enter(self, request: EntryRequest, *, adjust: Adjust | None = None) -> Entry:
        self._session.join()
        at_once = self._leave_and_enter(request, adjust)
        if at_once is not None:
            return at_once
        self._settle()
        for _ in range(_TRIES):
            if self._row is None or self._row.is_in_flight:
                self._read()
            if self._is_busy():
                return Entry(Busy(), self._clock())
            now = self._clock()
            before = self.record
            entering = enter(before, request, now, adjust)
            admission = entering.admission
            if not isinstance(admission, Open):
                if entering.record == before or self._write(entering.record, before):
                    return Entry(admission, now)
                continue
            wait_ms = _delay_ms(for_run(before, request.run), max(request.delay_ms, request.crawl_delay_ms or 0))
            if self._write(entering.record, before, wait_ms) is None:
                later = self._later(wait_ms)
                if later is not None:  # what `adjust` brought up to date is kept all the same
                    adjusted = revise(before, request.run, now, adjust)
                    if adjusted == before or self._write(adjusted, before) is not None:
                        return Entry(later, self._clock())
                continue
            self._joined = 0
            return self._entered(admission, now, wait_ms)
        return Entry(Busy(), self._clock())

    def finish(self, *, is_ledgered: bool = False) -> Moment:
        assert self._row is not None
        now = self._clock()
        before = self.record
        ended = finish(before, now, is_ledgered=is_ledgered)
        can_wait = self._wait_ms < HOLD * 1000 and self._joined < _MOST_JOINED
        end_us = self._session.clock.latest_us(now.mono_ns)
        call = self._session.later(partial(self._change, ended, before, ends_us=end_us), can_wait=can_wait)
        self._leaving = _Leaving(before, ended, now, end_us, is_ledgered, call)
        self.record, self._is_out = ended, False
        start_us = self._row.entered_us or end_us
        self.span = RequestSpan(
            self._session.era, start_us // 1000, start_us // 1000, max(0, end_us // 1000 - start_us // 1000)
        )
        return now

    def update(self, run: int, adjust: Adjust) -> bool:
        self._results.flush()
        leaving = self._leaving
        if leaving is not None and leaving.call.take_back():
            record = revise(self.record, run, self._clock(), adjust)
            if self._write(record, leaving.before, ends_us=leaving.ends_us) is not None:
                self._leaving = None
                return True
        self._settle()
        for _ in range(_TRIES):
            self._results.flush()
            self._read()
            if self._is_busy():
                return False
            before = self.record
            record = revise(before, run, self._clock(), adjust)
            if record == before and not self.is_behind:
                return True
            if self._write(record, before) is not None:
                return True
        return False

    def read(self) -> GateRecord:
        self._settle()
        row = self._fetch()
        return self._local(row) if row is not None else GateRecord()

    def close(self) -> None:
        with suppress(Fenced, Gone):
            self._settle()
        if self._session.gates_used.get(self._domain) is self:
            del self._session.gates_used[self._domain]
        if self._is_out:
            self._is_out = False
            if self._row is not None:  # a request whose end nobody knows: the gate is not held for it any more
                me = self._session.holder
                with suppress(Fenced, Gone):
                    self._session.run(Change(self._domain, self._row.version, self._row.record, me, is_in_flight=True))
        self._row = None

    # -- inside ------------------------------------------------------------------------------------------

    def _leave_and_enter(self, request: EntryRequest, adjust: Adjust | None) -> Entry | None:
        """Make the leave and the next entry as one change. None: not so; the leave comes first, by itself."""
        leaving = self._leaving
        if leaving is None or not leaving.call.take_back():
            return None
        now = self._clock()
        before = self.record
        entering = enter(before, request, now, adjust)
        if not isinstance(entering.admission, Open):
            return None
        wait_ms = _delay_ms(for_run(before, request.run), max(request.delay_ms, request.crawl_delay_ms or 0))
        if self._write(entering.record, before, wait_ms, ends_us=leaving.ends_us) is None:
            return None
        self._leaving = None
        self._joined += 1
        return self._entered(entering.admission, now, wait_ms)

    def _entered(self, admission: Open, asked: Moment, wait_ms: int) -> Entry:
        """The row says that a request leaves. It does, if the answer did not take too long."""
        self._wait_ms = wait_ms
        if self._clock().mono_ns - asked.mono_ns >= self._half_ns:
            return Entry(self._turn_back(wait_ms), self._clock())
        self._is_out = True
        self._session.gates_used[self._domain] = self
        return Entry(admission, asked)

    def _settle(self) -> None:
        """Make the leave that the row does not have yet, or wait until it is made."""
        leaving, self._leaving = self._leaving, None
        if leaving is None:
            return
        if leaving.call.take_back():
            change = self._change(leaving.ended, leaving.before, ends_us=leaving.ends_us)
            changed = self._session.run(change)
        else:
            changed = leaving.call.outcome()
            change = leaving.call.work
        if self._note(change, leaving.ended, leaving.at, changed) is not None:
            return
        self._session.run(self._session.renew)  # a process that is fenced leaves the row to others
        for _ in range(_TRIES):
            self._read()  # taken anew after a lost connection: what is known here goes on from there
            row = self._row
            assert row is not None
            if row.is_in_flight and not self._session.is_held_by_me(row.flight_by):
                return  # our time was up, and the request that is out by now is another's
            sent = max(leaving.ended.sent, self.record.sent)
            ledgered = max(self._kept.ledgered + leaving.is_ledgered, self.record.ledgered)
            ended = finish(replace(self.record, sent=sent, ledgered=min(sent, ledgered)), leaving.at)
            if self._write(ended, self.record) is not None:
                return
        raise GateError(0, f"the gate of {self._domain} changes too often")

    def _is_busy(self) -> bool:
        """Is a request of somebody else out, as far as anybody can know?"""
        row = self._row
        if row is None or not row.is_out:
            return False
        if self._session.is_held_by_me(row.flight_by):
            return self._is_out or self._is_used_beside()  # else its entry was made, and the answer lost
        if row.entered_us is not None and row.entered_us > row.now_us:
            self._session.execute(_ENTERED_BY_NOW, (self._domain,))
        by = row.flight_by
        if by is not None and self._session.run(lambda connection: self._session.free_of_dead(connection, by)):
            self._read()
            return self._row is not None and self._row.is_out
        return True

    def _is_used_beside(self) -> bool:
        """Has this process a request out by another `GateRow` of this domain, or one whose end was not told yet?

        Another domain's robots.txt leads here while this one is visited. The end is told now.
        """
        other = self._session.gates_used.get(self._domain)
        if other is None or other is self:
            return False
        if other._leaving is not None:
            other._leaving.call.send()
        return other._is_out or other._leaving is not None

    def _fetch(self) -> Row | None:
        def work(connection: Connection) -> Row | None:
            found = connection.execute(_READ, (self._domain,), binary=True).fetchone()
            return Row(*found) if found is not None else None

        asked = self._clock().mono_ns
        row = self._session.run(work)
        if row is not None:
            self._session.clock.note(asked, self._clock().mono_ns, row.now_us)
        return row

    def _read(self) -> None:
        row = self._fetch()
        if row is None:
            self._session.execute(_MAKE, (self._domain,))
            row = self._fetch()
            assert row is not None
        if self._row is None or row.version != self._row.version:
            found = self._local(row)
            self.record, self._kept = self._merged(found), found
        self._row, self._generation = row, self._session.generation

    def _merged(self, found: GateRecord) -> GateRecord:
        """The record of a row that somebody changed since, with what this holder knows and the row does not say.

        Somebody else's change leaves ours alone, and only ledger entries that the row does not have yet are added. But
        an engine that went down may have lost the last changes, and then what is known here goes on.
        """
        mine = self.record
        if self._row is None or mine.run < found.run:
            return found
        if self._generation == self._session.generation:
            if mine.run > found.run or not self.is_behind:
                return found
            pending = max(0, mine.ledgered - self._kept.ledgered)
            return replace(found, ledgered=min(found.sent, found.ledgered + pending), mark=mine.mark)
        if not self._session.is_held_by_me(self._row.holder):
            return found
        if mine.run > found.run:
            return replace(mine, ended=found.ended, is_in_flight=found.is_in_flight)
        return replace(
            mine,
            sent=max(mine.sent, found.sent),
            ledgered=max(mine.ledgered, found.ledgered),
            closes=mine.closes or found.closes,
            ended=found.ended,
            is_in_flight=found.is_in_flight,
            killed=found.killed,
        )

    def _local(self, row: Row) -> GateRecord:
        """The record of a row, with its moments on this machine's clock."""
        record = _decode(row.record) if row.record else GateRecord()
        now = self._clock()
        ended = None
        if row.ended_us is not None:
            ended = Moment(now.boot, self._session.clock.here_ns(row.ended_us), row.ended_us // 1000)
        breaker = record.breaker
        if breaker.since_ns:
            breaker = replace(breaker, since_ns=self._session.clock.here_ns(breaker.since_ns // US))
        return replace(record, ended=ended, is_in_flight=row.is_in_flight, breaker=breaker)

    def _stored(self, record: GateRecord) -> bytes:
        """The record for the row: moments on the engine's clock, and no ledger entry that is not in the engine's log.

        Entries of ours that still gather in memory are left for the next change: whoever takes the domain over counts
        those that it finds in the log.
        """
        log_end = self._results.gathered(record.mark.writer)
        if log_end is not None and Cursor(record.mark.segment, record.mark.offset) > log_end:
            record = replace(record, ledgered=min(self._kept.ledgered, record.sent), mark=self._kept.mark)
        return _for_row(record, self._session.clock)

    def _write(
        self,
        record: GateRecord,
        before: GateRecord,
        wait_ms: int | None = None,
        ends_us: int | None = None,
    ) -> Changed | None:
        """Make a change that was decided upon; None: the row is another one by now.

        `wait_ms`: a request leaves. `ends_us`: one of ours has ended, by what was known of the engine's clock then.
        """
        change = self._change(record, before, wait_ms, ends_us)
        asked = self._clock()
        return self._note(change, record, asked, self._session.run(change))

    def _change(
        self, record: GateRecord, before: GateRecord, wait_ms: int | None = None, ends_us: int | None = None
    ) -> Change:
        row = self._row
        assert row is not None
        is_entry = wait_ms is not None
        from_us = 0
        if is_entry:
            from_us = self._from_us(row, wait_ms or 0, ends_us)
        elif ends_us is None and record.ended is not None and record.ended != before.ended:
            ends_us = self._session.clock.latest_us(record.ended.mono_ns)
        return Change(
            self._domain,
            row.version,
            self._stored(record),
            self._session.holder,
            from_us=from_us,
            is_entry=is_entry,
            is_own=is_entry and self._session.is_held_by_me(row.holder),
            is_in_flight=record.is_in_flight,
            ends_us=ends_us,
            flight_us=self._flight_us if is_entry else 0,
        )

    def _from_us(self, row: Row, wait_ms: int, own_end_us: int | None) -> int:
        """The engine's moment before which a request must not leave. 0: a clock was set, and does not tell."""
        if own_end_us is not None:
            return own_end_us + wait_ms * US
        ended_us = row.ended_us if row.own_end_us is None else row.own_end_us
        if ended_us is None or ended_us > row.now_us + _APART_US:
            return 0
        return ended_us + wait_ms * US

    def _note(self, change: Change, record: GateRecord, asked: Moment, changed: Changed) -> Changed | None:
        """The change's outcome: what the row is now. None: it was not made."""
        row = self._row
        assert row is not None
        self._session.clock.note(asked.mono_ns, self._clock().mono_ns, changed.now_us)
        if not changed.is_made:
            return None
        self._kept = _decode(change.record)
        self._row = with_changes(
            row,
            version=row.version + 1,
            is_in_flight=record.is_in_flight,
            flight_by=self._session.holder if change.is_entry else row.flight_by,
            flight_until_us=changed.now_us + self._flight_us if change.is_entry else 0,
            entered_us=changed.entered_us,
            ended_us=changed.ended_us,
            record=change.record,
            now_us=changed.now_us,
            own_end_us=row.own_end_us if change.ends_us is None else change.ends_us,
        )
        self.record = record
        return changed

    def _later(self, wait_ms: int) -> NotYet | None:
        """After a refused entry: when to ask again, if the engine's clock was the reason."""
        tried = self._row
        self._read()
        row = self._row
        assert row is not None and tried is not None
        if row.version != tried.version:
            return None
        left_us = 0 if row.ended_us is None else row.ended_us + wait_ms * US - row.now_us
        if left_us > 0:  # more than the delay: the clock was set back
            return NotYet(self._clock().mono_ns + min(left_us, wait_ms * US) * US)
        self._session.run(self._session.renew)  # the lease was not: it ran out, and nobody has taken over
        return None

    def _turn_back(self, wait_ms: int) -> NotYet:
        """The answer took so long that the request might outlast its time: it is not sent, and counts as ended now."""
        now = self._clock()
        self._write(finish(replace(self.record, sent=self.record.sent - 1), now), self.record)
        return NotYet(now.mono_ns + wait_ms * 1_000_000)


def put_settled(connection: Connection, clock: EngineClock, domain: str, record: GateRecord) -> None:
    """Give a domain's gate this record, in the open transaction. Its last request, if any, counts as ended now."""
    connection.execute(_PUT, (domain, _for_row(record, clock), record.ended is not None))


def _for_row(record: GateRecord, clock: EngineClock) -> bytes:
    """The record as a row keeps it: with its moments on the engine's clock."""
    breaker = record.breaker
    if breaker.since_ns:
        breaker = replace(breaker, since_ns=clock.engine_us(breaker.since_ns) * US)
    return _encode(replace(record, ended=None, is_in_flight=False, breaker=breaker))


def _delay_ms(record: GateRecord, delay_ms: int) -> int:
    """The least time between the last request and the next."""
    return next_allowed(replace(record, ended=Moment("", 0, 0)), delay_ms) // 1_000_000
