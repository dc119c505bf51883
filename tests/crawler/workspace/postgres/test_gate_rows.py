"""Gates as rows, beyond the contract: clocks that are set, batches, ledger entries that still gather."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.model.records import RunEvent, dump
from crawler.net.hub import Hub
from crawler.pace.decisions import Busy, EntryRequest, NotYet, Open
from crawler.pace.gate_record import GateRecord, LedgerMark
from crawler.workspace.clock import read_clock
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.postgres.gate_rows import Change
from tests.crawler.pace.clocks import MS, Clock
from tests.crawler.workspace.engine_opener import EngineOpener

DELAY = 1000
HOUR = 3_600_000
WISH = EntryRequest(run=1, delay_ms=DELAY, limit=100)
NUMBERS = count()

steps = st.lists(
    st.tuples(
        st.sampled_from(["enter", "enter", "finish", "wait", "reopen", "engine", "reconnect", "claim", "send"]),
        st.integers(0, 1),
        st.integers(-5000, 5000),
    ),
    min_size=1,
    max_size=40,
)


class Alone:
    """A waiter whose every call comes from a greenlet, the only one: leaves are put off, as in a fetcher."""

    is_here = True

    def wait_for_callback(self, begin: Callable[[Callable[[Any], None]], None], seconds: float) -> Any:
        answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        begin(answers.put)
        return answers.get(timeout=30)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps, are_put_off=st.booleans())
def test_requests_keep_their_distance_and_their_budget_whatever_happens(
    opener: EngineOpener, steps: list[tuple[str, int, int]], are_put_off: bool
) -> None:
    """Two machines, whose clocks nobody compares; the engine's is set forward and back; connections are lost; holders
    leave with a request out; leaves go with the next entry, or are sent before. Only time that really passed counts.
    """
    domain = f"d{next(NUMBERS)}.test"
    machines = [Clock(mono_ms=10_000), Clock(mono_ms=90_000_000)]
    engine = opener.clock()
    workspaces = [opener(), opener()]
    for each in workspaces if are_put_off else ():
        each.wait_in(Alone())
    gates = [each.gate(domain, clock) for each, clock in zip(workspaces, machines, strict=True)]
    out: int | None = None
    true_ms, last_end, sent = 0, None, 0
    for step, number, ms in steps:
        if step == "wait":
            true_ms += abs(ms)
            for clock in (*machines, engine):
                clock.pass_ms(abs(ms))
        elif step == "engine" and (ms < 0 or last_end is None):
            engine.pass_ms(ms)  # it is set; a clock set forward, seen by another machine, is not noticed by anybody
        elif step == "reopen" and out in (None, number):
            gates[number].close()
            gates[number] = workspaces[number].gate(domain, machines[number])
            last_end, out = (true_ms, None) if out is not None else (last_end, None)
        elif step == "reconnect" and out is None:
            workspaces[number].session._connection = None
        elif step == "claim":
            workspaces[number].claim(domain)
        elif step == "send" and (leaving := gates[number]._leaving) is not None:
            leaving.call.send()
        elif step == "finish" and out == number:
            gates[number].finish()
            last_end, out = true_ms, None
        elif step == "enter" and out != number:
            admission = gates[number].try_enter(replace(WISH, limit=5)).admission
            if out is not None:
                assert admission == Busy()
            elif isinstance(admission, Open):
                assert last_end is None or true_ms - last_end >= DELAY
                sent += 1
                assert admission.number == sent <= 5
                out = number
    for each in workspaces:
        each.close()
    engine.close()
    opener._clocks.remove(engine)


def test_the_holder_waits_its_own_delay_though_the_engines_clock_is_set_forward(opener: EngineOpener) -> None:
    engine, here = opener.clock(), Clock()
    gate = opener().gate("a.test", here)
    assert gate.try_enter(WISH).admission == Open(1)
    gate.finish()
    engine.pass_ms(3_600_000)
    assert gate.try_enter(WISH).admission == NotYet(here.now.mono_ns + DELAY * MS)
    here.pass_ms(DELAY)
    assert gate.try_enter(WISH).admission == Open(2)


def test_the_engine_refuses_what_is_too_early_by_its_own_clock(opener: EngineOpener) -> None:
    """This machine's clock runs fast: it asks too early, and is told when to ask again."""
    engine, here = opener.clock(), Clock()
    gate = opener().gate("a.test", here)
    assert gate.try_enter(WISH).admission == Open(1)
    gate.finish()
    engine.pass_ms(400)
    here.pass_ms(DELAY)
    assert gate.try_enter(WISH).admission == NotYet(here.now.mono_ns + 600 * MS)


