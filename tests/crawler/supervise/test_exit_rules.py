"""The supervisor's decisions as tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.fetch.request_loop import STOP_AT_MOST, STOP_GRACE, STOP_THREAD
from crawler.supervise.exit_rules import (
    CRASHED,
    DONE,
    EXPLAINED,
    HEALTHY_AFTER,
    INTERRUPT_DEADLINE,
    INTERRUPTED,
    LONGEST_PAUSE,
    NO_DEATHS,
    PATIENCE,
    STUCK_PATIENCE,
    TERMINATED,
    WIRE_DEADLINE,
    Deaths,
    Phase,
    Situation,
    Verdict,
    after_death,
    judge_exit,
    kill_at,
    next_phase,
)

RUNNING = Situation()
COMPLETED = Situation(is_run_completed=True)
STOP_ALL = Situation(is_stop_set=True, is_own_stop_set=True)
STOP_ONE = Situation(is_own_stop_set=True)
STOPPING = Situation(Phase.STOPPING)
ALONE = Situation(owns_run=False)
ALONE_STOPPED = Situation(owns_run=False, is_stop_set=True, is_own_stop_set=True)


@pytest.mark.parametrize(
    ("stage", "code", "situation", "verdict"),
    [
        ("scheduler", DONE, COMPLETED, Verdict.RUN_COMPLETED),
        ("fetcher", DONE, COMPLETED, Verdict.OVER),
        ("ingest", DONE, COMPLETED, Verdict.OVER),
        ("scheduler", DONE, RUNNING, Verdict.RESTART),
        ("fetcher", INTERRUPTED, RUNNING, Verdict.RESTART),
        ("fetcher", TERMINATED, RUNNING, Verdict.RESTART),
        ("fetcher", DONE, STOP_ALL, Verdict.INTERRUPT_ALL),
        ("fetcher", DONE, STOP_ONE, Verdict.PARK),
        ("fetcher", CRASHED, STOP_ALL, Verdict.RESTART),
        ("fetcher", CRASHED, COMPLETED, Verdict.RESTART),
        ("ingest", CRASHED, RUNNING, Verdict.RESTART),
        ("ingest", -9, RUNNING, Verdict.RESTART),
        ("ingest", EXPLAINED, RUNNING, Verdict.FAIL_ALL),
        ("ingest", EXPLAINED, COMPLETED, Verdict.FAIL_ALL),
        ("ingest", EXPLAINED, STOPPING, Verdict.FAIL_ALL),
        ("ingest", CRASHED, STOPPING, Verdict.OVER),
        ("fetcher", -9, STOPPING, Verdict.OVER),
        ("fetcher", DONE, STOPPING, Verdict.OVER),
        ("fetcher", DONE, ALONE, Verdict.OVER),
        ("fetcher", INTERRUPTED, ALONE, Verdict.OVER),
        ("fetcher", DONE, ALONE_STOPPED, Verdict.OVER),
        ("fetcher", CRASHED, ALONE, Verdict.RESTART),
        ("fetcher", -9, ALONE, Verdict.RESTART),
        ("fetcher", EXPLAINED, ALONE, Verdict.FAIL_ALL),
    ],
)
def test_the_consequence_of_an_exit(stage: str, code: int, situation: Situation, verdict: Verdict) -> None:
    assert judge_exit(stage, code, situation) is verdict


@pytest.mark.parametrize(
    ("phase", "alive", "following"),
    [
        (Phase.RUNNING, ["scheduler", "fetcher", "ingest"], Phase.RUNNING),
        (Phase.RUNNING, ["ingest"], Phase.RUNNING),
        (Phase.RUNNING, [], Phase.RUNNING),
        (Phase.STOPPING, ["fetcher", "ingest"], Phase.STOPPING),
        (Phase.STOPPING, ["fetcher"], Phase.STOPPING),
        (Phase.STOPPING, ["ingest"], Phase.DRAINING),
        (Phase.STOPPING, [], Phase.ENDED),
        (Phase.DRAINING, ["ingest"], Phase.DRAINING),
        (Phase.DRAINING, [], Phase.ENDED),
        (Phase.ENDED, [], Phase.ENDED),
    ],
)
def test_a_stop_goes_down_the_pipeline(phase: Phase, alive: list[str], following: Phase) -> None:
    assert next_phase(phase, alive) is following


def test_pauses_double_up_to_the_longest() -> None:
    deaths, pauses = NO_DEATHS, []
    for _ in range(9):
        deaths = after_death(deaths, 1.0, "no progress")
        pauses.append(deaths.pause)
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize(
    ("before", "lived", "progress", "expected"),
    [
        (NO_DEATHS, 0, 7, Deaths(1, 0.5, 7)),
        (NO_DEATHS, 0, None, Deaths(1, 0.5, None)),
        (Deaths(1, 0.5, 7), 1, 7, Deaths(2, 1.0, 7)),
        (Deaths(3, 4.0, 7), 1, 8, Deaths(1, 8.0, 8)),
        (Deaths(3, 4.0, 7), HEALTHY_AFTER + 1, 7, Deaths(4, 0.5, 7)),
        (Deaths(3, 4.0, 7), HEALTHY_AFTER + 1, 8, Deaths(1, 0.5, 8)),
        (Deaths(3, 4.0, 7), HEALTHY_AFTER, 7, Deaths(4, 8.0, 7)),
    ],
)
def test_progress_resets_the_count_and_a_long_life_the_pause(
    before: Deaths, lived: float, progress: object, expected: Deaths
) -> None:
    assert after_death(before, lived, progress) == expected


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 2)), max_size=20), st.floats(0.01, 5))
def test_a_pause_is_never_shorter_than_the_first_nor_longer_than_the_longest(
    lives: list[tuple[float, int]], first_pause: float
) -> None:
    deaths = NO_DEATHS
    for count, (lived, progress) in enumerate(lives, 1):
        deaths = after_death(deaths, lived, progress, first_pause)
        assert first_pause <= deaths.pause <= LONGEST_PAUSE
        assert 1 <= deaths.in_a_row <= count


moments = st.floats(0, 1e6)


@given(st.sampled_from(["scheduler", "fetcher", "ingest"]), moments, st.floats(0, 100), st.booleans())
def test_after_an_interrupt_no_stage_is_waited_for_beyond_five_seconds(
    stage: str, interrupted_at: float, later: float, is_stuck: bool
) -> None:
    """However late it was asked to end: the ingest is asked last."""
    at = kill_at(stage, interrupted_at + later, interrupted_at, is_stuck=is_stuck)
    assert at <= interrupted_at + 4.7
    assert at <= interrupted_at + WIRE_DEADLINE or stage == "ingest"


@given(st.sampled_from(["scheduler", "fetcher", "ingest"]), moments, st.booleans())
def test_without_an_interrupt_a_stage_has_its_full_time(stage: str, asked_at: float, is_stuck: bool) -> None:
    assert kill_at(stage, asked_at, None, is_stuck=is_stuck) == asked_at + (STUCK_PATIENCE if is_stuck else PATIENCE)


def test_a_fetcher_gives_up_its_requests_before_it_is_given_up_itself() -> None:
    """Then it has saved what it can, and the ingest still has time after it."""
    assert STOP_GRACE + STOP_AT_MOST + STOP_THREAD <= WIRE_DEADLINE - 0.4
    assert WIRE_DEADLINE < INTERRUPT_DEADLINE < 5
