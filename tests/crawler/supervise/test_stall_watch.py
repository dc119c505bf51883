"""Stages by their heartbeats: silent ones, standing ones, those that are at work without a word."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from crawler.model.settings import ResilienceSettings
from crawler.supervise.stall_watch import AT_WORK, StallWatch
from crawler.supervise.watchdog import Usage
from crawler.workspace.files.file_workspace import FileWorkspace

S = 1_000_000_000
PID = 77


class Bench:
    def __init__(self, folder: Path) -> None:
        self.workspace = FileWorkspace(folder)
        self.workspace.prepare()
        self.cpu = 0.0
        settings = ResilienceSettings(stall_after=300, max_memory=100)
        self.watch = StallWatch(settings, self.workspace, lambda pid: Usage(self.cpu, pid))

    def beat(self, at: int, due_since: int | None = None, doing: str = "running") -> None:
        beat = {"name": "ingest", "pid": PID, "beat_ns": at * S, "doing": doing}
        due = None if due_since is None else due_since * S
        self.workspace.beat("ingest", orjson.dumps({**beat, "due_since_ns": due}))

    def words(self, now: int) -> list[str]:
        return [words for _, words in self.watch.find_stalled({PID: 1 * S}, now * S)]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_before_its_first_heartbeat_the_time_since_its_start_counts(bench: Bench) -> None:
    assert bench.words(300) == []
    assert bench.words(302) == ["no sign of life for 301 s"]


def test_a_heartbeat_without_progress_though_work_is_due(bench: Bench) -> None:
    bench.beat(400, due_since=101)
    assert bench.words(401) == []
    bench.beat(402, due_since=101)
    assert bench.words(402) == ["work is due, and none was done for 301 s"]
    bench.beat(402, due_since=101, doing="paused")
    assert bench.words(402) == [], "somebody paused it"
    bench.beat(402)
    assert bench.words(402) == [], "a domain waits for its Crawl-delay, say"


def test_a_silent_stage_that_uses_cpu_is_given_longer(bench: Bench) -> None:
    bench.beat(10)
    assert bench.words(11) == []
    bench.cpu = 200.0
    assert bench.words(400) == [], "it rebuilds a large map, say"
    bench.cpu = 1000.0
    assert bench.words(11 + 300 * AT_WORK) == ["no sign of life for 300 s"]


def test_stages_past_their_memory_are_found(bench: Bench) -> None:
    assert bench.watch.find_outgrown([99, 101]) == [(101, 101)]


def test_only_stalls_in_a_row_count(bench: Bench) -> None:
    assert [bench.watch.count("ingest", at) for at in (0.0, 300.0, 9999.0, 10_300.0, 10_600.0)] == [
        *(False, False, False, False, True)
    ]
