"""When a page is due again: intervals, and what the dates of sitemaps change about them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.settings import DAY, RevisitSettings
from crawler.rules.revisit_interval import after, due_with_sitemap, hurried, is_proof, next_interval, span_of

ADAPTIVE = RevisitSettings("adaptive")
VISITED = "2026-03-10T12:00:00.000Z"


def test_a_first_visit_sets_the_first_interval() -> None:
    assert next_interval(ADAPTIVE, None, False) == 7 * DAY
    assert next_interval(ADAPTIVE, None, True) == 7 * DAY


def test_an_unchanged_page_waits_longer_and_a_changed_one_shorter() -> None:
    assert next_interval(ADAPTIVE, 10 * DAY, False) == 14 * DAY
    assert next_interval(ADAPTIVE, 10 * DAY, True) == 6 * DAY


@given(st.lists(st.booleans(), max_size=60))
def test_an_interval_stays_between_one_and_sixty_days_whatever_the_visits_find(changes: list[bool]) -> None:
    interval: int | None = None
    for is_changed in changes:
        interval = next_interval(ADAPTIVE, interval, is_changed)
        assert DAY <= interval <= 60 * DAY


def test_a_page_that_never_changes_comes_to_the_longest_interval_and_one_that_always_does_to_the_shortest() -> None:
    rare = often = 7 * DAY
    for _ in range(10):
        rare, often = next_interval(ADAPTIVE, rare, False), next_interval(ADAPTIVE, often, True)
    assert (rare, often) == (60 * DAY, DAY)


@given(st.one_of(st.none(), st.integers(1, 10**9)), st.booleans())
def test_a_fixed_interval_stays_what_it_is(before: int | None, is_changed: bool) -> None:
    assert next_interval(RevisitSettings(30 * DAY), before, is_changed) == 30 * DAY


@pytest.mark.parametrize(
    ("lastmod", "start", "end"),
    [
        ("2026-03-10", "2026-03-10T00:00:00.000Z", "2026-03-11T00:00:00.000Z"),
        ("2026-12", "2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"),
        ("2026-02", "2026-02-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z"),
        ("2026", "2026-01-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"),
        ("2026-03-10T14:30:00+02:00", "2026-03-10T12:30:00.000Z", "2026-03-10T12:30:00.000Z"),
        ("2026-03-10T12:30Z", "2026-03-10T12:30:00.000Z", "2026-03-10T12:30:00.000Z"),
        ("2026-03-10T12:30:00.123456789Z", "2026-03-10T12:30:00.123Z", "2026-03-10T12:30:00.123Z"),
        ("2026-03-10T12:30:00", "2026-03-10T12:30:00.000Z", "2026-03-10T12:30:00.000Z"),
    ],
)
def test_a_date_is_as_long_as_it_is_written(lastmod: str, start: str, end: str) -> None:
    assert span_of(lastmod) == (start, end)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "0000", "9999-12-31", "2026-03-10T99:00:00Z"])
def test_what_is_no_date_tells_nothing(text: str) -> None:
    assert span_of(text) is None
    assert hurried(text, VISITED) is None


@given(st.text(max_size=40))
def test_no_text_in_a_sitemap_breaks_the_rule(text: str) -> None:
    span = span_of(text)
    assert span is None or span.start <= span.end


def test_a_change_after_the_last_visit_hurries_and_one_before_it_does_not() -> None:
    assert hurried("2026-03-10T12:00:01Z", VISITED) == "2026-03-10T12:00:01.000Z"
    assert hurried("2026-03-10T11:59:59Z", VISITED) is None
    assert hurried("2026-03-09", VISITED) is None
    assert hurried("2026-03-12", VISITED) == "2026-03-12T00:00:00.000Z"


def test_a_page_that_was_visited_on_the_day_of_its_change_is_due_when_the_day_is_over() -> None:
    assert hurried("2026-03-10", VISITED) == "2026-03-11T00:00:00.000Z"


def test_lastmod_delays_only_where_it_proved_right() -> None:
    due = after(VISITED, 7 * DAY)
    old = "2025-01-01"
    assert due_with_sitemap(ADAPTIVE, old, VISITED, due, has_proved_right=False) == due
    assert due_with_sitemap(ADAPTIVE, old, VISITED, due, has_proved_right=True) == after(VISITED, 60 * DAY)
    assert due_with_sitemap(ADAPTIVE, "nonsense", VISITED, due, has_proved_right=True) == due


def test_lastmod_hurries_whether_it_proved_right_or_not_and_never_delays_by_that() -> None:
    due, late = after(VISITED, 7 * DAY), "2026-12-24"
    for proved in (False, True):
        soon = due_with_sitemap(ADAPTIVE, "2026-03-11", VISITED, due, has_proved_right=proved)
        assert soon == "2026-03-11T00:00:00.000Z"
        assert due_with_sitemap(ADAPTIVE, late, VISITED, due, has_proved_right=proved) == due


def test_a_change_that_lastmod_did_not_tell_of_proves_it_wrong_and_an_idle_warning_proves_nothing() -> None:
    assert is_proof(said_changed=True, was_changed=True) is True
    assert is_proof(said_changed=False, was_changed=False) is True
    assert is_proof(said_changed=False, was_changed=True) is False
    assert is_proof(said_changed=True, was_changed=False) is None