def test_when_the_clock_was_set_back_a_request_that_nobody_ends_holds_its_domain_for_its_longest_time(
    opener: EngineOpener,
) -> None:
    """Whoever made it may be alive, and its lease is a whole one from then on."""
    engine, here, silent, other = opener.clock(), Clock(), opener(), opener()
    engine.pass_ms(2 * HOUR)

    def wait(ms: int) -> None:
        engine.pass_ms(ms)
        here.pass_ms(ms)

    left = silent.gate("a.test", here, longest_ms=10_000)
    assert left.try_enter(WISH).admission == Open(1)
    other.session.execute("UPDATE holders SET machine = 'another'")
    engine.pass_ms(-HOUR)
    gate = other.gate("a.test", here)
    assert gate.try_enter(WISH).admission == Busy()
    wait(14_000)
    assert gate.try_enter(WISH).admission == Busy()
    wait(2_000)
    assert gate.try_enter(WISH).admission == NotYet(here.now.mono_ns + DELAY * MS), "the whole delay"
    wait(DELAY)
    assert gate.try_enter(WISH).admission == Open(2)


def test_when_the_clock_was_set_back_the_end_of_a_request_is_told_by_who_made_it(opener: EngineOpener) -> None:
    engine, here, mine, other = opener.clock(), Clock(), opener(), opener()
    engine.pass_ms(2 * HOUR)
    gate, others = mine.gate("a.test", here), other.gate("a.test", here)
    assert gate.try_enter(WISH).admission == Open(1)
    engine.pass_ms(-HOUR)
    assert others.try_enter(WISH).admission == Busy()
    gate.finish()
    assert not others.read().is_in_flight
    for each in (gate, others):
        admission = each.try_enter(WISH).admission
        assert isinstance(admission, NotYet) and admission.at_ns >= here.now.mono_ns + DELAY * MS


def test_what_an_entry_brings_up_to_date_is_kept_though_the_engine_refuses_the_entry(opener: EngineOpener) -> None:
    """Else a request with a ledger entry counts as lost when the domain is taken over."""
    engine, here = opener.clock(), Clock()
    gate = opener().gate("a.test", here)
    assert gate.try_enter(WISH).admission == Open(1)
    gate.finish()
    engine.pass_ms(400)
    here.pass_ms(DELAY)
    refused = gate.try_enter(WISH, adjust=lambda record: replace(record, ledgered=1))
    assert refused.admission == NotYet(here.now.mono_ns + 600 * MS)
    assert (gate.record.ledgered, opener().gate("a.test", here).read().ledgered) == (1, 1)


def test_a_request_is_not_sent_if_the_answer_took_half_of_its_time(opener: EngineOpener) -> None:
    engine, here = opener.clock(), Clock()
    workspace = opener()
    gate = workspace.gate("a.test", here, longest_ms=10_000)
    run = workspace.session.run

    def slow(work: object) -> object:
        outcome = run(work)  # type: ignore[arg-type]
        if isinstance(work, Change) and work.is_entry:
            here.pass_ms(5_000)
            engine.pass_ms(5_000)
        return outcome

    workspace.session.run = slow  # type: ignore[method-assign, assignment]
    assert gate.try_enter(WISH).admission == NotYet(here.now.mono_ns + DELAY * MS)
    workspace.session.run = run  # type: ignore[method-assign]
    assert not gate.read().is_in_flight
    here.pass_ms(DELAY)
    engine.pass_ms(DELAY)
    assert gate.try_enter(WISH).admission == Open(1), "it was not counted either"


def test_the_ledgers_time_is_the_engines(opener: EngineOpener) -> None:
    engine, here = opener.clock(), Clock(mono_ms=7)
    workspace = opener()
    gate = workspace.gate("a.test", here)
    start = engine.now.mono_ns // MS
    assert gate.try_enter(WISH).admission == Open(1)
    engine.pass_ms(30)
    here.pass_ms(30)
    gate.finish()
    assert gate.span == (workspace.session.era, start, start, 30)
    assert gate.clock_name == workspace.session.era


def test_changes_of_many_rows_are_one_statement_and_of_one_row_one_after_the_other(workspace: EngineWorkspace) -> None:
    clock = Clock()
    for domain in ("a.test", "b.test"):
        workspace.gate(domain, clock).update(1, lambda record: record)
    rows = dict(workspace.session.execute("SELECT domain, version FROM gates"))
    first = Change("a.test", rows["a.test"], b"{}", None)
    second = Change("b.test", rows["b.test"], b"{}", None)
    again = Change("a.test", rows["a.test"], b"{}", None)
    stale = Change("b.test", 99, b"{}", None)
    outcomes = workspace.session.run(lambda connection: first.with_others(connection, [second, again, stale]))
    assert [each.is_made for each in outcomes] == [True, True, False, False]


