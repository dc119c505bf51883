"""With an engine, results of old runs go from its rows as they go from files; taken out before, they give the map."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from crawler.database.digest import digest
from crawler.database.ingest_progress import results_kept_from
from crawler.database.map_errors import StoreError
from crawler.database.run_log import recorded_runs
from crawler.keep.prune import roll_up
from crawler.model.records import Result, RunEvent, dump
from crawler.model.settings import Config, EngineSettings, RetentionSettings, SpoolSettings
from crawler.observe.audit import audit
from crawler.workspace.control import StageControl
from crawler.workspace.door import ArchiveAway
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.opening import open_keeping
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from crawler.workspace.postgres.workspace_transfer import export_files
from ingest.loop import Ingest
from ingest.old_results import prune_results
from ingest.replay import ReplayError, rebuild, replay
from ingest.run_maps import map_of_run
from tests.ingest.terrains import AT, config
from tests.ingest.test_loop import begun, results
from tests.postgres_server import clean_database


@pytest.fixture
def rules(tmp_path: Path) -> Iterator[Config]:
    with clean_database(WORKSPACE) as url:
        yield replace(config(tmp_path), engine=EngineSettings(url))


def crawl(rules: Config, *runs: int) -> None:
    workspace = EngineWorkspace(rules.workspace, rules.engine.url, rules.engine.archive)
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


def live(rules: Config) -> list[int]:
    """The segments of the fetcher whose rows are in the engine."""
    workspace = EngineWorkspace(rules.workspace, rules.engine.url)
    try:
        return sorted({line.end.segment for line in workspace.results.reader("fetcher-01", is_live_only=True)})
    finally:
        workspace.close()


def archived(rules: Config) -> list[str]:
    return [path.name for path in sorted((rules.workspace / "archive" / "results").glob("*/fetcher-01/*"))]


def test_results_that_leave_the_engine_are_files_and_one_log_with_the_rest(rules: Config, tmp_path: Path) -> None:
    keeping = replace(rules, engine=replace(rules.engine, results=1))
    crawl(keeping, 1, 2, 3)
    assert (segments(rules), live(rules)) == ([1, 2, 3], [3]), "all are known, and those of the last run are rows"
    assert archived(rules) == ["000000000001.jsonl", "000000000002.jsonl"]
    assert results_kept_from(rules.map_place) is None, "nothing is gone"
    before = digest(rules.map_place)
    assert replay(rules, tmp_path / "again.db").duplicates == 0
    assert digest(tmp_path / "again.db") == before
    assert recorded_runs(map_of_run(rules, 1)).runs[-1].number == 1
    assert set(audit(rules).runs) == {1, 2, 3}
    source = EngineWorkspace(rules.workspace, rules.engine.url)
    export_files(source, FileWorkspace(tmp_path / "out"))
    source.close()
    replay(replace(rules, engine=EngineSettings(), workspace=tmp_path / "out"), tmp_path / "exported.db")
    assert digest(tmp_path / "exported.db") == before
    crawl(replace(keeping, spool=SpoolSettings(results=2)), 4)
    assert (segments(rules), live(rules)) == ([3, 4], [4]), "what nobody wants any more goes from the archive, too"
    assert archived(rules) == ["000000000003.jsonl"] and results_kept_from(rules.map_place) == 3


def test_without_the_archive_a_crawl_goes_on_and_a_replay_says_where_it_is(rules: Config, tmp_path: Path) -> None:
    keeping = replace(rules, engine=replace(rules.engine, results=1))
    crawl(keeping, 1, 2)
    (rules.workspace / "archive").rename(tmp_path / "away")
    crawl(keeping, 3)
    assert live(rules) == [3] and archived(rules) == ["000000000002.jsonl"]
    with pytest.raises(ArchiveAway, match=r"segment 1 of the results of .* bring the folder"):
        replay(rules, tmp_path / "again.db")
    with pytest.raises(StoreError, match=r"cannot be rebuilt .*segment 1"):
        rebuild(replace(rules, quality=()))
    (crawl_folder,) = (tmp_path / "away" / "results").iterdir()
    shutil.copytree(crawl_folder, rules.workspace / "archive" / "results" / crawl_folder.name, dirs_exist_ok=True)
    replay(rules, tmp_path / "again.db")
    assert digest(tmp_path / "again.db") == digest(rules.map_place)


def test_an_archive_that_cannot_be_written_stops_no_crawl(
    rules: Config, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"")
    keeping = replace(rules, engine=replace(rules.engine, results=1, archive=tmp_path / "file" / "archive"))
    crawl(keeping, 1, 2)
    assert live(rules) == [1, 2] and "the results stay in the engine" in caplog.text
    crawl(replace(keeping, engine=replace(keeping.engine, archive=tmp_path / "elsewhere")), 3)
    assert live(rules) == [3] and len(list(tmp_path.glob("elsewhere/*/fetcher-01/*.jsonl"))) == 2


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
