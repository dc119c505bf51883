"""One domain from job to job, over a workspace in memory; a wire in memory stands for the network."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import cast

import pytest
from msgspec.structs import replace

from crawler.fetch.domain_worker import Counts, DomainWorker
from crawler.fetch.due_queue import DueQueue
from crawler.fetch.gated_request import GatedRequester
from crawler.fetch.job_queue import JobQueue
from crawler.fetch.journal import Journal
from crawler.fetch.leased_domain import LeasedDomain
from crawler.model.messages import Failure, Request, Response
from crawler.model.records import Closure, DomainEvent, Job, PageResult, RobotsResult
from crawler.model.settings import Config, CrawlerSettings, QualityEntry, ScopeSettings, ValidationSettings
from crawler.net.client import HttpClient
from crawler.net.hub import Hub
from crawler.pace.breaker import Breaker, BreakerState
from crawler.workspace.clock import read_clock
from crawler.workspace.control import StageControl
from crawler.workspace.log import BEGINNING
from crawler.workspace.reading import read_records
from crawler.workspace.runs import Run, RunStatus, RunWatch, write_run
from tests.crawler.workspace.memory_workspace import MemoryLog, MemoryWorkspace

HTML = {"content-type": "text/html"}


class Wire:
    """A site of small pages without a robots.txt."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.answers: dict[str, Response | Failure] = {}

    def send(self, request: Request) -> Response | Failure:
        path = "/" + request.url.split("/", 3)[3]
        self.sent.append(f"{request.method} {path}")
        if path == "/robots.txt":
            return Response(404, {})
        return self.answers.get(path, Response(200, HTML, b"<title>x</title>" if request.method == "GET" else b""))


class Bench:
    """A worker, its queue and one held domain, driven by hand."""

    def __init__(self, **crawler: object) -> None:
        settings = CrawlerSettings(minimum_time_on_page=0, **crawler)  # type: ignore[arg-type]
        self.config = Config(crawler=settings)
        self.workspace = MemoryWorkspace()
        self.workspace.prepare()
        self.wire = Wire()
        self.hub = Hub()
        self.counts = Counts()
        self.control = StageControl(self.workspace, "fetcher", "fetcher-01")
        self.queue: DueQueue[LeasedDomain] = DueQueue(lambda: None)
        self.journal = Journal(self.workspace, "fetcher-01", 1, 1 << 20, lambda: None)
        self.begin_run(1)
        self.domain = self.claim()

    def begin_run(self, number: int) -> None:
        write_run(self.workspace, Run(number, RunStatus.RUNNING))
        runs = RunWatch(self.workspace)
        runs.refresh()
        requester = GatedRequester(self.config, self.workspace, cast(HttpClient, self.wire), read_clock)
        self.worker = DomainWorker(
            self.config, self.control, runs, self.journal, requester, self.queue, self.hub, self.counts, read_clock
        )

    def claim(self) -> LeasedDomain:
        claim = self.workspace.claim("a.test")
        assert claim is not None
        self.workspace.job_logs.setdefault("a.test", MemoryLog())
        gate = self.workspace.gate("a.test", read_clock)
        domain = LeasedDomain(
            "a.test", claim, gate, JobQueue(self.workspace.jobs("a.test")), self.workspace.bookmark("a.test")
        )
        gate.update(gate.read().run, lambda record: record)
        domain.pace.restore()  # as after a takeover
        return domain

    def release(self, *paths: str, run: int = 1) -> None:
        jobs = [Job(run, f"https://a.test/{path}", f"https://a.test/{path}", "a.test") for path in paths]
        self.workspace.job_writer().write("a.test", jobs)
        self.worker.notify_new_jobs(self.domain)

    def work(self) -> None:
        """Advance the domain for as long as it is due."""
        while (domain := self.queue.take()) is not None:
            self.worker.advance(domain)
            self.queue.done()

    def records(self) -> list[PageResult | RobotsResult | DomainEvent]:
        reader = self.workspace.results.reader("fetcher-01")
        return [record for record, _ in read_records(reader, PageResult, RobotsResult, DomainEvent)]

    def pages(self) -> list[PageResult]:
        return [record for record in self.records() if isinstance(record, PageResult)]

    def jobs_end(self) -> object:
        return [line.end for line in self.workspace.jobs("a.test")][-1]

    def close(self) -> None:
        self.journal.close()
        self.control.close()
        self.hub.close()


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


