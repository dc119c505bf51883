"""schedule, fetch and ingest."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.workspace.files.file_workspace import FileWorkspace
from tests.crawler.cli.calling import called


def test_a_second_stage_in_the_same_role_is_refused(
    workspace: FileWorkspace, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for role, command in (("scheduler", "schedule"), ("ingest", "ingest")):
        lock = workspace.take_role(role)
        assert called(command, "my.toml") == 1
        assert f"another {role} is already at work" in capsys.readouterr().err
        lock.release()
