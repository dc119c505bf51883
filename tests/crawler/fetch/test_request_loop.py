"""The thread that works on due domains: real greenlets in a real hub, slots of a workspace in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from crawler.fetch.due_queue import DueQueue
from crawler.fetch.job_queue import JobQueue
from crawler.fetch.journal import JournalClosed
from crawler.fetch.leased_domain import LeasedDomain
from crawler.fetch.request_loop import SHARE_EVERY, STOP_GRACE, RequestLoop
from crawler.fetch.visit_in_progress import VisitInProgress
from crawler.model.messages import Request
from crawler.model.records import Exchange, Job
from crawler.net.hub import Hub
from crawler.visit.flow import Visit
from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.clock import read_clock
from crawler.workspace.log import BEGINNING
from tests.crawler.workspace.memory_workspace import MemoryWorkspace

LIMIT = 4
JOB = Job(1, "https://a.test/", "https://a.test/", "a.test")
REQUEST = Request("GET", JOB.wire)


class Bench:
    """A loop whose `advance` is the test's."""

    def __init__(self) -> None:
        self.workspace = MemoryWorkspace()
        self.hub = Hub()
        self.queue: DueQueue[LeasedDomain] = DueQueue(self.hub.wake)
        self.advance: Callable[[LeasedDomain], None] = lambda domain: None
        self.errors: list[Exception] = []
        self.has_failed = threading.Event()
        self.role = self.workspace.take_role("fetcher-01")
        self.loop = RequestLoop(
            self.workspace,
            "fetcher-01",
            1,
            LIMIT,
            self.queue,
            self.hub,
            lambda domain: self.advance(domain),
            self._give_up,
        )
        self._is_finished = False

    def _give_up(self, problem: Exception) -> None:
        self.errors.append(problem)
        self.has_failed.set()

    def domains(self, count: int) -> list[LeasedDomain]:
        made = []
        for number in range(count):
            name = f"d{number}.test"
            claim = self.workspace.claim(name)
            assert claim is not None
            gate = self.workspace.gate(name, read_clock)
            made.append(LeasedDomain(name, claim, gate, JobQueue(self.workspace.jobs(name)), Bookmark()))
        return made

    def finish(self) -> bool:
        self._is_finished = True
        return self.loop.finish(has_failed=bool(self.errors))

    def close(self) -> None:
        if not self._is_finished:
            self.finish()
        self.loop.close()
        self.hub.close()


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


def test_no_more_domains_are_worked_on_than_there_are_slots(bench: Bench) -> None:
    working, most = set[str](), []
    all_done, lock = threading.Event(), threading.Lock()
    left = {f"d{number}.test" for number in range(12)}

    def advance(domain: LeasedDomain) -> None:
        with lock:
            working.add(domain.name)
            most.append(len(working))
        bench.hub.run_in_thread(lambda: None)  # the others have their turn meanwhile
        with lock:
            working.discard(domain.name)
            left.discard(domain.name)
            if not left:
                all_done.set()

    bench.advance = advance
    bench.loop.share_slots(1.0)
    assert bench.loop.room == LIMIT
    bench.loop.start()
    for domain in bench.domains(12):
        bench.queue.push(domain, 0)
    assert all_done.wait(30)
    assert max(most) <= LIMIT
    assert bench.finish(), "nothing is left on the wire"


def test_slots_are_shared_with_other_fetchers_and_given_back_at_the_end(bench: Bench) -> None:
    bench.loop.share_slots(1.0)
    other = bench.workspace.take_role("fetcher-02")
    bench.loop.share_slots(1.0 + SHARE_EVERY / 2)
    assert bench.loop.room == LIMIT, "the share is not adjusted all the time"
    bench.loop.share_slots(1.0 + SHARE_EVERY)
    assert bench.loop.room == LIMIT // 2
    theirs = bench.workspace.slots(LIMIT)
    theirs.acquire(LIMIT)
    assert theirs.held == LIMIT // 2
    other.release()
    bench.loop.share_slots(2.0 + 2 * SHARE_EVERY)
    assert bench.loop.room == LIMIT // 2, "the other one still holds its slots"
    bench.loop.start()
    bench.finish()
    bench.loop.close()
    theirs.acquire(LIMIT)
    assert theirs.held == LIMIT


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), ZeroDivisionError()])
def test_an_error_in_a_domains_step_is_handed_to_the_process(bench: Bench, problem: Exception) -> None:
    def advance(domain: LeasedDomain) -> None:
        raise problem

    bench.advance = advance
    bench.loop.share_slots(1.0)
    bench.loop.start()
    bench.queue.push(bench.domains(1)[0], 0)
    assert bench.has_failed.wait(30)
    assert bench.errors == [problem]


def test_a_closed_journal_ends_a_step_quietly(bench: Bench) -> None:
    entered = threading.Event()

    def advance(domain: LeasedDomain) -> None:
        entered.set()
        raise JournalClosed

    bench.advance = advance
    bench.loop.share_slots(1.0)
    bench.loop.start()
    bench.queue.push(bench.domains(1)[0], 0)
    assert entered.wait(30)
    assert bench.finish()
    assert bench.errors == []


def no_visit() -> Visit:
    yield REQUEST
    raise AssertionError("the test's `advance` makes no steps")


def test_at_the_end_only_half_made_visits_that_are_due_soon_are_waited_for(bench: Bench) -> None:
    seen: list[str] = []
    bench.advance = lambda domain: seen.append(domain.name)
    bench.loop.share_slots(1.0)
    bench.loop.start()
    now = time.monotonic_ns()
    half_made, fresh, much_later = bench.domains(3)
    for domain, has_asked, due in ((half_made, True, 0.5), (fresh, False, 0.5), (much_later, True, 10 * STOP_GRACE)):
        domain.begin_visit(VisitInProgress(JOB, BEGINNING, no_visit()))
        assert domain.visit is not None
        domain.visit.wait_for(REQUEST)
        if has_asked:
            domain.visit.record(Exchange(0, 0, "HEAD", "a.test", 200, 1, "a.test"), is_robots=False)
        bench.queue.push(domain, now + int(due * 1e9))
    assert bench.finish()
    assert seen == [half_made.name]