def test_ledger_entries_that_still_gather_are_not_counted_in_the_row(opener: EngineOpener) -> None:
    """Else a process that dies before its log is written leaves requests that no ledger shows."""
    clock, workspace = opener.clock(), opener()
    log = workspace.results.writer("fetcher-07", segment_bytes=1 << 20, gathers=True)
    gate = workspace.gate("a.test", clock)
    assert gate.try_enter(WISH).admission == Open(1)
    gate.finish()
    end = log.append(dump(RunEvent(1, "2026-01-01T00:00:00.000Z", "started")))
    mark = LedgerMark(7, end.segment, end.offset)

    def count_it(record: GateRecord) -> GateRecord:
        return replace(record, ledgered=record.sent, mark=mark)

    assert isinstance(gate.try_enter(WISH, adjust=count_it).admission, NotYet)
    assert (gate.record.ledgered, gate.read().ledgered, gate.is_behind) == (1, 0, True)
    log.sync()
    assert gate.update(1, lambda record: record)
    assert (gate.record.ledgered, gate.read().ledgered, gate.read().mark, gate.is_behind) == (1, 1, mark, False)
    clock.pass_ms(DELAY)
    assert gate.try_enter(WISH).admission == Open(2)
    gate.finish()
    end = log.append(dump(RunEvent(2, "2026-01-01T00:00:00.000Z", "started")))
    mark = LedgerMark(7, end.segment, end.offset)
    gate.try_enter(WISH, adjust=count_it)
    opener().gate("a.test", clock).update(1, lambda record: replace(record, pause_ms=5))
    assert gate.update(1, lambda record: record), "it writes the log first, and somebody else's change stays"
    assert (gate.read().ledgered, gate.read().pause_ms) == (2, 5)


def in_a_greenlet(workspace: EngineWorkspace, work: Callable[[], None]) -> None:
    """Do `work` as a fetcher's request loop does it. One that does not end in time is given up."""
    hub, until = Hub(), time.monotonic() + 30
    workspace.wait_in(hub)

    def step(_: None) -> None:
        work()
        hub.stop()

    waiting = [None]

    def begin() -> float:
        while waiting:
            hub.spawn(step, waiting.pop())
        if time.monotonic() > until:
            hub.stop()
        return 1.0

    hub.run(begin)
    hub.close()


def test_nobody_waits_for_a_leave_and_who_uses_the_gate_next_finds_it_made(opener: EngineOpener) -> None:
    workspace, seen = opener(), []
    gate = workspace.gate("a.test", read_clock)

    def visit() -> None:
        assert gate.try_enter(WISH).admission == Open(1)
        with workspace.session._using:  # nothing of this process reaches the engine
            gate.finish()
            seen.append(opener().gate("a.test", read_clock).read().is_in_flight)
        seen.append(gate.read().is_in_flight)
        seen.append(gate.try_enter(replace(WISH, delay_ms=0)).admission)
        gate.finish()
        gate.close()
        seen.append(opener().gate("a.test", read_clock).read().is_in_flight)

    in_a_greenlet(workspace, visit)
    assert seen == [True, False, Open(2), False]


def test_a_leave_and_the_next_entry_are_one_change(opener: EngineOpener) -> None:
    clock, workspace, seen = opener.clock(), opener(), []
    gate, near = workspace.gate("a.test", clock), replace(WISH, delay_ms=100)

    def row() -> tuple[int, bool, bool]:
        columns = "version, is_in_flight, ended_us = entered_us"
        found: list[tuple[int, bool, bool]] = workspace.session.execute(f"SELECT {columns} FROM gates")
        return found[0]

    def visit() -> None:
        assert gate.try_enter(near).admission == Open(1)
        for number in (2, 3, 4):
            gate.finish()
            clock.pass_ms(100)
            assert gate.try_enter(near).admission == Open(number)
            seen.append(row())
        gate.finish()
        assert gate.update(1, lambda record: replace(record, pause_ms=7))
        seen.append(row())
        clock.pass_ms(99)
        assert isinstance(gate.try_enter(near).admission, NotYet), "the end of the last request is not forgotten"

    in_a_greenlet(workspace, visit)
    assert seen == [(2, True, True), (3, True, True), (4, True, True), (5, False, True)]


