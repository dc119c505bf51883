"""The run in which a page may be expected: never too late a promise, and none where there is no way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reporter.explain.turn import turn_of


def turn(**facts: int | bool | None):  # type: ignore[no-untyped-def]
    values = {"is_open": False, "before": 0, "steps": 0, "budget": 60, "requests": 60, "visited": 60} | facts
    return turn_of(3, **values)  # type: ignore[arg-type]


def test_the_budget_of_a_run_is_shared_by_the_way_and_the_pages_before() -> None:
    assert turn().run == 4
    assert turn(before=59).run == 4 and turn(before=60).run == 5
    assert turn(before=49, steps=10).run == 4 and turn(before=50, steps=10).run == 5
    assert turn(before=59, visited=30).run == 5, "two requests a page: 30 pages a run"
    assert turn(before=100, budget=600).run == 4, "the budget was raised since"


def test_a_page_of_a_run_under_way_may_be_expected_in_it() -> None:
    assert turn(is_open=True, requests=20, visited=20, before=39).run == 3
    assert turn(is_open=True, requests=20, visited=20, before=40).run == 4


def test_a_way_longer_than_the_budget_is_said_to_lead_nowhere() -> None:
    found = turn(steps=60)
    assert found.run is None
    assert found.words("max-domain-requests") == (
        "It is not reached in any run: the way to it leads over 60 pages of its domain, and the budget is enough for"
        " about 60. Raise max-domain-requests, or make it a seed."
    )


def test_one_page_goes_and_two_go() -> None:
    assert "in run 4, at the earliest: 1 page of its domain goes before it" in turn(before=1).words("")
    assert "in run 4, at the earliest: 2 pages of its domain go before it" in turn(before=2).words("")


def test_nothing_is_foreseen_of_a_domain_that_was_not_visited() -> None:
    assert turn(requests=0, visited=0) is None and turn(requests=3, visited=0) is None


@given(st.integers(0, 5000), st.integers(0, 50), st.integers(1, 500), st.booleans())
def test_a_page_further_back_is_never_expected_earlier(before: int, steps: int, budget: int, is_open: bool) -> None:
    one, other = (
        turn_of(1, is_open=is_open, before=n, steps=steps, budget=budget, requests=10, visited=5)
        for n in (before, before + 1)
    )
    assert one is not None and other is not None
    assert other.run is None or (one.run is not None and 1 <= one.run <= other.run)
