"""Jobs, releases and hints are not synced in the engine: what it lost is made again from the map's frontier."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psycopg

from crawler.model.records import Record, RunEvent, parse
from crawler.model.settings import Config, CrawlerSettings, OutputSettings
from crawler.schedule.scheduler import Scheduler
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.log import Cursor
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from tests.crawler.schedule.scheduling import Map
from tests.crawler.workspace.engine_opener import EngineOpener

URLS = [f"https://{host}.test/{number}" for host in "ab" for number in range(3)]


def take_in(map_: Map, workspace: EngineWorkspace) -> None:
    """Let the map have the run that the scheduler recorded, as the ingest would."""
    with closing(workspace.results.reader("scheduler", Cursor(), lambda damage: None)) as reader:
        records: list[Record] = [parse(line.body) for line in reader]
        map_.set_place("scheduler", reader.cursor)
    for record in records:
        assert isinstance(record, RunEvent)
        map_.db.execute("INSERT OR IGNORE INTO runs VALUES (?, ?, NULL, '', 'running')", (record.run, record.at))


def released(config: Config, map_: Map, workspace: EngineWorkspace) -> Scheduler:
    """A scheduler that has released what it may."""
    scheduler = Scheduler(config, workspace)
    scheduler.step(0.0)
    take_in(map_, workspace)
    for _ in range(100):
        if scheduler.step(0.0) > 0.0:
            return scheduler
    raise AssertionError("the scheduler does not come to rest")


def jobs(workspace: EngineWorkspace) -> list[str]:
    return sorted(job.key for window in workspace.job_writer().windows() for job in window.jobs)


def test_what_the_engine_lost_of_jobs_and_releases_is_released_again(opener: EngineOpener, tmp_path: Path) -> None:
    config = Config(
        crawler=CrawlerSettings(jobs_per_domain=4),
        output=OutputSettings(tmp_path / "map.db", tmp_path / "summary.md"),
        workspace=tmp_path / "workspace",
    )
    map_ = Map(config, FileWorkspace(config.workspace))
    for url in URLS:
        map_.add(url)
    workspace = opener()
    released(config, map_, workspace)
    assert jobs(workspace) == URLS

    with psycopg.connect(opener.url, autocommit=True) as connection:
        connection.execute("TRUNCATE sumi_workspace.windows, sumi_workspace.job_domains")
        connection.execute(
            "DELETE FROM sumi_workspace.records WHERE log IN"
            " (SELECT id FROM sumi_workspace.logs WHERE name IN ('releases', 'feed'))"
        )
    assert jobs(workspace) == []

    again = opener()
    assert released(config, map_, again).released == len(URLS)
    assert jobs(again) == URLS
    map_.db.close()
