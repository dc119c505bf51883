"""status, pause, resume and stop."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from crawler.workspace.control import StageControl
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.runs import Run, RunStatus, write_run
from tests.crawler.cli.calling import called


def test_pause_and_resume_are_the_flag_files(workspace: FileWorkspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("pause") == 0
    assert workspace.layout.flag("pause").exists()
    assert called("pause", "fetcher") == 0
    assert workspace.layout.flag("pause", "fetcher").exists()
    assert called("resume", "fetcher") == 0
    assert not workspace.layout.flag("pause", "fetcher").exists() and workspace.layout.flag("pause").exists()
    assert "still paused" in capsys.readouterr().out
    assert called("resume") == 0
    assert not workspace.layout.flag("pause").exists()
    assert called("resume") == 0
    assert "Nothing is paused" in capsys.readouterr().out


def test_a_flag_goes_to_the_workspace_of_the_config(here: Path, config_path: Path) -> None:
    config_path.write_text('workspace = "elsewhere"\n' + config_path.read_text())
    FileWorkspace(here / "elsewhere").prepare()
    assert called("pause", "my.toml", "ingest") == 0
    assert (here / "elsewhere" / "pause.ingest").exists()


def test_stop_with_nothing_running_sets_no_flag(workspace: FileWorkspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("stop") == 0
    assert "Nothing is running" in capsys.readouterr().out
    assert not workspace.layout.flag("stop").exists()


def test_stop_sets_the_flag_and_wakes_the_stages(workspace: FileWorkspace, capsys: pytest.CaptureFixture[str]) -> None:
    role = workspace.take_role("ingest")
    control = StageControl(workspace, "ingest")
    try:
        assert called("stop", "ingest") == 0
        assert workspace.layout.flag("stop", "ingest").exists()
        assert control.wait(30), "its bell was rung"
        assert control.should_stop()
        assert "Told ingest to finish" in capsys.readouterr().out
    finally:
        control.close()
        role.release()


def test_a_command_without_a_workspace_means_the_demo_that_is_running(workspace: FileWorkspace, here: Path) -> None:
    demo = FileWorkspace(here / "workspace" / "demo")
    demo.prepare()
    role = demo.take_role("supervisor")
    assert called("pause") == 0
    role.release()
    assert demo.layout.flag("pause").exists() and not workspace.layout.flag("pause").exists()


def test_a_command_without_a_workspace_means_the_demo_if_nothing_else_was_crawled(
    workspace: FileWorkspace, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = FileWorkspace(here / "workspace" / "demo")
    demo.prepare()
    write_run(demo, Run(1, RunStatus.COMPLETED))
    assert called("status") == 0
    assert capsys.readouterr().out.startswith("run #1 completed")
    write_run(workspace, Run(7, RunStatus.COMPLETED))
    assert called("status") == 0
    assert capsys.readouterr().out.startswith("run #7 completed")


def test_a_flag_that_cannot_be_removed_is_one_sentence(
    workspace: FileWorkspace, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace.layout.flag("pause").mkdir()
    assert called("resume") == 1
    assert capsys.readouterr().err.startswith(
        f"sumi-ripple: cannot remove the flag file {workspace.layout.flag('pause')}: "
    )


def test_a_pause_says_how_to_go_on_in_the_same_place(
    workspace: FileWorkspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("pause", "fetcher", "--workspace", "workspace") == 0
    said = capsys.readouterr().out
    assert said.endswith("to go on: sumi-ripple resume fetcher --workspace workspace\n")
    assert called(*said.rpartition("sumi-ripple ")[2].split()) == 0
    assert not workspace.layout.flag("pause", "fetcher").exists()


def test_status_of_an_idle_workspace(workspace: FileWorkspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("status") == 0
    text = capsys.readouterr().out
    assert text.startswith("no run yet, nothing is running") and "scheduler     not running" in text
    assert called("status", "--json") == 0
    assert orjson.loads(capsys.readouterr().out)["run"] is None
