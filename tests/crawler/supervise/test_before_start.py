"""The checks before stages start, on a real workspace with real locks and flag files."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.config.last_used import read_last_used
from crawler.engine.place import place_of
from crawler.model.errors import SumiError
from crawler.model.settings import Config, EngineSettings
from crawler.supervise.before_start import prepare_stage, remove_stop_flags, require_no_stages, take_supervision
from crawler.workspace.door import WorkspaceError
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from tests.postgres_server import clean_database


def test_a_second_supervisor_is_refused_with_a_sentence(root: Path, config: Config) -> None:
    workspace = FileWorkspace(root)
    role = take_supervision(workspace, config)
    with pytest.raises(WorkspaceError, match=rf"a crawl is already running in {root}; .*status --workspace {root}, or"):
        take_supervision(workspace, config)
    role.release()
    take_supervision(workspace, config).release()


def test_stages_started_by_hand_are_named(root: Path, config: Config) -> None:
    workspace = FileWorkspace(root)
    require_no_stages(workspace, config, patience=0)
    role = workspace.take_role("fetcher-02")
    with pytest.raises(WorkspaceError, match=r"started by hand: fetcher-02.*sumi-ripple stop"):
        require_no_stages(workspace, config, patience=0)
    role.release()


def test_with_an_engine_they_are_named_by_engine_machine_and_commands_that_work_from_everywhere(
    tmp_path: Path, config: Config
) -> None:
    """The folder of this machine knows nothing of a crawl that another machine began."""
    with clean_database(WORKSPACE) as url:
        config = replace(config, source=tmp_path / "my.toml", engine=EngineSettings(url))
        there, here = EngineWorkspace(tmp_path / "there", url), EngineWorkspace(config.workspace, url)
        roles = [there.take_role("supervisor"), there.take_role("fetcher-02")]
        engine = rf"the engine {re.escape(str(place_of(url)))}"
        stop = f"sumi-ripple stop {config.source}"
        for machine, by in (
            (None, f"process {os.getpid()} on this machine"),
            ("a-boot-pid:[7] build-7", f"process {os.getpid()} on build-7"),
            ("a-boot-pid:[7]", f"process {os.getpid()} on another machine"),
        ):
            if machine:
                here.session.execute("UPDATE holders SET machine = %s", (machine,))
            with pytest.raises(WorkspaceError, match=rf"already running in {engine}, {by}; see .*; end .*") as refused:
                take_supervision(here, config)
            assert f"with: sumi-ripple status {config.source}; " in str(refused.value) and stop in str(refused.value)
            with pytest.raises(WorkspaceError, match=rf"already running in {engine}, .* fetcher-02 \({by}\); ") as hand:
                require_no_stages(here, config, patience=0)
            assert str(hand.value).endswith(stop)
            with pytest.raises(WorkspaceError, match=rf"another fetcher-02 is already at work in {engine}, {by}; stop"):
                here.take_role("fetcher-02")
            texts = str(refused.value) + str(hand.value)
            assert "--workspace" not in texts and url.split(":")[2].split("@")[0] not in texts
        for role in roles:
            role.release()
        there.close()
        here.close()


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
