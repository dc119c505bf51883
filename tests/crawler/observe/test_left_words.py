"""What is left, in words: a range, what could make it longer, and the limits that end it earlier."""

from __future__ import annotations

from typing import Any

import pytest

from crawler.observe.left_words import left_facts, left_long, left_short
from crawler.observe.live_text import plain_line, view_lines
from crawler.observe.status import Status
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.runs import Run, RunStatus, write_run
from tests.crawler.observe.beats import beat, seen

LEFT = {"pages": 1240, "domains": 37, "least": 1500.0, "most": 11_400.0, "may_find_domains": True}


@pytest.fixture
def running(workspace: FileWorkspace) -> FileWorkspace:
    write_run(workspace, Run(3, RunStatus.RUNNING))
    beat(workspace, "scheduler", {"limits": {}})
    beat(workspace, "ingest", {"left": LEFT, "pages": 3})
    return workspace


def test_the_range_stands_in_the_live_view_in_a_pipe_and_in_the_status(running: FileWorkspace) -> None:
    facts = left_facts(seen(running))
    assert left_short(facts) == "25 min to 3.2 h left, longer with new domains"
    assert left_long(facts) == (
        "left: 1,240 pages in 37 domains, at least 25 min; if new pages use up the budgets there, 3.2 h;"
        " longer with new domains"
    )
    assert "25 min to 3.2 h left" in plain_line(seen(running), 1, 1, left_short(facts))
    for width in (60, 80, 120):
        lines = [line for line, _ in view_lines(seen(running), 1, 1, width, left_short(facts))]
        assert "  25 min to 3.2 h left, longer with new domains" in lines


@pytest.mark.parametrize(
    ("limits", "end"),
    [
        ({"seconds": 600}, "at least 10 min; if new pages use up the budgets there, 10 min; it ends earlier at"
         " max-duration in 10 min"),
        ({"pages": 12, "bytes": 5_000}, "longer with new domains; it ends earlier at max-pages in 12 pages or"
         " max-bytes in 5,000 bytes"),
        ({"domains": 2}, "longer with new domains; it ends earlier at max-domains in 2 domains"),
    ],
)  # fmt: skip
def test_limits_of_the_run_are_named(running: FileWorkspace, limits: dict[str, int], end: str) -> None:
    beat(running, "scheduler", {"limits": limits})
    assert left_long(left_facts(seen(running))).endswith(end)


@pytest.mark.parametrize("facts", [{}, {"left": None}, {"left": {**LEFT, "pages": 0}}])
def test_nothing_is_said_where_nothing_is_known_or_left(running: FileWorkspace, facts: dict[str, Any]) -> None:
    beat(running, "ingest", facts)
    found = left_facts(seen(running))
    assert left_short(found) == left_long(found) == ""


def test_a_run_that_is_over_has_nothing_left(running: FileWorkspace) -> None:
    write_run(running, Run(3, RunStatus.COMPLETED))
    assert left_facts(seen(running)) is None


def test_the_status_has_it_as_json_only_while_a_stage_runs(running: FileWorkspace) -> None:
    assert left_facts(seen(running)) == {
        "pages": 1240,
        "domains": 37,
        "seconds_least": 1500,
        "seconds_most": 11_400,
        "may_find_domains": True,
        "limits": {},
    }
    assert Status(running).as_json()["left"] is None, "no process holds a lock here"


def test_figures_of_the_run_before_are_not_shown_as_those_of_this_one(running: FileWorkspace) -> None:
    """The ingest's last heartbeat may be older than the run."""
    beat(running, "ingest", {"left": LEFT, "run": 2, "crawled": 120, "known": 2333, "frontier": 7})
    snapshot = seen(running)
    of_the_map = {name: value for name, value in snapshot.figures().items() if name != "in_flight"}
    assert set(of_the_map.values()) == {0} and left_facts(snapshot) is None
    beat(running, "ingest", {"left": LEFT, "run": 3, "crawled": 120})
    assert seen(running).figures()["crawled"] == 120
