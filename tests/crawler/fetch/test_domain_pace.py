"""What the holder of a domain knows, and when its gate's record learns it: over a gate in memory."""

from __future__ import annotations

import pytest

from crawler.fetch.domain_pace import MOST_NAMES, DomainPace, Place
from crawler.model.messages import NO_RETRIES, RetryCounts
from crawler.model.records import Closure, Exchange, Job
from crawler.pace.breaker import Breaker, BreakerState
from crawler.pace.decisions import Busy, Closed, EntryRequest, NotYet, Open
from crawler.pace.gate_record import LedgerMark, reset
from crawler.visit.flow import number_of
from tests.crawler.pace.clocks import MS, Clock
from tests.crawler.workspace.memory_workspace import MemoryGate, MemoryWorkspace

DELAY = 1000
WISH = EntryRequest(run=1, delay_ms=DELAY, limit=100)
LIMITED = Closure("rate-limited", 3)
JOB = Job(1, "https://a.test/1", "https://a.test/1", "a.test")
COUNTS = RetryCounts(number_of(JOB), 2, True)
MARK = LedgerMark(1, 2, 3)


@pytest.fixture
def workspace() -> MemoryWorkspace:
    return MemoryWorkspace()


@pytest.fixture
def gate(workspace: MemoryWorkspace, clock: Clock) -> MemoryGate:
    return workspace.gate("a.test", clock)


@pytest.fixture
def pace(gate: MemoryGate) -> DomainPace:
    pace = DomainPace("a.test", gate)
    pace.begin_run(1, LedgerMark(1, 1, 0))
    return pace


def ledger(*domains: str) -> list[Exchange]:
    return [Exchange(0, 0, "GET", domain, 200, 1, domain) for domain in domains]


def send(pace: DomainPace) -> None:
    assert isinstance(pace.try_enter(WISH).admission, Open)
    pace.gate.finish()


def test_ledger_entries_are_counted_in_the_gate_once(pace: DomainPace, clock: Clock) -> None:
    send(pace)
    pace.count(ledger("a.test", "other.test"), MARK)
    assert not pace.is_flushed
    assert pace.try_enter(WISH).admission == NotYet(clock.now.mono_ns + DELAY * MS)
    assert (pace.gate.read().ledgered, pace.gate.read().mark) == (1, MARK)
    clock.pass_ms(DELAY)
    send(pace)
    assert pace.flush() and pace.is_flushed
    assert (pace.gate.read().sent, pace.gate.read().ledgered) == (2, 1)


def test_a_busy_gate_learns_nothing_and_nothing_is_forgotten(
    pace: DomainPace, workspace: MemoryWorkspace, clock: Clock
) -> None:
    send(pace)
    pace.count(ledger("a.test"), MARK)
    clock.pass_ms(DELAY)
    other = workspace.gate("a.test", clock)
    assert isinstance(other.try_enter(WISH).admission, Open)
    assert pace.try_enter(WISH).admission == Busy()
    assert not pace.flush() and not pace.is_flushed
    other.finish()
    assert pace.flush()
    assert pace.gate.read().ledgered == 1


def test_entries_of_another_run_do_not_count(pace: DomainPace) -> None:
    send(pace)
    pace.count(ledger("a.test"), MARK)
    pace.begin_run(2, LedgerMark(1, 9, 9))
    assert pace.flush()
    record = pace.gate.read()
    assert (record.run, record.sent, record.ledgered, record.mark) == (2, 0, 0, LedgerMark(1, 9, 9))


def test_a_closure_is_in_the_gate_at_once_and_holds_for_its_run(pace: DomainPace) -> None:
    pace.close(LIMITED)
    assert pace.gate.read().closes == LIMITED
    assert pace.is_closed(1) and not pace.is_closed(2)
    assert pace.try_enter(WISH).admission == Closed(LIMITED)
    assert pace.pop_found_closure(1) is None, "it is this process's own, and in its results"