def test_jobs_become_results_with_every_request_in_one_ledger(bench: Bench) -> None:
    bench.release("one", "two")
    bench.work()
    assert bench.wire.sent == ["GET /robots.txt", "HEAD /one", "GET /one", "HEAD /two", "GET /two"]
    robots, one, two = bench.records()
    assert isinstance(robots, RobotsResult) and isinstance(one, PageResult) and isinstance(two, PageResult)
    assert [len(record.ledger) for record in (robots, one, two)] == [1, 2, 2]
    assert (one.key, two.key, one.state) == ("https://a.test/one", "https://a.test/two", "processed")
    assert bench.counts == Counts(pages=2, requests=5, errors=0)
    assert bench.domain.progress.done == bench.jobs_end()
    assert bench.domain.idleness.is_at_rest()
    assert bench.domain.pace.flush()
    record = bench.domain.pace.gate.read()
    assert (record.sent, record.ledgered) == (5, 5)


def test_an_idle_domain_goes_on_when_new_jobs_are_announced(bench: Bench) -> None:
    bench.release("one")
    bench.work()
    bench.release("two")
    assert not bench.domain.idleness.is_idle
    bench.work()
    assert [page.key for page in bench.pages()] == ["https://a.test/one", "https://a.test/two"]


def test_a_job_that_was_written_twice_is_done_once(bench: Bench) -> None:
    bench.release("one", "one", "two", "one")
    bench.work()
    assert [page.key for page in bench.pages()] == ["https://a.test/one", "https://a.test/two"]
    assert bench.domain.progress.done == bench.jobs_end()


def test_jobs_of_an_earlier_run_are_skipped(bench: Bench) -> None:
    bench.begin_run(2)
    bench.release("old", run=1)
    bench.release("new", run=2)
    bench.work()
    assert [page.key for page in bench.pages()] == ["https://a.test/new"]


def test_jobs_that_are_out_of_scope_by_now_are_skipped_without_a_request_or_a_result() -> None:
    entry = QualityEntry("a.test", ("https://a.test/",), scope=ScopeSettings(deny=("/b$",)))
    bench = Bench()
    bench.config = dataclasses.replace(bench.config, scope=ScopeSettings(deny=("/old/",)), quality=(entry,))
    bench.begin_run(1)
    bench.release("old/1", "a", "b", "old/2")
    bench.work()
    assert bench.wire.sent == ["GET /robots.txt", "HEAD /a", "GET /a"]
    assert [page.key for page in bench.pages()] == ["https://a.test/a"]
    assert bench.domain.progress.done == bench.jobs_end()
    assert bench.domain.idleness.is_idle
    bench.close()


def test_a_closure_skips_the_jobs_after_it_and_is_in_the_gate(bench: Bench) -> None:
    bench.wire.answers["/limited"] = Response(429, {})
    bench.release("limited", "one", "two")
    bench.work()
    (page,) = bench.pages()
    assert page.closes == Closure("rate-limited", 2)
    assert bench.domain.pace.gate.read().closes == page.closes
    assert bench.domain.progress.done == bench.jobs_end()


def test_a_closure_of_an_earlier_process_is_reported_once_for_all_jobs_that_it_skips(bench: Bench) -> None:
    bench.domain.pace.begin_run(1, bench.journal.mark())
    bench.domain.pace.close(Closure("rate-limited", 7))
    bench.domain.close().release()
    bench.domain = bench.claim()
    bench.release("one", "two")
    bench.work()
    (event,) = bench.records()
    assert isinstance(event, DomainEvent)
    assert (event.event, event.run, event.closes) == ("closed", 1, Closure("rate-limited", 7))
    assert bench.wire.sent == []


def test_failures_in_a_row_open_the_breaker_and_the_domain_rests_with_its_jobs(bench: Bench) -> None:
    """Kept in the gate and in the journal; the job that it holds back is still to be done."""
    bench.wire.answers = {f"/{number}": Response(403, {}) for number in range(9)}
    bench.release(*"012345")
    bench.work()
    assert [page.key[-1] for page in bench.pages()] == list("01234")
    (event,) = [record for record in bench.records() if isinstance(record, DomainEvent)]
    assert (event.event, event.count) == ("breaker-open", 1)
    assert event.detail == "5 visits in a row failed, the last with http-403; the next one in 60 s"
    kept = bench.domain.pace.gate.read().breaker
    assert (kept.is_open, kept.failures) == (True, 5)
    assert bench.domain.idleness.is_idle and len(bench.queue) == 0
    assert bench.domain.progress.done < bench.jobs_end()


def test_pages_that_answer_429_after_their_pause_open_the_breaker_where_429s_are_waited_out() -> None:
    bench = Bench(on_429="wait")
    bench.wire.answers = {f"/{number}": Response(429, {"retry-after": "0"}) for number in range(9)}
    bench.release(*"012345")
    bench.work()
    assert [(page.key[-1], page.state, page.closes) for page in bench.pages()] == [
        (number, "rate_limited", None) for number in "01234"
    ]
    assert [sent for sent in bench.wire.sent if sent.endswith("/0")] == ["HEAD /0", "HEAD /0"]
    (event,) = [record for record in bench.records() if isinstance(record, DomainEvent)]
    assert (event.event, event.detail.split(";")[0]) == (
        "breaker-open",
        "5 visits in a row failed, the last with http-429",
    )
    assert bench.domain.pace.gate.read().closes is None
    bench.close()


