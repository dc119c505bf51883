"""What a page is, given what is known of it: every branch, and the closures that other rules lift."""

from __future__ import annotations

import pytest

from crawler.model.records import FamilyEvent
from crawler.model.settings import TrapSettings
from crawler.model.states import PageState
from crawler.rules.lists import DomainClass
from ingest.rules.page_state import decide_state, is_family_in_force, priority, redirect_error, stronger


def decided(**changes: object) -> tuple[PageState, str | None]:
    known = {
        "klass": DomainClass.DISCOVERED,
        "nearest": 1,
        "trap": None,
        "is_past_redirect_limit": False,
        "visited": None,
        "visit_error": None,
        "redirect_error": None,
        "family_error": None,
        "closed": None,
        "max_depth": 2,
    }
    return decide_state(**{**known, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "state", "error"),
    [
        ({"klass": DomainClass.BLACKLISTED, "visited": PageState.PROCESSED}, "blacklisted", None),
        ({"klass": DomainClass.STUBBED, "nearest": None}, "stubbed", None),
        ({"nearest": None}, "discovered", None),
        ({"nearest": 3}, "depth_exceeded", None),
        ({"trap": "trap-url-length: long"}, "failed", "trap-url-length: long"),
        ({}, "queued", None),
        ({"visited": PageState.DEAD_LINK, "visit_error": "http-404"}, "dead_link", "http-404"),
        ({"visited": PageState.PROCESSED, "redirect_error": "redirect-loop: x"}, "failed", "redirect-loop: x"),
        ({"family_error": "trap-query-variants: x"}, "failed", "trap-query-variants: x"),
        ({"visited": PageState.PROCESSED, "family_error": "trap"}, "processed", None),
        ({"visited": PageState.PROCESSED, "closed": "rate-limited"}, "processed", None),
        ({"klass": DomainClass.QUALITY, "nearest": 0}, "queued", None),
    ],
)
def test_a_page_is_what_is_known_of_it(changes: dict[str, object], state: str, error: str | None) -> None:
    assert decided(**changes) == (state, error)


@pytest.mark.parametrize(
    ("reason", "state"),
    [("rate-limited", "rate_limited"), ("request-limit", "request_limit_hit"), ("crawl-delay", "failed")],
)
def test_what_waits_in_a_closed_domain_gets_the_reasons_state(reason: str, state: str) -> None:
    assert decided(closed=reason)[0] == state


def test_of_two_reasons_the_stronger_counts_whichever_came_first() -> None:
    assert stronger("request-limit", "rate-limited") == stronger("rate-limited", "request-limit") == "rate-limited"
    assert stronger(None, "crawl-delay") == "crawl-delay"


def test_lower_depth_goes_first_and_quality_first_at_equal_depth() -> None:
    order = [
        priority(0, DomainClass.QUALITY),
        priority(0, DomainClass.DISCOVERED),
        priority(1, DomainClass.QUALITY),
        priority(1, DomainClass.DISCOVERED),
    ]
    assert order == sorted(order) and len(set(order)) == 4


def test_a_larger_share_or_none_lifts_the_end_of_a_family() -> None:
    event = FamilyEvent(1, "a.test", "", "a.test/x?*", "trap-query-variants: x", limit=200)
    assert is_family_in_force(event, TrapSettings())
    assert not is_family_in_force(event, TrapSettings(max_query_variants=201))
    assert not is_family_in_force(event, TrapSettings(max_query_variants=0))


def test_ten_redirects_are_fine_and_eleven_too_many() -> None:
    assert redirect_error(list(range(11)), False) is None
    assert str(redirect_error(list(range(12)), False)).startswith("redirect-limit")
    assert str(redirect_error([1, 2], False, ends_too_far=True)).startswith("redirect-limit")
    assert str(redirect_error([1, 2], True)).startswith("redirect-loop")
