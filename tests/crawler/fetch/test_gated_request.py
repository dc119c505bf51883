"""One request through its gate, over a workspace in memory; a wire in memory stands for the network."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest
from msgspec.structs import replace

from crawler.fetch.domain_pace import DomainPace
from crawler.fetch.gated_request import BUSY_AGAIN_NS, GatedRequester, Later, Sent
from crawler.model.messages import Failure, Request, Response
from crawler.model.records import Closure, Exchange
from crawler.model.settings import Config, CrawlerSettings
from crawler.net.client import HttpClient
from crawler.pace.decisions import EntryRequest
from crawler.pace.gate_record import NO_MARK
from crawler.resilience.suspicion import Interval
from crawler.visit.flow import Refusal
from tests.crawler.pace.clocks import MS, Clock
from tests.crawler.workspace.memory_workspace import MemoryWorkspace

DELAY = 1000
CONFIG = Config(crawler=CrawlerSettings(minimum_time_on_page=DELAY, max_domain_requests=5))
GET = Request("GET", "https://www.a.test/page")
ELSEWHERE = Request("GET", "https://b.test/robots.txt")
WISH = EntryRequest(run=1, delay_ms=DELAY, limit=5)


class Wire:
    """Answers everything after 40 ms, and knows what the gates said meanwhile."""

    def __init__(self, workspace: MemoryWorkspace, clock: Clock) -> None:
        self.answer: Response | Failure | Exception = Response(200, {})
        self.sent: list[str] = []
        self.in_flight: list[int] = []
        self.told: list[dict[str, Any]] = []
        self.requester: GatedRequester | None = None
        self._workspace = workspace
        self._clock = clock

    def send(self, request: Request) -> Response | Failure:
        self.sent.append(request.url)
        domain = request.url.split("/")[2].removeprefix("www.")
        assert self._workspace.gate(domain, self._clock).read().is_in_flight, "counted before it leaves"
        assert self.requester is not None
        self.in_flight.append(self.requester.in_flight)
        self._clock.pass_ms(40)
        self.told = self.requester.on_the_wire(self._clock.now.mono_ns)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def workspace() -> MemoryWorkspace:
    return MemoryWorkspace()


@pytest.fixture
def wire(workspace: MemoryWorkspace, clock: Clock) -> Wire:
    return Wire(workspace, clock)


@pytest.fixture
def requester(workspace: MemoryWorkspace, clock: Clock, wire: Wire) -> GatedRequester:
    wire.requester = GatedRequester(CONFIG, workspace, cast(HttpClient, wire), clock)
    return wire.requester


@pytest.fixture
def pace(workspace: MemoryWorkspace, clock: Clock) -> DomainPace:
    pace = DomainPace("a.test", workspace.gate("a.test", clock))
    pace.begin_run(1, NO_MARK)
    return pace


def test_a_request_that_left_comes_back_with_its_ledger_entry(
    requester: GatedRequester, pace: DomainPace, clock: Clock, wire: Wire
) -> None:
    start = clock.now
    assert requester.try_send(pace, GET) == Sent(
        Response(200, {}),
        Exchange(start.wall_ms, start.mono_ns // MS, "GET", "www.a.test", 200, 40, "a.test", 1),
        Interval(start.mono_ns, start.mono_ns + 40 * MS),
    )
    assert (pace.sent, pace.gate.read().is_in_flight, pace.gate.read().ledgered) == (1, False, 0)
    assert (wire.in_flight, requester.in_flight) == ([1], 0)
    assert wire.told == [{"domain": "a.test", "method": "GET", "url": GET.url, "seconds": 0.0}]
    assert requester.on_the_wire(0) == []


def test_a_request_before_its_time_is_not_sent(
    requester: GatedRequester, pace: DomainPace, clock: Clock, wire: Wire
) -> None:
    assert requester.due_ns(pace, GET) == 0
    requester.try_send(pace, GET)
    due = clock.now.mono_ns + DELAY * MS
    assert requester.due_ns(pace, GET) == due
    assert requester.try_send(pace, GET) == Later(due)
    pace.learn_delay("www.a.test", 3000)
    assert requester.try_send(pace, GET) == Later(due + 2000 * MS), "the host's crawl delay counts"
    assert len(wire.sent) == 1


def test_a_busy_gate_is_tried_again_soon(
    requester: GatedRequester, pace: DomainPace, workspace: MemoryWorkspace, clock: Clock, wire: Wire
) -> None:
    workspace.gate("a.test", clock).try_enter(WISH)
    assert requester.try_send(pace, GET) == Later(clock.now.mono_ns + BUSY_AGAIN_NS)
    assert wire.sent == []


def test_a_closed_domain_refuses(requester: GatedRequester, pace: DomainPace, wire: Wire) -> None:
    pace.close(Closure("rate-limited", 3))
    assert requester.try_send(pace, GET) == Refusal(Closure("rate-limited", 3), is_own=True)
    assert wire.sent == []


def test_a_failure_is_in_the_ledger_by_its_slug(requester: GatedRequester, pace: DomainPace, wire: Wire) -> None:
    wire.answer = Failure("timeout", "no answer")
    outcome = requester.try_send(pace, GET)
    assert isinstance(outcome, Sent)
    assert (outcome.answer, outcome.entry.answer) == (wire.answer, "timeout")


def test_a_bug_in_the_client_is_a_failure_and_the_gate_is_free_again(
    requester: GatedRequester, pace: DomainPace, wire: Wire, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    wire.answer = ZeroDivisionError()
    with caplog.at_level(logging.ERROR):
        outcome = requester.try_send(pace, GET)
    assert isinstance(outcome, Sent)
    assert outcome.answer == Failure("bad-response", "internal error (ZeroDivisionError)")
    assert "internal error while requesting https://www.a.test/page" in caplog.text
    clock.pass_ms(DELAY)
    wire.answer = Response(200, {})
    assert isinstance(requester.try_send(pace, GET), Sent)


def test_a_request_to_another_domain_passes_that_domains_gate_and_is_ledgered_there(
    requester: GatedRequester, pace: DomainPace, workspace: MemoryWorkspace, clock: Clock
) -> None:
    outcome = requester.try_send(pace, ELSEWHERE)
    assert isinstance(outcome, Sent) and outcome.entry.domain == "b.test"
    other = workspace.gate("b.test", clock)
    assert (other.read().sent, other.read().ledgered, pace.sent) == (1, 1, 0)
    assert requester.due_ns(pace, ELSEWHERE) == 0, "its gate is not at hand"
    assert requester.try_send(pace, ELSEWHERE) == Later(clock.now.mono_ns + DELAY * MS)


@pytest.mark.parametrize(("limit", "is_closed"), [(5, True), (4, False)])
def test_another_domain_is_closed_only_if_the_present_config_would_close_it(
    requester: GatedRequester, pace: DomainPace, workspace: MemoryWorkspace, clock: Clock, limit: int, is_closed: bool
) -> None:
    closure = Closure("request-limit", 3, limit)
    other = workspace.gate("b.test", clock)
    other.update(1, lambda record: replace(record, sent=3, closes=closure))
    outcome = requester.try_send(pace, ELSEWHERE)
    assert outcome == Refusal(closure, is_own=False) if is_closed else isinstance(outcome, Sent)