def test_challenges_open_the_breaker_whatever_their_status(bench: Bench) -> None:
    challenge = Response(200, {"content-type": "text/html", "cf-mitigated": "challenge"}, b"<title>Wait</title>")
    bench.wire.answers = {f"/{number}": challenge for number in range(9)}
    bench.release(*"012345")
    bench.work()
    assert {page.validation for page in bench.pages()} == {"hard"} and len(bench.pages()) == 5
    (event,) = [record for record in bench.records() if isinstance(record, DomainEvent)]
    assert (event.event, event.detail) == (
        "breaker-open",
        "5 visits in a row failed, the last with hard; the next one in 60 s",
    )


def test_a_domain_is_asked_for_one_missing_page_with_get_if_its_404_is_to_be_learned(bench: Bench) -> None:
    bench.wire.answers = dict.fromkeys(("/0", "/1", "/2"), Response(404, {"content-type": "text/html"}))
    bench.config = Config(crawler=bench.config.crawler, validation=ValidationSettings(learn_404=True))
    bench.begin_run(1)
    bench.release(*"012")
    bench.work()
    assert bench.wire.sent[1:] == ["HEAD /0", "GET /0", "HEAD /1", "HEAD /2"]


def test_trials_after_the_cooldown_close_the_breaker(bench: Bench) -> None:
    bench.wire.answers = {f"/{number}": Response(503, {}) for number in range(5)}
    opened = Breaker(BreakerState.OPEN, 5, 0, 1, 1, 1000, time.monotonic_ns() - 2_000_000_000)
    bench.domain.pace.gate.update(1, lambda record: replace(record, ended=read_clock(), breaker=opened))
    bench.domain.pace.restore()
    bench.release("a", "b", "c")
    bench.work()
    events = [record for record in bench.records() if isinstance(record, DomainEvent)]
    assert [(event.event, event.count) for event in events] == [("breaker-half-open", 2), ("breaker-closed", 3)]
    assert bench.domain.pace.gate.read().breaker == Breaker(changes=3)
    assert len(bench.pages()) == 3
    kinds = [record.kind for record in bench.records()]
    assert kinds[:2] == ["domain", "robots"], "the change is recorded before the request that it allows"


def test_a_bug_costs_a_page_and_not_the_crawl(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    import crawler.visit.flow

    def fail(*_: object, **__: object) -> object:
        raise ZeroDivisionError

    bench.wire.answers["/fine"] = Response(404, {})
    monkeypatch.setattr(crawler.visit.flow, "read", fail)
    bench.release("broken", "fine")
    bench.work()
    assert [(page.state, page.error) for page in bench.pages()] == [
        ("failed", "internal-error: ZeroDivisionError"),
        ("dead_link", "http-404"),
    ]
    assert len(bench.pages()[0].ledger) == 2, "its requests are in the ledger all the same"
    assert bench.counts.errors == 2


def test_a_pause_is_kept_in_the_gate_and_the_domain_waits_in_the_queue() -> None:
    bench = Bench(retry_delay=60_000)
    bench.wire.answers["/busy"] = Response(503, {})
    bench.release("busy")
    bench.work()
    record = bench.domain.pace.gate.read()
    assert (record.pause_ms, record.retry_counts.retries) == (60_000, 1)
    first = bench.queue.first()
    assert first is not None and first[1] is bench.domain
    assert 50e9 < first[0] - time.monotonic_ns() <= 60e9
    assert not bench.domain.is_half_made and bench.pages() == []
    bench.close()


def test_a_paused_stage_sends_nothing_and_holds_the_queue(bench: Bench) -> None:
    bench.release("one")
    domain = bench.queue.take()
    assert domain is bench.domain
    bench.worker.advance(domain)  # its first wish
    bench.workspace.set_flag("pause")
    domain = bench.queue.take()
    assert domain is bench.domain
    bench.worker.advance(domain)
    assert bench.queue.is_held and bench.wire.sent == []
    assert len(bench.queue) == 1


def test_a_domain_rests_with_jobs_left_when_the_queue_is_ending(bench: Bench) -> None:
    bench.queue.end(lambda domain, due: False)
    bench.release("one")
    assert bench.domain.idleness.is_idle and len(bench.queue) == 0
    assert bench.domain.progress.done == BEGINNING
