"""The live figures."""

from __future__ import annotations

import os

import orjson

from crawler.observe.alert_state import Alert, write_alerts
from crawler.workspace.clock import now_text
from reporter.web.live_figures import memory_of
from reporter.web.routing import Role
from tests.reporter.web.serving import Served


def test_the_memory_of_a_process_is_known_and_that_of_none_is_not() -> None:
    found = memory_of(os.getpid())
    assert found is None or found > 1_000_000
    assert memory_of(None) is None and memory_of(2**30) is None


def test_alerts_that_are_raised_come_with_the_figures(fresh: Served) -> None:
    fresh.face.workspace.prepare()
    write_alerts(fresh.face.workspace, [Alert("stall", "nothing came in for 10 minutes", "2026-01-01T00:00:00Z")])
    found = fresh.get("/api/live", token=fresh.token(Role.USER)).json()
    assert [alert["name"] for alert in found["alerts"]] == ["stall"]


def test_requests_on_the_wire_come_with_the_figures(fresh: Served) -> None:
    workspace = fresh.face.workspace
    workspace.prepare()
    request = {"domain": "q.test", "method": "GET", "url": "https://q.test/", "seconds": 0.5}
    beat = {"name": "fetcher-01", "at": now_text(), "doing": "running", "facts": {"on_the_wire": [request]}}
    workspace.beat("fetcher-01", orjson.dumps(beat))
    role = workspace.take_role("fetcher-01")
    try:
        found = fresh.get("/api/live", token=fresh.token(Role.USER)).json()["on_the_wire"]
    finally:
        role.release()
    assert [(each["method"], each["url"]) for each in found] == [("GET", "https://q.test/")]


def test_a_comparison_of_a_run_with_itself_is_refused(fresh: Served) -> None:
    for query, status in (("run=1&against=1", 422), ("against=9", 404)):
        assert fresh.get(f"/api/graph?{query}", token=fresh.token(Role.USER)).status_code == status
