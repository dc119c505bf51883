"""Counts become figures: whatever the counts are, the figures add up."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from crawler.model.states import ERRORS, PageState
from reporter.counting import overall, page_figures, run_figures, trap_figures
from reporter.queries.rows import DomainRow, RunRow

_ERRORS = (None, "timeout", "http-503", "robots-denied", "trap-path-depth", "rate-limited", "something-new")
_KEYS = st.tuples(
    st.integers(1, 3), st.sampled_from([str(state) for state in PageState]), st.none() | st.integers(0, 4)
)
_COUNTS = st.dictionaries(
    st.tuples(_KEYS, st.sampled_from(_ERRORS)).map(lambda both: (*both[0], both[1])), st.integers(1, 9)
)
_CLASSES = {1: "quality", 2: "discovered", 3: "blacklisted"}
_DOMAINS = {
    number: DomainRow(number, f"d{number}.test", klass, 1, 10 * number, 0, None, None, None, None, 0)
    for number, klass in _CLASSES.items()
}


@given(_COUNTS)
def test_every_page_is_counted_once_in_every_table(counts: dict[tuple[int, str, int | None, str | None], int]) -> None:
    pages = page_figures(counts, _DOMAINS, 1)
    total = sum(counts.values())
    assert sum(pages.states.values()) == total
    assert sum(row.known for row in pages.depths) == total
    assert sum(row.known for row in pages.domains) == total
    errors = sum(count for (_, state, _, _), count in counts.items() if state in ERRORS)
    assert sum(row.count for row in pages.errors) == errors
    assert sum(pages.error_slugs.values()) == errors
    assert sum(row.errors for row in pages.domains) == errors


@given(_COUNTS)
def test_the_first_table_agrees_with_the_others(counts: dict[tuple[int, str, int | None, str | None], int]) -> None:
    pages = page_figures(counts, _DOMAINS, 1)
    first = overall(pages, links=7, pages_in_all=sum(counts.values()) + 5)
    assert first.pages_crawled == sum(row.crawled for row in pages.depths) == sum(row.crawled for row in pages.domains)
    assert first.domains_discovered == sum(row.domains for row in pages.depths)
    assert first.waiting == sum(row.waiting for row in pages.domains)
    assert (first.links, first.not_seen_again) == (7, 5)


def test_a_domain_of_an_earlier_run_has_no_requests_in_this_one() -> None:
    counts = Counter({(1, "processed", 0, None): 1})
    assert page_figures(counts, _DOMAINS, 1).domains[0].requests == 10
    assert page_figures(counts, _DOMAINS, 2).domains[0].requests == 0


def test_a_duration_is_that_of_the_times_as_they_are_shown() -> None:
    run = RunRow(1, "2025-01-15T10:00:00.900Z", "2025-01-15T10:00:02.100Z", "completed")
    assert run_figures(run).seconds == 2
    assert run_figures(run._replace(finished_at=None)).seconds is None
    assert run_figures(run._replace(finished_at="soon")).seconds is None


def test_pages_of_two_families_with_one_error_are_not_told_apart() -> None:
    pages = page_figures({(2, "failed", 1, "trap-similar-paths"): 4, (2, "processed", 1, None): 9}, _DOMAINS, 1)
    one = [("d2.test", "a/*", "trap-similar-paths: 9")]
    assert [trap.pages for trap in trap_figures(one, pages)] == [4]
    assert [trap.pages for trap in trap_figures([*one, ("d2.test", "b/*", "trap-similar-paths: 9")], pages)] == [
        None,
        None,
    ]
