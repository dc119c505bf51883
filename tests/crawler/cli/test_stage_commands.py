"""schedule, fetch and ingest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crawler.workspace.files.file_workspace import FileWorkspace
from tests.crawler.cli.calling import called
from tests.places import ROOT


def test_a_second_stage_in_the_same_role_is_refused(
    workspace: FileWorkspace, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for role, command in (("scheduler", "schedule"), ("ingest", "ingest")):
        lock = workspace.take_role(role)
        assert called(command, "my.toml") == 1
        assert f"another {role} is already at work" in capsys.readouterr().err
        lock.release()


@pytest.mark.parametrize(
    ("command", "stage", "needs"),
    [("schedule", "scheduler", "ingest"), ("fetch", "fetcher", "schedule"), ("ingest", "ingest", "schedule")],
)
def test_a_stage_by_hand_says_what_it_does_what_it_waits_for_and_how_it_ended(
    command: str, stage: str, needs: str, here: Path, config_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "crawler", command, "my.toml"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    try:
        first, second = process.stderr.readline(), process.stderr.readline()
        assert first.startswith(f"The {stage} ") and first.endswith("until its run is over; Ctrl-C saves and ends\n")
        assert f"sumi-ripple {needs} {here / 'my.toml'}\n" in second and second.startswith("Waiting for the ")
        (here / "workspace" / "stop").touch()
        _, rest = process.communicate(timeout=60)
    finally:
        process.kill()
    last = rest.splitlines()[-1]
    assert last.startswith(f"The {stage} has ended; ") and "no run has started yet" in last


def test_a_stage_does_not_wait_for_one_that_is_running(
    workspace: FileWorkspace, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roles = [workspace.take_role("ingest"), workspace.take_role("scheduler")]
    for command in ("schedule", "ingest"):
        assert called(command, "my.toml") == 1, "that role is taken"
    assert "Waiting" not in capsys.readouterr().err
    for role in roles:
        role.release()
