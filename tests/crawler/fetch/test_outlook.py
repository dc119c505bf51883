"""Failures that may be ours: held back, made again, or believed; over a wire in memory."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from crawler.fetch.outlook import Outlook
from crawler.model.messages import Failure, Response
from crawler.model.records import NETWORK_OUTAGE, PageResult, RobotsResult
from crawler.resilience import network_state
from crawler.resilience.network_state import NetworkState
from crawler.workspace.clock import boot_id
from tests.crawler.fetch.test_domain_worker import Bench

DEAD = Failure("connection-refused", "nobody listens")
LATER_NS = 10_000_000_000


class SupervisedBench(Bench):
    """A worker whose questions the test answers."""

    def __init__(self) -> None:
        super().__init__()
        self.outlook = Outlook(self.workspace, 5, is_supervised=True)
        self.worker._outlook = self.outlook

    def tell(self, **members: object) -> None:
        state = NetworkState(boot=boot_id(), **members)  # type: ignore[arg-type]
        self.workspace.write_document(network_state.DOCUMENT, network_state.dump(state))
        self.outlook.refresh()

    def prove(self) -> None:
        self.tell(proof_ns=time.monotonic_ns())

    def work_on(self) -> None:
        """Advance the domain once, however long it wanted to wait."""
        assert self.domain.visit is not None
        self.queue.clear()
        self.queue.push(self.domain, 0)
        self.work()

    def past_witnesses(self) -> None:
        """As if the failure had been a while ago."""
        visit = self.domain.visit
        assert visit is not None and visit.last_failure is not None
        visit.failures = [failed._replace(start=failed.start - LATER_NS) for failed in visit.failures]
        visit.last_failure = visit.last_failure._replace(
            start=visit.last_failure.start - LATER_NS, end=visit.last_failure.end - LATER_NS
        )


@pytest.fixture
def bench() -> Iterator[SupervisedBench]:
    made = SupervisedBench()
    yield made
    made.close()


def robots(bench: Bench) -> list[RobotsResult]:
    return [record for record in bench.records() if isinstance(record, RobotsResult)]


def test_a_failure_that_may_be_ours_is_not_recorded_and_its_job_not_passed(bench: SupervisedBench) -> None:
    bench.wire.answers["/one"] = DEAD
    bench.release("one", "two")
    bench.work()
    assert bench.pages() == [] and len(robots(bench)) == 1
    assert bench.outlook.facts()["withheld"] == 1
    assert bench.domain.progress.done < bench.jobs_end()
    assert len(bench.queue) == 1, "the domain waits"
    bench.past_witnesses()
    bench.work_on()
    assert bench.outlook.asked_ns > 0 and bench.outlook.has_news() and not bench.outlook.has_news()


def test_it_is_made_again_once_the_network_is_proved_and_believed_after_that(bench: SupervisedBench) -> None:
    bench.wire.answers["/one"] = DEAD
    bench.release("one")
    bench.work()
    bench.prove()
    bench.work_on()
    assert bench.wire.sent.count("HEAD /one") == 2 and bench.pages() == []
    bench.prove()
    bench.work_on()
    (page,) = bench.pages()
    assert (page.state, page.error) == ("unreachable", "connection-refused: nobody listens")
    assert [entry.answer for entry in page.ledger] == ["connection-refused"] * 2
    record = bench.domain.pace.gate.read()
    assert record.sent == 3, "robots.txt and both visits count"
    assert bench.outlook.facts()["withheld"] == 0


def test_a_visit_that_failed_in_an_outage_costs_no_budget_and_is_one_visit(bench: SupervisedBench) -> None:
    before = time.monotonic_ns()
    bench.wire.answers["/one"] = DEAD
    bench.release("one")
    bench.work()
    bench.tell(is_waiting=True)
    bench.work_on()
    assert bench.wire.sent.count("HEAD /one") == 1
    del bench.wire.answers["/one"]
    now = time.monotonic_ns()
    bench.tell(out_from_ns=before, out_until_ns=now, proof_ns=now)
    bench.work_on()
    (page,) = bench.pages()
    assert (page.state, page.error) == ("processed", None)
    assert [entry.answer for entry in page.ledger] == [NETWORK_OUTAGE, 200, 200]
    bench.domain.pace.flush()
    record = bench.domain.pace.gate.read()
    assert (record.sent, record.ledgered) == (3, 3), "robots.txt, HEAD and GET"


def test_a_robots_txt_that_an_outage_hid_is_not_recorded_as_unreachable(bench: SupervisedBench) -> None:
    before = time.monotonic_ns()
    bench.wire.send, send = lambda request: DEAD, bench.wire.send  # type: ignore[method-assign]
    bench.release("one")
    bench.work()
    assert bench.records() == []
    bench.wire.send = send  # type: ignore[method-assign]
    now = time.monotonic_ns()
    bench.tell(out_from_ns=before, out_until_ns=now, proof_ns=now)
    bench.work_on()
    assert [result.outcome for result in robots(bench)] == ["allow-all"]
    assert [page.state for page in bench.pages()] == ["processed"]


def test_a_robots_txt_that_is_really_not_to_be_had_is_recorded(bench: SupervisedBench) -> None:
    bench.wire.send = lambda request: DEAD  # type: ignore[method-assign]
    bench.release("one", "two")
    bench.work()
    for _ in range(2):
        bench.prove()
        bench.work_on()
    assert [result.outcome for result in robots(bench)] == ["unreachable"]
    assert [page.state for page in bench.pages()] == ["unreachable", "unreachable"]


def test_a_retry_that_pauses_is_begun_again_after_an_outage(bench: SupervisedBench) -> None:
    before = time.monotonic_ns()
    bench.wire.answers["/one"] = Failure("timeout", "no answer")
    bench.release("one")
    bench.work()
    assert bench.domain.visit is not None and bench.domain.visit.withheld is None, "it pauses before its first retry"
    del bench.wire.answers["/one"]
    bench.domain.pace.gate.update(1, lambda record: replace(record, pause_ms=0))  # as if it had passed
    now = time.monotonic_ns()
    bench.tell(out_from_ns=before, out_until_ns=now, proof_ns=now)
    bench.work_on()
    (page,) = bench.pages()
    assert (page.state, page.retries) == ("processed", 0)


def test_while_many_fail_or_the_network_is_out_no_request_leaves(bench: SupervisedBench) -> None:
    bench.release("one")
    bench.tell(is_waiting=True)
    bench.work()
    assert bench.wire.sent == [] and bench.queue.is_held


def test_a_fetcher_that_nobody_supervises_believes_every_failure() -> None:
    bench = Bench()
    bench.wire.answers["/one"] = DEAD
    bench.release("one")
    bench.work()
    assert [page.state for page in bench.pages()] == ["unreachable"]
    bench.close()


def test_answers_of_the_server_are_never_withheld(bench: SupervisedBench) -> None:
    bench.wire.answers["/one"] = Response(404, {})
    bench.release("one")
    bench.work()
    assert [page.state for page in bench.pages()] == ["dead_link"]
    assert all(isinstance(record, (PageResult, RobotsResult)) for record in bench.records())