def test_a_closure_that_was_found_is_reported_once(pace: DomainPace, gate: MemoryGate) -> None:
    pace.close(LIMITED)
    heir = DomainPace("a.test", gate)
    heir.restore()
    assert heir.run == 1 and heir.is_closed(1)
    assert heir.pop_found_closure(2) is None
    assert heir.pop_found_closure(1) == LIMITED
    assert heir.pop_found_closure(1) is None


def test_a_closure_that_a_person_lifts_is_not_put_back_by_the_holder_of_the_domain(
    pace: DomainPace, workspace: MemoryWorkspace, clock: Clock
) -> None:
    pace.close(LIMITED)
    assert pace.is_closed(1)
    assert workspace.gate("a.test", clock).update(1, reset)
    pace.count(ledger("a.test"), MARK)
    assert pace.flush() and pace.gate.read().closes is None, "what it knew was in the gate already"
    assert not pace.is_closed(1)
    assert isinstance(pace.try_enter(WISH).admission, Open)
    pace.gate.finish()
    again = Closure("rate-limited", 9)
    pace.close(again)
    assert pace.is_closed(1) and pace.gate.read().closes == again


def test_a_reset_opens_the_breaker_and_leaves_the_budget_and_the_pause(
    pace: DomainPace, workspace: MemoryWorkspace, clock: Clock
) -> None:
    send(pace)
    pace.pause(3.0, COUNTS)
    pace.keep_breaker(Breaker(BreakerState.OPEN, 5, 0, 1, 1, 60_000, clock.now.mono_ns))
    assert workspace.gate("a.test", clock).update(1, reset)
    pace.refresh()
    assert pace.breaker == Breaker(changes=2)
    assert (pace.gate.record.sent, pace.gate.record.pause_ms) == (1, 3000)
    pace.close(Closure("request-limit", 1, 1))
    assert workspace.gate("a.test", clock).update(1, reset) and pace.is_closed(1), "the config says so"


def test_retry_counts_survive_a_takeover_and_end_with_another_job(pace: DomainPace, gate: MemoryGate) -> None:
    pace.pause(3.0, COUNTS)
    assert gate.read().pause_ms == 3000
    heir = DomainPace("a.test", gate)
    heir.restore()
    assert heir.retry_counts_of(JOB) == COUNTS
    other = Job(1, "https://a.test/2", "", "a.test")
    assert heir.retry_counts_of(other) == NO_RETRIES
    assert heir.retry_counts_of(JOB) == NO_RETRIES


def test_retries_that_are_forgotten_leave_the_gate_with_the_next_entry(pace: DomainPace, clock: Clock) -> None:
    pace.pause(0.0, COUNTS)
    pace.forget_retries()
    send(pace)
    assert pace.gate.read().retry_counts == NO_RETRIES


def test_a_request_is_due_after_the_longest_of_delay_crawl_delay_and_pause(pace: DomainPace, clock: Clock) -> None:
    assert pace.due_ns("a.test", DELAY) == 0
    send(pace)
    ended = clock.now.mono_ns
    assert pace.due_ns("a.test", DELAY) == ended + DELAY * MS
    pace.learn_delay("a.test", 2500)
    assert pace.due_ns("a.test", DELAY) == ended + 2500 * MS
    assert pace.due_ns("www.a.test", DELAY) == ended + DELAY * MS
    pace.pause(4.0, COUNTS)
    assert pace.due_ns("a.test", DELAY) == ended + 4000 * MS


def test_the_delay_of_a_host_is_known_until_its_robots_txt_is_not(pace: DomainPace) -> None:
    assert pace.delay_of("a.test") is None
    pace.learn_delay("a.test", 0)
    assert pace.delay_of("a.test") == 0
    pace.learn_delay("a.test", None)
    pace.learn_delay("b.test", None)
    assert pace.delay_of("a.test") is None


def test_places_are_right_for_any_number_of_hosts(pace: DomainPace) -> None:
    for number in range(2 * MOST_NAMES):
        host = f"www.h{number}.test"
        assert pace.place_of(f"https://{host}/x") == Place(host, f"h{number}.test")
    assert pace.place_of("https://www.h0.test:8443/x") == Place("www.h0.test:8443", "h0.test")
