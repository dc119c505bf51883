"""A crawl that was killed after its run was completed; its stages are tested in `tests/pipeline/test_crawl.py`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from crawler.model.settings import Config
from crawler.supervise.before_start import take_supervision
from crawler.supervise.crawl import Verbosity, crawl
from crawler.workspace.door import WorkspaceError
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.runs import Run, RunStatus, write_run


@dataclass(frozen=True)
class Ended:
    lines: tuple[str, ...] = ("the last words",)
    exit_code: int = 0
    summary: Path | None = None


def test_a_completed_run_without_its_summary_is_only_given_that(
    root: Path, config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = FileWorkspace(root)
    workspace.write_document("crawl", orjson.dumps({"v": 1, "status": "running", "before": ""}))
    write_run(workspace, Run(7, RunStatus.COMPLETED))
    closed: list[tuple[Config, str | None]] = []

    def close_run(config: Config, stopped_by: str | None, is_summary_due: bool) -> Ended:
        closed.append((config, stopped_by))
        return Ended()

    (root / "stop").touch()
    assert crawl(config, close_run) == 0
    assert closed == [(config, None)]
    assert capsys.readouterr().out == "the last words\n"
    assert orjson.loads(workspace.document("crawl") or b"")["status"] == "done"
    assert not workspace.is_role_taken("supervisor") and not (root / "stop").exists()


def test_quiet_says_nothing(root: Path, config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    workspace = FileWorkspace(root)
    workspace.write_document("crawl", orjson.dumps({"v": 1, "status": "running", "before": ""}))
    write_run(workspace, Run(7, RunStatus.COMPLETED))
    assert crawl(config, lambda config, stopped_by, is_summary_due: Ended(), verbosity=Verbosity(is_quiet=True)) == 0
    assert capsys.readouterr().out == ""


def test_a_run_that_reached_nothing_is_the_exit_code_of_the_crawl_and_an_error_line_with_quiet(
    root: Path, config: Config
) -> None:
    workspace = FileWorkspace(root)
    workspace.write_document("crawl", orjson.dumps({"v": 1, "status": "running", "before": ""}))
    write_run(workspace, Run(7, RunStatus.COMPLETED))
    ended = Ended(("0 pages crawled: all 4 seeds failed.",), 1)
    assert crawl(config, lambda config, stopped_by, is_summary_due: ended, verbosity=Verbosity(is_quiet=True)) == 1
    assert orjson.loads(workspace.document("crawl") or b"")["status"] == "done", "its summary is written"


def test_a_second_crawl_is_refused_and_the_first_keeps_its_role(root: Path, config: Config) -> None:
    workspace = FileWorkspace(root)
    role = take_supervision(workspace, config)
    with pytest.raises(WorkspaceError, match="already running"):
        crawl(config, lambda config, stopped_by, is_summary_due: Ended())
    assert workspace.is_role_taken("supervisor")
    role.release()
