"""What `make bench` prints: verdicts that follow from the figures, and lines that fit 80 columns."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import sampling
from benchmarks.census import count_page, summarise
from benchmarks.report import by_rounds, report, speed_rows, time_rows


def figures(**changes: Any) -> dict[str, Any]:
    pipeline = {
        "pages": 12_400,
        "known": 132_740,
        "links": 326_120,
        "seconds": [14.0, 15.0],
        "rate": 450.0,
        "rates": [440.0, 460.0],
        "steady_rate": 600.0,
        "first_request_s": 0.8,
        "all_at_work_s": 2.0,
        "after_last_answer_s": 1.5,
        "domains": 200,
        "cpu_ms": {"fetchers": 2.4, "ingest": 1.3},
        "cpu_ms_total": 4.0,
        "server_ms": 0.15,
        "server_core_share": 0.05,
        "most_unread_mb": 4.25,
        "memory_mb": {"fetcher": 120.0, "ingest": 200.0},
    }
    return {
        "server": "nginx",
        "hosts": 200,
        "pages": 6_200,
        "pauses_s": 6.2,
        "census": summarise([count_page("a.html", b"<title>A</title><a href='#b'>b</a>" * 40)]),
        "loop": {"rate": 440.0, "rates": [430.0, 440.0, 450.0], "cpu_ms": 2.0, "server_ms": 0.1},
        "pipeline": pipeline | changes,
        "replay": {"results": 6_200, "rate": 950.0, "equal": True},
        "scrapy": {"usual": {"pages": 1_550, "rate": 30.0, "cpu_ms": 30.0, "links_per_page": 50.0}},
        "steps": {"ingest": {"crawler.model.urls:" + "a_function_with_a_long_name_" * 4: 0.5}},
    }


def verdicts(found: dict[str, Any], name: str = "real") -> dict[str, str]:
    return {what: word for what, _, aim, word in speed_rows(name, found) + time_rows(name, found) if aim}


def test_a_fast_run_meets_every_target() -> None:
    assert set(verdicts(figures()).values()) == {"met"}
    assert len(verdicts(figures())) == 8


@pytest.mark.parametrize(
    ("change", "row"),
    [
        ({"rate": 400.0}, "pipeline against the bare loop"),
        ({"rate": 400.0}, "pipeline against Scrapy, usual"),
        ({"first_request_s": 1.2}, "from the command to the first request"),
        ({"all_at_work_s": 3.0}, "until all of 200 domains are at work"),
        ({"after_last_answer_s": 2.1}, "from the last answer to the end"),
        ({"memory_mb": {"fetcher": 151.0}}, "most memory of a fetcher"),
    ],
)
def test_a_figure_beyond_its_target_is_told(change: dict[str, Any], row: str) -> None:
    assert verdicts(figures(**change))[row] == "NOT MET"


def test_a_store_that_costs_too_much_is_told() -> None:
    row = "  CPU a page, with the store over without"
    assert verdicts(figures() | {"store": {"cpu_ms_total": 4.4, "rate": 480.0}})[row] == "met"
    assert verdicts(figures() | {"store": {"cpu_ms_total": 4.7, "rate": 480.0}})[row] == "NOT MET"


def test_the_run_over_more_hosts_is_judged_by_its_own_loop_and_the_pauses_bound_is_told() -> None:
    wide = {"hosts": 400, "pages": 6_400, "pauses_s": 3.2, "loop": figures()["loop"], "pipeline": figures()["pipeline"]}
    row = "  pipeline against the bare loop"
    assert verdicts(figures() | {"wider": wide})[row] == "met"
    slower = wide | {"pipeline": wide["pipeline"] | {"rate": 430.0}}
    assert verdicts(figures() | {"wider": slower})[row] == "NOT MET"
    rows = {what: measured for what, measured, _, _ in speed_rows("real", figures())}
    assert rows["  the pauses alone allow at most"] == "1000 pages/s"
    assert rows["  that against the bare loop"] == "2.27"


def test_a_slow_replay_and_another_digest_are_told() -> None:
    found = figures() | {"replay": {"results": 10, "rate": 899.0, "equal": False}}
    assert verdicts(found)["replay"] == "NOT MET"
    assert verdicts(found)["digest of the replayed map"] == "NOT MET"


def test_the_old_terrain_has_no_targets_for_start_and_end() -> None:
    assert not [row for row in time_rows("old", figures()) if row[2] and not row[0].startswith(("replay", "digest"))]


def test_a_round_is_held_against_the_loops_beside_it() -> None:
    assert by_rounds([100.0, 100.0], [100.0, 200.0, 50.0]) == [0.75, 1.25]


def test_the_report_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    about = {"cpu": "A processor", "cores": 2, "python": "3.11.7", "load_before": 0.1, "load_after": 0.2}
    stages = {"fetchers": 0.5, "ingest": 0.4, "scheduler": 0.1, "supervisor": 0.2}
    revisit = {"cpu_ms_total": 1.2, "visit_ms": 2.0, "confirmed": 6_200, "rate": 700.0}
    revisit |= {"cpu_ms": stages, "visit_stages_ms": stages}
    case = {"median_done_s": 1.9, "last_done_s": 12.1, "others_done_s": 16.4}
    report(
        {
            "machine": about,
            "quick": True,
            "real": figures() | {"wider": figures() | {"hosts": 400, "pages": 6_400, "pauses_s": 3.2}},
            "made": figures() | {"revisit": revisit, "whole": revisit},
            "old": figures(),
            "digest": {"equal": True},
            "fairness": {"next to slow servers": case},
            "mistakes": ["the pipeline in real: 6,199 pages processed, 6,200 listed " * 3],
        }
    )
    printed = capsys.readouterr().out.splitlines()
    assert "Real pages: 6,200 pages on 200 hosts, served by nginx" in printed
    assert [line for line in printed if len(line) > 80] == []


def test_sampling_charges_cpu_to_the_project_function_that_uses_it(tmp_path: Path) -> None:
    """A process that works in one function: its note names that function, and most of the CPU is there."""
    program = tmp_path / "busy.py"
    program.write_text(
        "import time\ndef work():\n    while time.process_time() < 1.2:\n        sum(range(1000))\nwork()\n"
    )
    notes = tmp_path / "notes"
    environment = sampling.environment(notes, tmp_path)
    process = subprocess.Popen([sys.executable, str(program)], env={**os.environ, **environment})
    assert process.wait(timeout=60) == 0
    found = sampling.read(notes, {process.pid: "fetcher 1 of 2"})
    steps = found["fetchers"]
    assert next(iter(steps)) == "busy:work"
    assert steps["busy:work"] > 0.5
    assert sampling.read(notes, {}) == {}