def test_an_entry_with_the_leave_before_it_is_refused_if_it_is_too_early_by_the_engines_clock(
    opener: EngineOpener,
) -> None:
    engine, here, workspace = opener.clock(), Clock(), opener()
    gate, near, seen = workspace.gate("a.test", here), replace(WISH, delay_ms=100), []

    def visit() -> None:
        assert gate.try_enter(near).admission == Open(1)
        gate.finish()
        engine.pass_ms(40)
        here.pass_ms(100)
        seen.append(type(gate.try_enter(near).admission))
        seen.append(opener().gate("a.test", here).read().is_in_flight)

    in_a_greenlet(workspace, visit)
    assert seen == [NotYet, False], "the leave is made all the same"


def test_a_leave_that_nothing_follows_is_told_after_a_while(opener: EngineOpener) -> None:
    workspace, others = opener(), opener()
    gate = workspace.gate("a.test", read_clock)

    def visit() -> None:
        assert gate.try_enter(replace(WISH, delay_ms=1)).admission == Open(1)
        gate.finish()

    in_a_greenlet(workspace, visit)
    until = time.monotonic() + 30
    while others.gate("a.test", read_clock).read().is_in_flight:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_domain_that_is_asked_without_pause_is_open_to_others_now_and_then(opener: EngineOpener) -> None:
    """Another domain's robots.txt leads there: it must not wait until the last page of this one."""
    clock, workspace, others = opener.clock(), opener(), opener()
    gate, seen = workspace.gate("a.test", clock), []

    def visit() -> None:
        for number in range(1, 40):
            assert gate.try_enter(replace(WISH, delay_ms=0)).admission == Open(number)
            gate.finish()
            assert gate._leaving is not None
            if gate._leaving.call.work is not None:
                assert not isinstance(others.gate("a.test", clock).try_enter(WISH).admission, Open)
                seen.append(number)

    in_a_greenlet(workspace, visit)
    assert len(seen) >= 2


def test_two_requests_of_one_process_to_a_domain_wait_for_each_other(opener: EngineOpener) -> None:
    """The second one is for another domain's robots.txt, which leads here."""
    clock, workspace, seen = opener.clock(), opener(), []
    mine, beside = workspace.gate("a.test", clock), workspace.gate("a.test", clock)
    near = replace(WISH, delay_ms=0)

    def visit() -> None:
        assert mine.try_enter(near).admission == Open(1)
        seen.append(beside.try_enter(near).admission)
        mine.finish()
        seen.append(beside.try_enter(near).admission)
        while isinstance(entered := beside.try_enter(near).admission, Busy):
            time.sleep(0.01)
        seen.append(entered)
        seen.append(mine.try_enter(near).admission)
        beside.finish(is_ledgered=True)
        beside.close()
        seen.append(mine.try_enter(near).admission)

    in_a_greenlet(workspace, visit)
    assert seen == [Busy(), Busy(), Open(2), Busy(), Open(3)]


def test_a_leave_on_its_way_when_the_connection_is_lost_is_made_on_the_next_one(opener: EngineOpener) -> None:
    workspace, seen = opener(), []
    assert workspace.claim("a.test")
    gate = workspace.gate("a.test", read_clock)

    def visit() -> None:
        assert gate.try_enter(WISH).admission == Open(1)
        with workspace.session._using:
            gate.finish(is_ledgered=True)
            assert workspace.session._connection is not None
            workspace.session._connection.close()
        record = gate.read()
        seen.append((record.is_in_flight, record.sent, record.ledgered))

    in_a_greenlet(workspace, visit)
    assert seen == [(False, 1, 1)]


def test_no_ledger_ends_a_request_before_it_ended_nor_after_the_rows_end(opener: EngineOpener) -> None:
    """What is told of the spacing is never more than it was, nor so much less that an audit finds fault."""
    gate = opener().gate("a.test", read_clock)
    last_us = 0
    for _ in range(30):
        assert isinstance(gate.try_enter(replace(WISH, delay_ms=0)).admission, Open)
        before = read_clock().mono_ns
        gate.finish()
        assert not gate.read().is_in_flight
        row = gate._row
        assert row is not None and row.ended_us is not None and row.own_end_us is not None
        assert row.own_end_us <= row.ended_us
        assert row.own_end_us >= gate._session.clock.engine_us(before) - 1
        assert gate.span.start_ms + gate.span.elapsed_ms == row.own_end_us // 1000
        assert last_us <= row.own_end_us
        last_us = row.own_end_us
