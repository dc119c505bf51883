"""A robots.txt is 24 hours old after 24 hours, whatever becomes of the wall clock."""

from __future__ import annotations

from pathlib import Path

from crawler.fetch.robots_cache import RobotsCache
from crawler.model.records import Exchange, RobotsResult
from crawler.workspace.clock import boot_id
from crawler.workspace.files.file_workspace import FileWorkspace

HOUR_MS = 3_600_000


class Clock:
    def __init__(self, ms: int) -> None:
        self.ms = ms

    def __call__(self) -> int:
        return self.ms


def test_a_wall_clock_set_back_does_not_make_a_robots_txt_live_longer(tmp_path: Path) -> None:
    workspace = FileWorkspace(tmp_path)
    workspace.prepare()
    wall, mono = Clock(1_700_000_000_000), Clock(5_000_000)
    ledger = (Exchange(wall.ms, mono.ms, "GET", "a.test", 200, 10, "a.test"),)
    result = RobotsResult(1, "a.test", "a.test", "", "parsed", 200, "", boot=boot_id(), ledger=ledger)
    RobotsCache(workspace, wall, mono).learn(result, wall.ms)
    cache = RobotsCache(workspace, wall, mono)
    wall.ms += 20 * HOUR_MS
    mono.ms += 20 * HOUR_MS
    assert cache.policy(1, "a.test") is not None
    wall.ms -= 10 * HOUR_MS  # somebody sets the clock
    mono.ms += 5 * HOUR_MS
    assert cache.policy(1, "a.test") is None
    assert RobotsCache(workspace, wall, mono).policy(1, "a.test") is None, "nor for a process that starts then"
