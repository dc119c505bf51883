"""The live figures."""

from __future__ import annotations

import os

from crawler.observe.alert_state import Alert, write_alerts
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


def test_a_comparison_of_a_run_with_itself_is_refused(fresh: Served) -> None:
    for query, status in (("run=1&against=1", 422), ("against=9", 404)):
        assert fresh.get(f"/api/graph?{query}", token=fresh.token(Role.USER)).status_code == status
