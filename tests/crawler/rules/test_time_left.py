"""How long the rest of a run may take: a range that grows with the work and never turns round."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawler.model.settings import CrawlerSettings
from crawler.rules.time_left import DomainLeft, work_left

SETTINGS = CrawlerSettings(minimum_time_on_page=1000, max_domain_requests=100, max_active_domains=2, max_depth=0)


def test_the_slowest_domain_and_the_budgets_make_the_range() -> None:
    left = work_left([DomainLeft(5, 20, True), DomainLeft(1, 0, True, crawl_delay=30.0)], SETTINGS)
    assert (left.pages, left.domains) == (6, 2)
    assert left.least == 60.0, "HEAD and GET of one page, 30 s apart"
    assert left.most == 3000.0, "100 requests, 30 s apart"
    assert not left.may_find_domains


def test_more_domains_than_may_be_active_take_turns() -> None:
    left = work_left([DomainLeft(5, 0, True)] * 8, SETTINGS)
    assert (left.least, left.most) == (8 * 10 / 2, 8 * 100 / 2)


def test_a_budget_bounds_what_waiting_pages_can_take() -> None:
    left = work_left([DomainLeft(5000, 90, True)], SETTINGS)
    assert left.least == left.most == 10.0


def test_other_domains_have_their_own_budget() -> None:
    settings = CrawlerSettings(max_domain_requests=100, discovered_domain_requests=20, head_requests="never")
    left = work_left([DomainLeft(50, 5, False)], settings)
    assert left.least == left.most == 15.0 and left.may_find_domains


def test_nothing_left_takes_no_time() -> None:
    assert work_left([], SETTINGS).most == 0.0


DOMAINS = st.lists(
    st.builds(
        DomainLeft,
        st.integers(1, 1000),
        st.integers(0, 200),
        st.booleans(),
        st.none() | st.floats(0, 100),
    ),
    max_size=6,
)


@given(DOMAINS, st.builds(DomainLeft, st.integers(1, 1000), st.integers(0, 200), st.booleans()))
def test_one_more_domain_never_makes_it_shorter(domains: list[DomainLeft], one: DomainLeft) -> None:
    before, after = work_left(domains, SETTINGS), work_left([*domains, one], SETTINGS)
    assert 0 <= before.least <= before.most and 0 <= after.least <= after.most
    if len(domains) >= SETTINGS.max_active_domains:
        assert before.least <= after.least + 1e-6 and before.most <= after.most + 1e-6
