"""A held domain: its turn among others, its idleness, and what becomes of it at a takeover and at its end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.fetch.job_queue import JobQueue
from crawler.fetch.leased_domain import Idleness, LeasedDomain
from crawler.model.records import Job
from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.clock import read_clock
from crawler.workspace.files.file_workspace import FileWorkspace


def lease(workspace: FileWorkspace, name: str = "a.test") -> LeasedDomain:
    claim = workspace.claim(name)
    assert claim is not None
    return LeasedDomain(name, claim, workspace.gate(name, read_clock), JobQueue(workspace.jobs(name)), Bookmark())


def test_a_domain_with_more_requests_waits_longer_but_not_without_bound(workspace: FileWorkspace) -> None:
    def handicap(name: str, requests: int) -> int:
        domain = lease(workspace, name)
        domain.pace.gate.update(1, lambda record: replace(record, sent=requests))
        found = domain.handicap()
        domain.close().release()
        return found

    assert handicap("a.test", 0) < handicap("a.test", 1) < handicap("a.test", 50)
    assert handicap("a.test", 50_000) == handicap("a.test", 5_000_000) < 3_000_000_000
    a_page_more = handicap("a.test", 2) - handicap("a.test", 0)
    alike = sorted(handicap(f"{number}.test", 10) for number in range(40))
    assert alike[-1] - alike[0] < a_page_more, "the number of requests decides"
    middle = (alike[0] + alike[-1]) / 2
    assert 10 < sum(each < middle for each in alike) < 30, "half are at a HEAD while half are at a GET"


def test_a_closed_domain_can_be_claimed_again(workspace: FileWorkspace) -> None:
    domain = lease(workspace)
    assert workspace.claim("a.test") is None
    domain.close().release()
    assert workspace.claim("a.test") is not None


def test_jobs_with_a_result_are_skipped_and_the_progress_starts_after_them(workspace: FileWorkspace) -> None:
    workspace.job_writer().write("a.test", [Job(1, f"https://a.test/{n}", "", "a.test") for n in range(4)])
    domain = lease(workspace)
    ends = [line.end for line in workspace.jobs("a.test")]
    domain.skip_done_jobs({(1, "https://a.test/1")})
    assert domain.progress.done == ends[1]
    assert domain.progress.synced == domain.progress.bookmark == Bookmark(), "the journal moves those"
    found = domain.jobs.next()
    assert found is not None and found[0].key == "https://a.test/2"
    domain.close().release()


# -- idleness -------------------------------------------------------------------------------------------------


def test_new_jobs_make_an_idle_domain_busy_once() -> None:
    idleness = Idleness()
    assert idleness.is_idle and idleness.is_at_rest()
    assert idleness.notify()
    assert not idleness.is_idle
    assert not idleness.notify(), "somebody works on it already"


def test_jobs_that_are_announced_while_it_works_are_looked_for_before_it_rests() -> None:
    idleness = Idleness()
    idleness.notify()
    idleness.notify()
    assert not idleness.try_rest(1.0, is_ending=False)
    assert idleness.try_rest(2.0, is_ending=False)
    assert idleness.is_at_rest()


def test_at_the_end_of_the_process_it_rests_with_announced_jobs_left() -> None:
    idleness = Idleness()
    idleness.notify()
    idleness.notify()
    assert idleness.try_rest(1.0, is_ending=True)
    assert idleness.is_idle and not idleness.is_at_rest()


def test_it_knows_since_when_it_is_idle() -> None:
    idleness = Idleness()
    idleness.notify()
    assert not idleness.has_lasted_since(9.0)
    idleness.try_rest(5.0, is_ending=False)
    assert idleness.has_lasted_since(5.0) and not idleness.has_lasted_since(4.9)


@given(st.lists(st.booleans(), max_size=30))
def test_no_announcement_is_lost_whenever_it_comes(events: list[bool]) -> None:
    """True: jobs are announced; False: the worker has found no more jobs. Every announcement is followed by a look."""
    idleness = Idleness()
    is_working, unseen = False, False
    for is_announced in events:
        if is_announced:
            unseen = True
            if idleness.notify():
                assert not is_working
                is_working, unseen = True, False  # it looks now
        elif is_working:
            if idleness.try_rest(0.0, is_ending=False):
                assert not unseen
                is_working = False
            else:
                assert unseen
                unseen = False  # it looks again
        assert idleness.is_idle is not is_working
