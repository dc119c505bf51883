"""A crawl that was killed after its run was completed; its stages are tested in `tests/pipeline/test_crawl.py`."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from crawler.model.settings import Config
from crawler.supervise.before_start import take_supervision
from crawler.supervise.crawl import Verbosity, crawl
from crawler.workspace.door import WorkspaceError
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.runs import Run, RunStatus, write_run


def test_a_completed_run_without_its_summary_is_only_given_that(
    root: Path, config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = FileWorkspace(root)
    workspace.write_document("crawl", orjson.dumps({"v": 1, "status": "running", "before": ""}))
    write_run(workspace, Run(7, RunStatus.COMPLETED))
    written: list[tuple[Path, Path]] = []
    (root / "stop").touch()
    assert crawl(config, lambda database, summary: written.append((database, summary))) == 0
    assert written == [(config.output.database_path, config.output.summary_path)]
    assert capsys.readouterr().out.startswith("Run #7 is complete.")
    assert orjson.loads(workspace.document("crawl") or b"")["status"] == "done"
    assert not workspace.is_role_taken("supervisor") and not (root / "stop").exists()


def test_quiet_says_nothing(root: Path, config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    workspace = FileWorkspace(root)
    workspace.write_document("crawl", orjson.dumps({"v": 1, "status": "running", "before": ""}))
    write_run(workspace, Run(7, RunStatus.COMPLETED))
    assert crawl(config, lambda database, summary: None, verbosity=Verbosity(is_quiet=True)) == 0
    assert capsys.readouterr().out == ""


def test_a_second_crawl_is_refused_and_the_first_keeps_its_role(root: Path, config: Config) -> None:
    workspace = FileWorkspace(root)
    role = take_supervision(workspace)
    with pytest.raises(WorkspaceError, match="already running"):
        crawl(config, lambda database, summary: None)
    assert workspace.is_role_taken("supervisor")
    role.release()
