"""Scheduler and ingest on a workspace that has no files: whatever they share goes through the door."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import crawler.schedule.scheduler
import ingest.loop
from crawler.database.digest import digest
from crawler.model.records import Job, PageResult, dump
from crawler.model.settings import Config, DiscoverySettings, OutputSettings, QualityEntry
from crawler.schedule.scheduler import Scheduler
from crawler.workspace.bookmarks import BookmarkMove
from crawler.workspace.control import StageControl
from crawler.workspace.door import Workspace
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.reading import read_records
from crawler.workspace.runs import RunStatus, read_run
from ingest.loop import Ingest
from tests.crawler.workspace.memory_workspace import MemoryWorkspace

PAGES = {
    "https://a.test/": ("/one", "/two", "https://b.test/"),
    "https://a.test/one": ("/two",),
    "https://a.test/two": ("https://b.test/deep",),
    "https://b.test/": ("https://a.test/one",),
    "https://b.test/deep": (),
}


def visit_released(workspace: Workspace) -> None:
    """Be the fetcher: every released job gets its result."""
    writer = workspace.results.writer("fetcher-01", segment_bytes=1 << 20)
    for domain in workspace.domains_with_jobs():
        start = workspace.bookmark(domain)
        reader = workspace.jobs(domain, start.jobs)
        for job, _ in read_records(reader, Job):
            found = PageResult(
                job.run, job.key, job.wire, domain, "2026-01-01T00:00:00.000Z", "processed", hrefs=PAGES[job.wire]
            )
            writer.append(dump(found))
        workspace.save_bookmarks([BookmarkMove(domain, replace(start, jobs=reader.cursor))])
    writer.close()


def crawl(workspace: Workspace, config: Config, monkeypatch: pytest.MonkeyPatch) -> str:
    for module in (crawler.schedule.scheduler, ingest.loop):
        monkeypatch.setattr(module, "open_workspace", lambda root: workspace)
    workspace.prepare()
    stage = Ingest(config, StageControl(workspace, "ingest"))
    scheduler = Scheduler(config, workspace)
    for now in range(60):
        scheduler.step(float(now))
        visit_released(workspace)
        while stage.step():
            pass
        if scheduler.is_over:
            break
    scheduler.shutdown(is_told_to_stop=False)
    stage.shutdown()
    run = read_run(workspace)
    assert run is not None and run.status is RunStatus.COMPLETED
    return digest(config.output.database_path)


def test_scheduler_and_ingest_make_the_same_map_on_files_and_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def config(name: str) -> Config:
        output = OutputSettings(tmp_path / f"{name}.db", tmp_path / f"{name}.md")
        quality = (QualityEntry("a.test", ("https://a.test/",)),)
        no_sitemaps = DiscoverySettings(sitemaps=False)  # the test visits pages itself
        return Config(output=output, quality=quality, workspace=tmp_path / name, discovery=no_sitemaps)

    on_files = crawl(FileWorkspace(tmp_path / "files"), config("files"), monkeypatch)
    in_memory = crawl(MemoryWorkspace(), config("memory"), monkeypatch)
    assert in_memory == on_files
    assert not (tmp_path / "memory").exists(), "nothing was written but the map"
