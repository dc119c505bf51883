"""Ctrl-Z: the stages are paused before the process stops, and go on with `fg`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from crawler.supervise.suspension import (
    are_requests_paused,
    remove_left_suspension,
    resume_stages,
    suspend_stages,
)
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.places import ROOT


def workspace_at(tmp_path: Path) -> FileWorkspace:
    made = FileWorkspace(tmp_path / "workspace")
    made.prepare()
    return made


def test_a_pause_that_the_user_set_stays_after_fg(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path)
    workspace.set_flag("pause")
    resume_stages(workspace, suspend_stages(workspace, None))
    assert workspace.flags() == ["pause"]


def test_the_flag_of_a_crawl_that_was_killed_while_stopped_is_removed_by_the_next(tmp_path: Path) -> None:
    workspace = workspace_at(tmp_path)
    assert suspend_stages(workspace, None) == "pause"
    assert workspace.flags() == ["pause"] and are_requests_paused(workspace)
    remove_left_suspension(workspace)
    assert workspace.flags() == []
    workspace.set_flag("pause")
    remove_left_suspension(workspace)
    assert workspace.flags() == ["pause"], "this one is the user's"


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_ctrl_z_pauses_the_fetchers_then_stops_the_process_and_fg_goes_on(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "crawler", "demo", "--workers", "1", "-v"]
    crawl = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert crawl.stderr is not None
        for line in crawl.stderr:
            if line.startswith("[INFO] Crawling"):
                break
        crawl.send_signal(signal.SIGTSTP)
        deadline = time.monotonic() + 60
        while _state(crawl.pid) != "T":
            assert time.monotonic() < deadline and crawl.poll() is None
            time.sleep(0.05)
        workspace = FileWorkspace(tmp_path / "workspace" / "demo")
        assert workspace.flags() == ["pause"] and are_requests_paused(workspace)
        crawl.send_signal(signal.SIGCONT)
        output, errors = crawl.communicate(timeout=100)
    finally:
        crawl.kill()
    assert crawl.returncode == 0, errors
    assert workspace.flags() == [] and "Going on." in errors and "Run #1 is complete." in output
