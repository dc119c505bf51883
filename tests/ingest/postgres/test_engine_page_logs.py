"""Page logs of a map in an engine: files of the machine where the ingest runs, each exact, whoever goes on where."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.database.reader import open_map
from crawler.model.map_place import MapPlace
from crawler.model.records import Result, dump
from crawler.model.settings import Config, EngineSettings
from crawler.workspace.control import StageControl
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.opening import open_workspace
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from crawler.workspace.postgres.workspace_transfer import export_files, import_files
from ingest.loop import Ingest
from ingest.map_transfer import copy_whole_map
from tests.ingest.terrains import config
from tests.ingest.test_loop import begun, results
from tests.postgres_server import clean_database

LOGS = ("logs/pages-1.csv", "metadata/crawl_metadata.jsonl")
TORN = b"a row of a batch that was not committed"


@pytest.fixture
def rules(tmp_path: Path) -> Iterator[Config]:
    with clean_database(WORKSPACE) as url:
        yield replace(config(tmp_path), engine=EngineSettings(url))


def ingested(rules: Config, some: list[Result], writer: str = "fetcher-01") -> None:
    """An ingest on the machine with this folder applies these results."""
    workspace = open_workspace(rules)
    workspace.prepare()
    log = workspace.results.writer(writer, segment_bytes=1 << 20)
    log.append_all(dump(result) for result in some)
    log.close()
    ingest = Ingest(rules, StageControl(workspace, "ingest"))
    while ingest.step():
        pass
    ingest.shutdown()
    if isinstance(workspace, EngineWorkspace):
        workspace.close()


def tear(folder: Path) -> None:
    """As a kill between the rows of a batch and its commit leaves the files."""
    for name in LOGS:
        with (folder / name).open("ab") as file:
            file.write(TORN)


def logged(folder: Path) -> list[str]:
    with (folder / LOGS[0]).open(newline="") as file:
        urls = [row["url"] for row in csv.DictReader(file)]
    assert (folder / LOGS[1]).read_bytes().count(b"\n") == len(urls)
    return urls


def visited(place: MapPlace) -> list[str]:
    with open_map(place) as reader:
        return sorted(url for (url,) in reader.rows("SELECT url FROM pages WHERE visited_run = 1"))


def test_a_stand_by_elsewhere_begins_files_of_its_own_and_says_where_the_others_are(
    rules: Config, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    there = replace(rules, workspace=tmp_path / "there")
    ingested(rules, begun(), "scheduler")
    ingested(rules, results()[:2])
    first = logged(rules.workspace)
    tear(rules.workspace)
    with caplog.at_level(logging.WARNING, "sumi.ingest"):
        ingested(there, results()[2:4])
    assert len(caplog.messages) == 1 and "rows written before are on the machine" in caplog.text
    second = logged(there.workspace)
    tear(there.workspace)
    with caplog.at_level(logging.WARNING, "sumi.ingest"):
        ingested(rules, results()[4:5])
        ingested(there, results()[5:])
    assert len(caplog.messages) == 1, "no row is lost, and it is known by now"
    here, elsewhere = logged(rules.workspace), logged(there.workspace)
    assert first and second and here[: len(first)] == first and elsewhere[: len(second)] == second
    assert sorted(here + elsewhere) == visited(rules.map_place)


def test_logs_that_lost_rows_on_their_own_machine_are_still_told(
    rules: Config, caplog: pytest.LogCaptureFixture
) -> None:
    ingested(rules, begun(), "scheduler")
    ingested(rules, results()[:4])
    path = rules.workspace / LOGS[0]
    path.write_bytes(path.read_bytes()[:-10])
    with caplog.at_level(logging.WARNING, "sumi.ingest"):
        ingested(rules, results()[4:])
    assert f"{LOGS[0]} has lost rows" in caplog.text


def test_logs_are_exact_when_a_crawl_goes_into_an_engine_and_out_of_it(
    rules: Config, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = replace(rules, engine=EngineSettings())
    ingested(files, begun(), "scheduler")
    ingested(files, results()[:3])
    tear(files.workspace)
    engine = EngineWorkspace(rules.workspace, rules.engine.url)
    import_files(FileWorkspace(files.workspace), engine)
    copy_whole_map(files.map_place, rules.map_place)
    with caplog.at_level(logging.WARNING, "sumi.ingest"):
        ingested(rules, results()[3:5], "fetcher-02")
        assert sorted(logged(rules.workspace)) == visited(rules.map_place)
        out = replace(
            files, workspace=tmp_path / "out", output=replace(files.output, database_path=tmp_path / "out" / "map.db")
        )
        export_files(engine, FileWorkspace(out.workspace))
        copy_whole_map(rules.map_place, out.map_place)
        ingested(out, results()[5:], "fetcher-03")
    assert caplog.messages == []
    assert sorted(logged(rules.workspace) + logged(out.workspace)) == visited(out.map_place)
    engine.close()
