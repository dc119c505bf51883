"""Gates as rows, beyond the contract: clocks that are set, batches, ledger entries that still gather."""

from __future__ import annotations

from itertools import count

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.model.records import RunEvent, dump
from crawler.pace.decisions import Busy, EntryRequest, NotYet, Open
from crawler.pace.gate_record import GateRecord, LedgerMark
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.postgres.gate_rows import Change
from tests.crawler.pace.clocks import MS, Clock
from tests.crawler.workspace.engine_opener import EngineOpener

DELAY = 1000
WISH = EntryRequest(run=1, delay_ms=DELAY, limit=100)
NUMBERS = count()

steps = st.lists(
    st.tuples(
        st.sampled_from(["enter", "enter", "finish", "wait", "reopen", "engine", "reconnect", "claim"]),
        st.integers(0, 1),
        st.integers(-5000, 5000),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_requests_keep_their_distance_and_their_budget_whatever_happens(
    opener: EngineOpener, steps: list[tuple[str, int, int]]
) -> None:
    """Two machines, whose clocks nobody compares; the engine's is set forward and back; connections are lost; holders
    leave with a request out. Only time that really passed counts.
    """
    domain = f"d{next(NUMBERS)}.test"
    machines = [Clock(mono_ms=10_000), Clock(mono_ms=90_000_000)]
    engine = opener.clock()
    workspaces = [opener(), opener()]
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
