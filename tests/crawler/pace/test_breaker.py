"""The circuit breaker's rules: every state with every outcome, cooldowns, words that count."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.settings import ResilienceSettings
from crawler.pace.breaker import (
    HARD,
    NO_BREAKER,
    OK,
    Breaker,
    BreakerState,
    Outcome,
    after,
    after_cooldown,
    cooldown_ms,
    outcome_of,
    words,
)

SETTINGS = ResilienceSettings()
CLOSED, OPEN, HALF_OPEN = BreakerState
GOOD, BAD, NONE = Outcome
NOW = 7_000_000_000

TABLE = [
    (Breaker(CLOSED), GOOD, Breaker(CLOSED)),
    (Breaker(CLOSED, failures=4), GOOD, Breaker(CLOSED)),
    (Breaker(CLOSED, failures=3), BAD, Breaker(CLOSED, failures=4)),
    (Breaker(CLOSED, failures=4), BAD, Breaker(OPEN, 5, 0, 1, 1, 60_000, NOW)),
    (Breaker(CLOSED, failures=4), NONE, Breaker(CLOSED, failures=4)),
    (Breaker(OPEN, 5, 0, 1, 1, 60_000, 5), GOOD, Breaker(OPEN, 5, 0, 1, 1, 60_000, 5)),
    (Breaker(OPEN, 5, 0, 1, 1, 60_000, 5), BAD, Breaker(OPEN, 5, 0, 1, 1, 60_000, 5)),
    (Breaker(OPEN, 5, 0, 1, 1, 60_000, 5), NONE, Breaker(OPEN, 5, 0, 1, 1, 60_000, 5)),
    (Breaker(HALF_OPEN, 5, 0, 1, 2, 60_000, 5), GOOD, Breaker(HALF_OPEN, 5, 1, 1, 2, 60_000, 5)),
    (Breaker(HALF_OPEN, 5, 1, 1, 2, 60_000, 5), GOOD, Breaker(CLOSED, changes=3)),
    (Breaker(HALF_OPEN, 5, 1, 1, 2, 60_000, 5), BAD, Breaker(OPEN, 6, 0, 2, 3, 120_000, NOW)),
    (Breaker(HALF_OPEN, 5, 1, 1, 2, 60_000, 5), NONE, Breaker(HALF_OPEN, 5, 1, 1, 2, 60_000, 5)),
]


@pytest.mark.parametrize(("before", "outcome", "expected"), TABLE)
def test_every_state_has_one_answer_to_every_outcome(before: Breaker, outcome: Outcome, expected: Breaker) -> None:
    assert after(before, outcome, NOW, SETTINGS) == expected


def test_the_table_has_every_pair() -> None:
    assert {(before.state, outcome) for before, outcome, _ in TABLE} == {(s, o) for s in BreakerState for o in Outcome}


def test_an_open_breaker_is_due_after_its_cooldown_and_then_half_open() -> None:
    opened = after(Breaker(failures=4), BAD, NOW, SETTINGS)
    assert opened.due_ns == NOW + 60_000_000_000
    trial = after_cooldown(opened)
    assert (trial.state, trial.changes, trial.due_ns) == (HALF_OPEN, 2, 0)


def test_cooldowns_double_up_to_the_longest() -> None:
    assert [cooldown_ms(trips, SETTINGS) // 1000 for trips in (1, 2, 3, 6, 7, 8, 60_000)] == [
        *(60, 120, 240, 1920, 3600, 3600, 3600)
    ]
    longer_first = ResilienceSettings(breaker_cooldown=60, breaker_longest_cooldown=10)
    assert cooldown_ms(3, longer_first) == 60_000, "it is never shorter than the first"


def test_a_breaker_that_is_turned_off_never_opens() -> None:
    off = ResilienceSettings(breaker_failures=0)
    breaker = NO_BREAKER
    for _ in range(100):
        breaker = after(breaker, BAD, NOW, off)
    assert breaker == NO_BREAKER


@pytest.mark.parametrize(
    ("word", "has_answer", "expected"),
    [
        (OK, True, GOOD),
        ("http-404", True, GOOD),
        ("http-401", True, GOOD),
        ("content-mismatch", True, GOOD),
        ("http-403", True, BAD),
        ("http-429", True, BAD),
        ("http-500", True, BAD),
        ("http-599", True, BAD),
        ("timeout", False, BAD),
        (HARD, True, BAD),
        ("connection-refused", False, NONE),
        ("dns", False, NONE),
        ("robots-denied", True, GOOD),
    ],
)
def test_words_that_count(word: str, has_answer: bool, expected: Outcome) -> None:
    assert outcome_of(word, SETTINGS, has_answer=has_answer) is expected


def test_the_config_says_which_words_count() -> None:
    assert outcome_of("http-403", ResilienceSettings(breaker_counts=("timeout",)), has_answer=True) is GOOD
    assert (
        outcome_of("connection-refused", ResilienceSettings(breaker_counts=("connection-refused",)), has_answer=False)
        is BAD
    )


@given(st.lists(st.sampled_from([GOOD, BAD, NONE, "time"]), max_size=60), st.integers(1, 4), st.integers(1, 3))
def test_it_opens_only_after_failures_in_a_row_and_closes_only_after_successes(
    happens: list[Outcome | str], failures: int, successes: int
) -> None:
    settings = replace(SETTINGS, breaker_failures=failures, breaker_successes=successes)
    breaker, bad, good, changes = NO_BREAKER, 0, 0, 0
    for now, event in enumerate(happens):
        before = breaker
        if isinstance(event, Outcome):
            breaker = after(breaker, event, now, settings)
            if not before.is_open:  # no visit is made while it is open
                bad = bad + 1 if event is BAD else 0 if event is GOOD else bad
                good = good + 1 if event is GOOD else 0 if event is BAD else good
        elif breaker.is_open:
            breaker, good = after_cooldown(breaker), 0
        if breaker.is_open and before.state is CLOSED:
            assert bad >= failures
        if breaker.is_open and before.state is HALF_OPEN:
            assert event is BAD
        if breaker.state is CLOSED and before.state is HALF_OPEN:
            assert good >= successes
        changes += breaker.state is not before.state
        assert breaker.changes == changes


def test_the_words_name_the_reason() -> None:
    opened = after(Breaker(failures=4), BAD, NOW, SETTINGS)
    assert words(opened, "http-403") == "5 visits in a row failed, the last with http-403; the next one in 60 s"
    assert words(after_cooldown(opened), "") == "60 s have passed; the next visit is a trial"
    assert words(NO_BREAKER, OK) == "visits succeed again"
