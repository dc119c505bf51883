"""A visit under way: its pending request and its ledgers."""

from __future__ import annotations

import pytest

from crawler.fetch.visit_in_progress import VisitInProgress
from crawler.model.messages import Request, Response
from crawler.model.records import Exchange, Job, PageResult
from crawler.visit.flow import Reply, Visit
from crawler.workspace.log import Cursor

JOB = Job(1, "https://a.test/", "https://a.test/", "a.test")
RESULT = PageResult(1, JOB.key, JOB.wire, JOB.domain, "", "processed")
HEAD = Request("HEAD", JOB.wire)


def entry(number: int) -> Exchange:
    return Exchange(0, number, "GET", "a.test", 200, 1, "a.test")


def one_request(seen: list[Reply]) -> Visit:
    seen.append((yield HEAD))
    return RESULT


def test_a_visit_is_half_made_between_its_requests_only() -> None:
    seen: list[Reply] = []
    current = VisitInProgress(JOB, Cursor(1, 9), one_request(seen))
    assert not current.is_half_made
    assert current.step(None) == HEAD
    current.wait_for(HEAD)
    assert not current.is_half_made, "nothing was sent yet"
    current.record(entry(1), is_robots=False)
    assert current.is_half_made
    current.wait_for(None)
    assert not current.is_half_made, "a pause is not waited for at the end"
    answer = Response(200, {})
    with pytest.raises(StopIteration) as end:
        current.step(answer)
    assert (end.value.value, seen) == (RESULT, [answer])


def test_every_entry_is_in_one_ledger() -> None:
    current = VisitInProgress(JOB, Cursor(1, 9), one_request([]))
    current.record(entry(1), is_robots=True)
    current.record(entry(2), is_robots=True)
    assert current.pop_robots_ledger() == (entry(1), entry(2))
    assert current.pop_robots_ledger() == ()
    current.record(entry(3), is_robots=False)
    current.record(entry(4), is_robots=True)  # a robots.txt whose result was never written
    current.record(entry(5), is_robots=False)
    assert current.ledger() == (entry(4), entry(3), entry(5))
