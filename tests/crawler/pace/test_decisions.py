"""May a request to a domain start now? Tables of records and answers; nothing here touches a file or a clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.model.messages import RetryCounts
from crawler.model.moments import Moment
from crawler.model.records import Closure
from crawler.model.settings import Config, CrawlerSettings
from crawler.pace.decisions import (
    Closed,
    EntryRequest,
    NotYet,
    Open,
    admit,
    enter,
    fair_share,
    finish,
    is_in_force,
    next_allowed,
    revise,
)
from crawler.pace.gate_record import GateRecord, with_pause
from tests.crawler.pace.clocks import BOOT, MS, OTHER_BOOT

NOW = Moment(BOOT, 50_000 * MS, 1_700_000_000_000)
DELAY = 1000
WISH = EntryRequest(run=1, delay_ms=DELAY, limit=100)
LIMITED = Closure("rate-limited", 3)


def ms_ago(ms: int) -> Moment:
    return Moment(NOW.boot, NOW.mono_ns - ms * MS, NOW.wall_ms - ms)


def in_ms(ms: int) -> int:
    return NOW.mono_ns + ms * MS


# -- admission ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "limit", "expected"),
    [
        (GateRecord(), 1, Open(1)),
        (GateRecord(sent=6, ended=ms_ago(DELAY)), 9, Open(7)),
        (GateRecord(sent=6, ended=ms_ago(DELAY - 1)), 9, NotYet(in_ms(1))),
        (GateRecord(sent=6, ended=NOW), 9, NotYet(in_ms(DELAY))),
        (GateRecord(ended=NOW, crawl_delay_ms=5000), 9, NotYet(in_ms(5000))),
        (GateRecord(ended=NOW, crawl_delay_ms=10), 9, NotYet(in_ms(DELAY))),
        (GateRecord(ended=NOW, pause_ms=7000), 9, NotYet(in_ms(7000))),
        (GateRecord(sent=7), 7, Closed(Closure("request-limit", 7, 7))),
        (GateRecord(sent=9, ended=NOW), 7, Closed(Closure("request-limit", 9, 7))),
        (GateRecord(sent=9, closes=LIMITED), 7, Closed(LIMITED)),
    ],
    ids=[
        "never asked: at once",
        "the delay has passed",
        "a millisecond too early",
        "it ended just now",
        "a longer crawl delay counts",
        "a shorter crawl delay does not",
        "a pause counts",
        "the budget is spent",
        "the budget is overspent",
        "a closure goes before the budget",
    ],
)
def test_a_request_is_admitted_by_delay_budget_and_closure(record: GateRecord, limit: int, expected: object) -> None:
    assert admit(record, DELAY, limit, NOW) == expected


def test_the_next_request_starts_a_delay_after_the_end_of_the_last_one() -> None:
    record = GateRecord(ended=NOW)
    at = in_ms(DELAY)
    assert next_allowed(record, DELAY) == at
    assert admit(record, DELAY, 9, NOW._replace(mono_ns=at - 1)) == NotYet(at)
    assert admit(record, DELAY, 9, NOW._replace(mono_ns=at)) == Open(1)


@pytest.mark.parametrize("jump_ms", [-(10**10), 10**10])
def test_the_wall_clock_decides_nothing(jump_ms: int) -> None:
    later = NOW._replace(mono_ns=NOW.mono_ns + 1, wall_ms=NOW.wall_ms + jump_ms)
    assert enter(GateRecord(run=1, ended=NOW), WISH, later).admission == NotYet(in_ms(DELAY))


# -- entering and finishing -----------------------------------------------------------------------------------


def test_a_request_that_leaves_is_counted_and_out_and_ends_a_pause() -> None:
    before = GateRecord(run=1, sent=4, ledgered=3, ended=ms_ago(9000), pause_ms=8000, retry_counts=RetryCounts(5))
    entering = enter(before, WISH, NOW)
    assert entering.admission == Open(5)
    assert entering.record == replace(before, sent=5, is_in_flight=True, pause_ms=0)


def test_a_request_that_may_not_leave_changes_nothing_that_was_known() -> None:
    waiting = GateRecord(run=1, sent=4, ended=NOW, pause_ms=8000)
    assert enter(waiting, WISH, NOW).record is waiting
    closed = GateRecord(run=1, sent=4, closes=LIMITED)
    assert enter(closed, WISH, NOW).record is closed


def test_a_request_out_for_ever_costs_one_delay_from_the_moment_it_is_noticed() -> None:
    entering = enter(GateRecord(run=1, sent=4, is_in_flight=True, ended=ms_ago(9000)), WISH, NOW)
    assert entering.admission == NotYet(in_ms(DELAY))
    assert entering.record == GateRecord(run=1, sent=4, ended=NOW), "so that the delay does not begin again"


def test_a_new_run_enters_with_a_new_budget() -> None:
    spent = GateRecord(run=1, sent=100, ledgered=100, ended=ms_ago(DELAY), closes=LIMITED)
    assert enter(spent, replace(WISH, run=2), NOW).admission == Open(1)


@pytest.mark.parametrize(
    ("asked_for", "elapsed_ms", "expected", "kept"),
    [
        (None, 5000, Open(1), 5000),
        (None, 4999, NotYet(in_ms(1)), 5000),
        (7000, 6999, NotYet(in_ms(1)), 5000),
        (7000, 7000, Open(1), 7000),
        (200, 4999, NotYet(in_ms(1)), 5000),
        (200, 5000, Open(1), 200),
        (0, 5000, Open(1), 0),
    ],
)
def test_the_crawl_delay_of_the_last_host_counts_once_more_and_then_that_of_the_next(
    asked_for: int | None, elapsed_ms: int, expected: object, kept: int
) -> None:
    record = GateRecord(run=1, ended=ms_ago(elapsed_ms), crawl_delay_ms=5000)
    entering = enter(record, replace(WISH, crawl_delay_ms=asked_for), NOW)
    assert (entering.admission, entering.record.crawl_delay_ms) == (expected, kept)


def test_an_adjustment_sees_the_record_of_this_run_without_unknowns_and_counts_for_the_decision() -> None:
    seen: list[GateRecord] = []

    def close(record: GateRecord) -> GateRecord:
        seen.append(record)
        return replace(record, closes=LIMITED)

    entering = enter(GateRecord(run=1, sent=9, is_in_flight=True), replace(WISH, run=2), NOW, close)
    assert seen == [GateRecord(run=2, ended=NOW)]
    assert (entering.admission, entering.record.closes) == (Closed(LIMITED), LIMITED)


@pytest.mark.parametrize(("is_ledgered", "ledgered"), [(False, 3), (True, 4)])
def test_a_request_that_ended_is_no_longer_out_and_starts_the_delay(is_ledgered: bool, ledgered: int) -> None:
    out = GateRecord(run=1, sent=5, ledgered=3, is_in_flight=True, ended=ms_ago(9000), crawl_delay_ms=5)
    expected = replace(out, is_in_flight=False, ended=NOW, ledgered=ledgered)
    assert finish(out, NOW, is_ledgered=is_ledgered) == expected


def test_a_record_is_revised_for_its_run_and_without_unknowns() -> None:
    stale = GateRecord(run=1, sent=5, ended=Moment(OTHER_BOOT, 1, 1))
    assert revise(stale, 2, NOW) == GateRecord(run=2, ended=NOW)
    pause = with_pause(GateRecord(), seconds=2, retry_counts=RetryCounts(9))
    assert revise(stale, 1, NOW, lambda record: pause) is pause


events = st.lists(
    st.tuples(
        st.sampled_from(["ask", "die", "wait", "pause", "reboot", "run"]),
        st.integers(0, 3000),
        st.none() | st.just(2000),
    ),
    max_size=60,
)


@given(events)
def test_no_sequence_brings_two_requests_closer_than_delay_crawl_delay_and_pause(
    sequence: list[tuple[str, int, int | None]],
) -> None:
    """True time is kept apart: the clocks of the machine may begin anew, the site's time does not."""
    record, now, true_ms, run = GateRecord(), NOW, 0, 1
    last_end, promised_ms = None, 0
    for event, ms, crawl_delay_ms in sequence:
        if event == "wait":
            now, true_ms = now._replace(mono_ns=now.mono_ns + ms * MS), true_ms + ms
        elif event == "reboot":
            now = Moment(f"{int(now.boot, 16) + 1:032x}", ms * MS, now.wall_ms)
        elif event == "run":
            run += 1
        elif event == "pause":
            record = with_pause(revise(record, run, now), seconds=ms / 1000, retry_counts=RetryCounts(1))
            promised_ms = int(ms / 1000 * 1000) if last_end is not None else 0
        else:
            wish = EntryRequest(run=run, delay_ms=DELAY, limit=4, crawl_delay_ms=crawl_delay_ms)
            entering = enter(record, wish, now)
            record = entering.record
            if isinstance(entering.admission, Open):
                least = max(DELAY, promised_ms, crawl_delay_ms or 0)
                assert last_end is None or true_ms - last_end >= least
                assert entering.admission.number == record.sent <= 4
                last_end, promised_ms = true_ms, 0
                if event == "ask":
                    record = finish(record, now)


# -- closures and shares --------------------------------------------------------------------------------------


def test_a_larger_budget_or_allowance_lifts_a_closure() -> None:
    small, large = (Config(crawler=CrawlerSettings(max_domain_requests=n, max_crawl_delay=n)) for n in (500, 501))
    for reason in ("request-limit", "crawl-delay"):
        assert is_in_force(Closure(reason, 500, 500), small, 500)
        assert not is_in_force(Closure(reason, 500, 500), large, 501)
    assert is_in_force(Closure("rate-limited", 3), large, 501)


def test_a_closure_for_an_unknown_reason_is_not_in_force() -> None:
    assert not is_in_force(Closure("bad-mood", 3), Config(), 500)


def test_the_fair_share_covers_the_limit_and_is_never_nothing() -> None:
    assert fair_share(10, 4) == 3
    assert fair_share(2, 8) == 1
    assert fair_share(10, 0) == 10
