"""The gate record: what a new run, an unknown end and a pause make of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from crawler.model.messages import NO_RETRIES, RetryCounts
from crawler.model.moments import Moment
from crawler.model.records import Closure
from crawler.pace.breaker import Breaker, BreakerState
from crawler.pace.gate_record import (
    LONGEST_PAUSE_MS,
    NO_KILL,
    NO_MARK,
    TOO_COSTLY,
    TOO_SLOW,
    GateRecord,
    KillMark,
    LedgerMark,
    for_run,
    kills_of,
    resolve_unknowns,
    with_kill,
    with_pause,
)
from tests.crawler.pace.clocks import BOOT, OTHER_BOOT

NOW = Moment(BOOT, 50_000_000_000, 1_700_000_000_000)
COUNTS = RetryCounts(job=7, retries=2, has_waited=True)
FULL = GateRecord(
    run=1,
    sent=7,
    ledgered=6,
    ended=NOW,
    crawl_delay_ms=5,
    closes=Closure("rate-limited", 7),
    unreported=1,
    mark=LedgerMark(1, 2, 3),
    pause_ms=900,
    retry_counts=COUNTS,
)


def test_a_new_run_has_a_new_budget_but_the_same_clock() -> None:
    assert for_run(FULL, 2) == GateRecord(run=2, ended=NOW, crawl_delay_ms=5, pause_ms=900)
    assert (for_run(FULL, 2).mark, for_run(FULL, 2).retry_counts) == (NO_MARK, NO_RETRIES)


def test_the_same_run_changes_nothing() -> None:
    assert for_run(FULL, 1) is FULL


@pytest.mark.parametrize(
    ("ended", "is_in_flight"),
    [
        (Moment(BOOT, 0, 0), True),
        (None, True),
        (Moment(OTHER_BOOT, 0, 0), False),
        (Moment(BOOT, NOW.mono_ns + 1, 0), False),
    ],
    ids=["died with a request out", "died with its first request out", "rebooted", "ended in the future"],
)
def test_a_request_of_unknown_end_ended_just_now(ended: Moment | None, is_in_flight: bool) -> None:
    record = replace(FULL, ended=ended, is_in_flight=is_in_flight)
    assert resolve_unknowns(record, NOW) == replace(FULL, ended=NOW, is_in_flight=False)


@pytest.mark.parametrize("ended", [None, NOW, Moment(BOOT, 0, 0), Moment(BOOT, NOW.mono_ns, 2**50)])
def test_a_known_end_stays_whatever_the_wall_clock_says(ended: Moment | None) -> None:
    record = replace(FULL, ended=ended)
    assert resolve_unknowns(record, NOW) is record


def test_the_cooldown_of_a_breaker_begins_again_where_its_beginning_lies_in_the_future() -> None:
    """An engine's clock was set back, and the end of the last request was told since."""
    later = Breaker(BreakerState.OPEN, since_ns=NOW.mono_ns + 1, cooldown_ms=5)
    found = resolve_unknowns(GateRecord(ended=NOW, breaker=later), NOW)
    assert found == GateRecord(ended=NOW, breaker=replace(later, since_ns=NOW.mono_ns))


def test_a_pause_is_kept_with_the_retries_of_its_visit_and_is_bounded() -> None:
    paused = with_pause(GateRecord(run=1), seconds=1.5, retry_counts=COUNTS)
    assert paused == GateRecord(run=1, pause_ms=1500, retry_counts=COUNTS)
    assert with_pause(GateRecord(), seconds=1e12, retry_counts=COUNTS).pause_ms == LONGEST_PAUSE_MS


def test_kills_are_counted_for_one_job_and_forgotten_for_another() -> None:
    job, other = 2**63 + 5, 9
    record = with_kill(GateRecord(run=1), job, TOO_SLOW)
    assert kills_of(record, job) == KillMark(5, 1, TOO_SLOW)
    assert kills_of(record, other) == NO_KILL
    record = with_kill(record, job, TOO_COSTLY)
    assert (kills_of(record, job).times, kills_of(record, job).reason) == (2, TOO_COSTLY)
    record = with_kill(record, other, TOO_SLOW)
    assert (kills_of(record, other).times, kills_of(record, job)) == (1, NO_KILL)


def test_a_fetcher_that_died_of_anything_else_leaves_no_kill() -> None:
    """A storm of kill -9 with requests on the wire condemns no job."""
    record = GateRecord(run=1, sent=3, is_in_flight=True)
    assert kills_of(record, 0) == NO_KILL
