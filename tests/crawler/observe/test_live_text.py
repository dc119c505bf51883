"""The words of the live view."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.observe.live_text import Rate, duration, plain_line, view_lines
from crawler.observe.processes import observe
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.runs import Run, RunStatus, write_run
from tests.crawler.observe.beats import NOW, beat, seen


def test_a_plain_line_holds_all_the_facts(workspace: FileWorkspace) -> None:
    assert plain_line(seen(workspace), 12.34, 83) == (
        "run #3 · 1,200 pages crawled (12.3/s) · 1 failed · 4,321 waiting · 7 in flight · 5,678 known · 1:23"
    )


def test_the_view_shows_every_stage(workspace: FileWorkspace) -> None:
    text = "\n".join(line for line, _ in view_lines(seen(workspace), 12.34, 83))
    assert "1,200 pages crawled" in text and "12.3 pages/s" in text
    assert "4,321 waiting" in text and "7 in flight" in text and "1 failed" in text
    assert "scheduler  running, 4 domains active, 12,000 waiting" in text
    assert "fetchers   2 running, 1,000 requests" in text
    assert "ingest     running, 2 KiB to apply" in text


@pytest.mark.parametrize("width", [30, 60, 80, 120])
def test_the_view_uses_the_columns_that_there_are_and_no_more(workspace: FileWorkspace, width: int) -> None:
    lines = [line for line, _ in view_lines(seen(workspace), 12.34, 83, width)]
    assert len(lines[0]) == width and lines[0].endswith("1:23"), "the clock stands at the right edge"
    huge = {
        "crawled": 10**12,
        "known": 10**12,
        "links": 10**14,
        "frontier": 10**12,
        "errors": 10**12,
        "backlog": 10**15,
    }
    beat(workspace, "ingest", huge)
    beat(workspace, "fetcher-01", {"next_due": {"domain": "x" * 250, "seconds": 0.1}})
    beat(workspace, "fetcher-02", {})
    beat(workspace, "scheduler", {}, age=500)
    for flag in (None, "scheduler", "fetcher", "ingest"):
        workspace.layout.flag("pause", flag).touch()
        assert all(len(line) <= width for line, _ in view_lines(seen(workspace), 10**9, 10**9, width))


def test_a_stage_without_a_heartbeat_is_not_running(workspace: FileWorkspace) -> None:
    beat(workspace, "ingest", {}, age=60)
    assert ("  ingest     not running", "red") in view_lines(seen(workspace), 0, 0)


def test_stages_that_ended_with_their_run_are_no_alarm(workspace: FileWorkspace) -> None:
    beat(workspace, "ingest", {}, doing="stopped")
    write_run(workspace, Run(3, RunStatus.COMPLETED))
    assert ("  ingest     ended", "dim") in view_lines(seen(workspace), 0, 0)


def test_one_is_not_many_and_before_the_second_value_there_is_no_rate(workspace: FileWorkspace) -> None:
    beat(workspace, "scheduler", {"active_domains": 1, "waiting_domains": 0})
    text = "\n".join(line for line, _ in view_lines(seen(workspace), None, 83))
    assert "1 domain active" in text and "pages/s" not in text
    assert plain_line(seen(workspace), None, 83).startswith("run #3 · 1,200 pages crawled · 1 failed · 4,321 waiting")


def test_a_pause_is_shown_with_the_command_that_ends_it(workspace: FileWorkspace) -> None:
    workspace.layout.flag("pause", "fetcher").touch()
    assert plain_line(seen(workspace), 0, 0).endswith("paused by pause.fetcher (sumi-ripple resume)")
    assert view_lines(seen(workspace), 0, 0)[-1][0] == "  paused by pause.fetcher (sumi-ripple resume)"


def test_while_nothing_is_in_flight_the_next_domain_is_named(workspace: FileWorkspace) -> None:
    for name, domain, seconds in (("fetcher-01", "b.test", 2.5), ("fetcher-02", "a.test", 0.5)):
        beat(workspace, name, {"in_flight": 0, "next_due": {"domain": domain, "seconds": seconds}})
    assert view_lines(seen(workspace), 0, 0)[-1][0] == "  next request: a.test in 0.5 s"


def test_before_the_first_heartbeat_there_is_something_to_show(tmp_path: Path) -> None:
    empty = observe(FileWorkspace(tmp_path / "nowhere"), NOW)
    assert plain_line(empty, 0, 0).startswith("starting · 0 pages crawled")
    lines = view_lines(empty, 0, 0)
    assert [line for line in lines if "starting" in line[0]][1:] == [
        ("  scheduler  starting", "dim"),
        ("  fetchers   starting", "dim"),
        ("  ingest     starting", "dim"),
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (42.9, "0:42"), (723, "12:03"), (11_275, "3:07:55"), (184_075, "2d 3:07:55"), (-1, "0:00")],
)
def test_durations_read_like_a_clock(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_rate_is_over_the_last_seconds_and_starts_again_with_another_map() -> None:
    rate = Rate()
    assert rate.update(0, 100) is None, "one value gives no rate"
    assert rate.update(10, 200) == 10
    for second in range(11, 60):
        last = rate.update(second, 200)
    assert last == 0
    assert rate.update(60, 5) is None
    assert rate.update(61, 9) == 4
