"""The state machine (seed 000 §4.1 and §4.2; design, "States")."""

from __future__ import annotations

import itertools

import pytest

from crawler.model.states import (
    ERRORS,
    LISTED,
    VISITED,
    WAITING,
    ForbiddenTransition,
    PageState,
    check_transition,
    slug_of,
)

S = PageState
ALLOWED = {
    S.DISCOVERED: "queued depth_exceeded blacklisted stubbed processed dead_link unreachable rate_limited failed"
    " request_limit_hit content_mismatch",
    S.QUEUED: "fetching depth_exceeded processed dead_link unreachable rate_limited failed request_limit_hit"
    " content_mismatch",
    S.FETCHING: "queued processed dead_link unreachable rate_limited failed request_limit_hit content_mismatch",
    S.DEPTH_EXCEEDED: "queued processed dead_link unreachable rate_limited failed request_limit_hit content_mismatch",
    S.RATE_LIMITED: "queued processed dead_link unreachable failed request_limit_hit content_mismatch",
    S.REQUEST_LIMIT_HIT: "processed dead_link unreachable rate_limited failed content_mismatch",
    S.FAILED: "queued processed dead_link unreachable rate_limited request_limit_hit content_mismatch",
    S.PROCESSED: "failed",
    S.BLACKLISTED: "",
    S.STUBBED: "",
    S.DEAD_LINK: "",
    S.UNREACHABLE: "",
    S.CONTENT_MISMATCH: "",
}


def test_section_4_1_the_states_are_the_words_of_the_database() -> None:
    assert [state.value for state in PageState] == [
        "discovered",
        "queued",
        "fetching",
        "processed",
        "blacklisted",
        "stubbed",
        "dead_link",
        "unreachable",
        "rate_limited",
        "failed",
        "depth_exceeded",
        "request_limit_hit",
        "content_mismatch",
    ]


def test_section_4_2_every_pair_of_states_is_either_allowed_or_raises() -> None:
    for before, after in itertools.product(PageState, repeat=2):
        if after == before or after.value in ALLOWED[before].split():
            check_transition(before, after)
        else:
            with pytest.raises(ForbiddenTransition) as caught:
                check_transition(before, after, url="https://a.test/")
            assert (caught.value.before, caught.value.after) == (before, after)
            assert str(caught.value) == f"a page may not go from {before} to {after}: https://a.test/"


@pytest.mark.parametrize("after", PageState)
def test_section_4_2_every_arrow_of_the_picture_is_allowed(after: PageState) -> None:
    arrows = {
        S.BLACKLISTED: S.DISCOVERED,
        S.STUBBED: S.DISCOVERED,
        S.QUEUED: S.DISCOVERED,
        S.DEPTH_EXCEEDED: S.QUEUED,
        S.REQUEST_LIMIT_HIT: S.QUEUED,
        S.FETCHING: S.QUEUED,
        S.DEAD_LINK: S.FETCHING,
        S.UNREACHABLE: S.FETCHING,
        S.RATE_LIMITED: S.FETCHING,
        S.FAILED: S.FETCHING,
        S.PROCESSED: S.FETCHING,
        S.CONTENT_MISMATCH: S.FETCHING,
        S.DISCOVERED: S.DISCOVERED,
    }
    check_transition(arrows[after], after)


def test_nothing_leaves_a_listed_state_within_a_run() -> None:
    for before, after in itertools.product(LISTED, PageState):
        if before is not after:
            with pytest.raises(ForbiddenTransition):
                check_transition(before, after)


def test_a_new_run_may_make_of_any_page_what_it_may_make_of_a_new_one() -> None:
    fresh = {S.DISCOVERED, *(S(word) for word in ALLOWED[S.DISCOVERED].split())}
    for before, after in itertools.product(PageState, repeat=2):
        if after in fresh or after is before:
            check_transition(before, after, new_run=True)
        else:
            with pytest.raises(ForbiddenTransition):
                check_transition(before, after, new_run=True)


def test_the_groups_of_states_fit_together() -> None:
    assert ERRORS < VISITED
    assert not WAITING & (VISITED | LISTED)
    assert VISITED | LISTED | WAITING | {S.DISCOVERED, S.DEPTH_EXCEEDED} == set(PageState)


@pytest.mark.parametrize(
    ("message", "slug"),
    [
        ("http-503: Service Unavailable", "http-503"),
        ("timeout", "timeout"),
        ("tls: certificate has expired: 2020", "tls"),
        ("robots-denied", "robots-denied"),
        ("trap-path-depth: the path has 25 segments", "trap-path-depth"),
        ("", None),
        (None, None),
    ],
)
def test_the_slug_is_the_stable_first_word_of_an_error(message: str | None, slug: str | None) -> None:
    assert slug_of(message) == slug
