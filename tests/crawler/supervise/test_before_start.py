"""The checks before stages start, on a real workspace with real locks and flag files."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.config.last_used import read_last_used
from crawler.model.errors import SumiError
from crawler.model.settings import Config
from crawler.supervise.before_start import prepare_stage, remove_stop_flags, require_no_stages, take_supervision
from crawler.workspace.door import WorkspaceError
from crawler.workspace.files.file_workspace import FileWorkspace


def test_a_second_supervisor_is_refused_with_a_sentence(root: Path) -> None:
    workspace = FileWorkspace(root)
    role = take_supervision(workspace)
    with pytest.raises(WorkspaceError, match=r"a crawl is already running in .*status"):
        take_supervision(workspace)
    role.release()
    take_supervision(workspace).release()


def test_stages_started_by_hand_are_named(root: Path) -> None:
    workspace = FileWorkspace(root)
    require_no_stages(workspace, patience=0)
    role = workspace.take_role("fetcher-02")
    with pytest.raises(WorkspaceError, match=r"started by hand: fetcher-02.*sumi-ripple stop"):
        require_no_stages(workspace, patience=0)
    role.release()


def test_old_stop_flags_go_and_pause_flags_stay(root: Path) -> None:
    workspace = FileWorkspace(root)
    for name in ("stop", "stop.ingest", "pause", "pause.fetcher"):
        (root / name).touch()
    assert remove_stop_flags(workspace) == ["stop", "stop.ingest"]
    assert sorted(path.name for path in root.glob("*") if path.is_file()) == ["pause", "pause.fetcher"]


def test_a_stage_by_hand_finds_old_stop_flags_removed_and_its_settings_noted(root: Path, config: Config) -> None:
    (root / "stop").touch()
    prepare_stage(config, "ingest")
    assert not (root / "stop").exists()
    assert read_last_used(FileWorkspace(root)) is not None


@pytest.mark.parametrize(("flag", "is_refused"), [("stop", True), ("stop.ingest", True), ("stop.fetcher", False)])
def test_a_stage_by_hand_does_not_join_stages_that_were_told_to_stop(
    root: Path, config: Config, flag: str, is_refused: bool
) -> None:
    role = FileWorkspace(root).take_role("scheduler")
    (root / flag).touch()
    try:
        if is_refused:
            with pytest.raises(SumiError, match=r"told to stop; to cancel that: sumi-ripple resume --workspace "):
                prepare_stage(config, "ingest")
        else:
            prepare_stage(config, "ingest")
        assert (root / flag).exists(), "the flag is for those that are running"
    finally:
        role.release()
