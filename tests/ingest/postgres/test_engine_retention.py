"""With an engine, results of old runs go from its rows as they go from files; taken out before, they give the map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from crawler.database.digest import digest
from crawler.database.ingest_progress import results_kept_from
from crawler.keep.prune import roll_up
from crawler.model.records import Result, RunEvent, dump
from crawler.model.settings import Config, EngineSettings, RetentionSettings, SpoolSettings
from crawler.workspace.control import StageControl
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.opening import open_keeping
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from crawler.workspace.postgres.workspace_transfer import export_files
from ingest.loop import Ingest
from ingest.old_results import prune_results
from ingest.replay import ReplayError, replay
from ingest.run_maps import map_of_run
from tests.ingest.terrains import AT, config
from tests.ingest.test_loop import begun, results
from tests.postgres_server import clean_database


@pytest.fixture
def rules(tmp_path: Path) -> Iterator[Config]:
    with clean_database(WORKSPACE) as url:
        yield replace(config(tmp_path), engine=EngineSettings(url))


def crawl(rules: Config, *runs: int) -> None:
    workspace = EngineWorkspace(rules.workspace, rules.engine.url)
    workspace.prepare()
    for run in runs:
        finished: list[Result] = [*begun(run), RunEvent(run, AT, "finished")]
        for writer, some in (("fetcher-01", results(run)), ("scheduler", finished)):
            log = workspace.results.writer(writer, segment_bytes=1 << 20)
            log.append_all(dump(result) for result in some)
            log.close()
        ingest = Ingest(rules, StageControl(workspace, "ingest"))
        while ingest.step():
            pass
        ingest.shutdown()
    workspace.close()


def segments(rules: Config) -> list[int]:
    workspace = EngineWorkspace(rules.workspace, rules.engine.url)
    try:
        return workspace.results.segments("fetcher-01")
    finally:
        workspace.close()


def test_results_of_old_runs_go_from_the_engine_when_the_config_says_so_or_a_person(rules: Config) -> None:
    crawl(rules, 1, 2)
    assert segments(rules) == [1, 2]
    crawl(replace(rules, spool=SpoolSettings(results=2)), 3)
    assert segments(rules) == [2, 3] and results_kept_from(rules.map_place) == 2
    before = digest(rules.map_place)
    keeping = replace(rules, retention=RetentionSettings(results=1))
    rolling = partial(roll_up, open_keeping(rules.workspace))
    (removal,) = prune_results(keeping, rolling, is_named=True).removals
    removal.remove()
    assert segments(rules) == [3] and results_kept_from(rules.map_place) == 3
    assert digest(rules.map_place) == before
    with pytest.raises(ReplayError, match="are gone"):
        map_of_run(rules, 2)


def test_what_was_taken_out_before_results_go_gives_the_same_map(rules: Config, tmp_path: Path) -> None:
    crawl(rules, 1, 2)
    before = digest(rules.map_place)
    source, target = EngineWorkspace(rules.workspace, rules.engine.url), FileWorkspace(tmp_path / "out")
    export_files(source, target)
    for number in source.results.segments("fetcher-01")[:-1]:
        source.results.remove_segment("fetcher-01", number)
    source.close()
    plain = replace(rules, engine=EngineSettings(), workspace=tmp_path / "out")
    replay(plain, tmp_path / "again.db")
    assert digest(tmp_path / "again.db") == before
