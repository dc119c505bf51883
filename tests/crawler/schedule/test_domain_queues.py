"""The queues of domains: who is served next, and what happens when pages are done."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.schedule.domain_queues import ActiveDomain, DomainQueues


def queues(window: int = 4, most_active: int = 2) -> DomainQueues:
    return DomainQueues(window, most_active)


def activate(made: DomainQueues, name: str, pages: dict[int, int]) -> ActiveDomain:
    """Make a domain active with these outstanding pages (page → window)."""
    made.take_from_line(name)
    domain = made.active[name] = ActiveDomain(name, 1, 0.0)
    for page, window in pages.items():
        domain.add(page, f"https://{name}/{page}", None)
        domain.windows.setdefault(window, set()).add(page)
    return domain


def test_a_new_domain_is_served_before_an_active_one_of_the_same_priority() -> None:
    made = queues()
    activate(made, "a.test", {1: 1}).has_more = False
    made.note_work("a.test", 1)
    made.note_work("b.test", 1)
    assert made.next_domain() == "b.test"


def test_without_a_free_place_only_active_domains_are_served() -> None:
    made = queues(most_active=1)
    activate(made, "a.test", {1: 1})
    made.note_work("b.test", 0)
    assert made.next_domain() is None
    made.note_work("a.test", 2)
    assert made.next_domain() is None, "a better one waits for the place"
    made.note_work("a.test", -1)
    assert made.next_domain() == "a.test"


def test_a_window_is_removed_with_its_last_page_and_the_domain_with_its_last_window() -> None:
    made = queues()
    domain = activate(made, "a.test", {1: 7, 2: 7, 3: 8})
    removed: list[tuple[str, int]] = []
    made.remove_done(domain, [1, 3], 5.0, lambda *window: removed.append(window))
    assert removed == [("a.test", 8)]
    assert (domain.outstanding.keys(), domain.last_progress) == ({2}, 5.0)
    made.remove_done(domain, [2], 6.0, lambda *window: removed.append(window))
    assert removed == [("a.test", 8), ("a.test", 7)]
    assert made.active == {}
    assert made.next_domain() == "a.test", "it may have more"


def test_a_domain_that_is_held_back_is_not_served_until_it_is_retried() -> None:
    made = queues()
    made.note_work("a.test", 1)
    made.take_from_line("a.test")
    made.hold_back("a.test", 10.0)
    assert made.next_domain() is None and not made.is_empty
    made.retry_due(9.0)
    assert made.next_domain() is None
    made.retry_due(10.0)
    assert made.next_domain() == "a.test"


def test_a_closed_domain_leaves_its_line() -> None:
    made = queues()
    made.note_work("a.test", 1)
    made.note_closed("a.test")
    assert made.next_domain() is None and made.is_empty


steps = st.lists(st.tuples(st.sampled_from(["work", "serve", "done", "hold"]), st.integers(0, 3)), max_size=60)


@settings(max_examples=200, deadline=None)
@given(steps=steps)
def test_no_domain_is_lost_and_no_more_are_active_than_allowed(steps: list[tuple[str, int]]) -> None:
    made = queues(window=2, most_active=2)
    with_work: set[str] = set()
    page = 0
    for action, number in steps:
        name = f"{number}.test"
        if action == "work":
            made.note_work(name, number)
            with_work.add(name)
        elif action == "serve" and (chosen := made.next_domain()) is not None:
            domain = made.take_from_line(chosen) or ActiveDomain(chosen, 1, 0.0)
            page += 1
            domain.add(page, "key", None)
            domain.windows[page] = {page}
            made.active[chosen] = domain
        elif action == "done" and (found := made.active.get(name)) is not None:
            made.remove_done(found, list(found.outstanding), 0.0, lambda *window: None)
        elif action == "hold" and name in made.waiting:
            made.take_from_line(name)
            made.hold_back(name, 0.0)
        assert len(made.active) <= 2
    made.retry_due(0.0)
    for name in with_work:
        assert name in made.active or name in made.waiting


def test_a_domain_whose_jobs_are_held_down_asks_for_more_when_half_of_those_are_done_or_better_ones_are_known() -> None:
    """Else each page that is done would be a window of one page."""
    made = queues(window=10)
    domain = activate(made, "a.test", {page: page for page in range(5)})
    domain.is_held_at = 5
    domain.has_more = True
    made.wanting_more.drop("a.test")
    made.remove_done(domain, [0, 1], 1.0, lambda name, number: None)
    assert not made.wanting_more
    made.remove_done(domain, [2], 1.0, lambda name, number: None)
    assert made.next_domain() == "a.test"
    made.take_from_line("a.test")
    domain.add(7, "page7", None)
    made.request_more(domain)
    assert not made.wanting_more
    made.note_work("a.test", 0)
    assert made.next_domain() == "a.test" and domain.is_held_at is None
