"""Clauses of the promises that only whole parts together can keep, each watched from outside."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from crawler.demo.server import serve_terrain
from crawler.demo.sites import Answer, response
from crawler.fetch import journal
from crawler.fetch.fetcher import Fetcher
from crawler.model.records import parse
from crawler.model.settings import CrawlerSettings
from crawler.observe.audit import audit
from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.files import file_workspace
from crawler.workspace.files.gate_file import GateFile
from crawler.workspace.files.job_spools import write_bookmark
from crawler.workspace.files.spool import Reader, end_of
from crawler.workspace.log import Line
from tests.pipeline.fetching import PlainTerrain, config_for, finish, pages, prepare, release, start_fetcher, wait_for
from tests.pipeline.test_fetcher import DELAY, hosts, running, too_close


@dataclass
class SharedRobots(PlainTerrain):
    """Every host but the last has its robots.txt on the last one."""

    def answer(self, host: str, method: str, target: str) -> Answer:
        if target == "/robots.txt" and host != self.hosts[-1]:
            place = f"https://{self.hosts[-1]}/robots.txt"
            return Answer(response(302, b"", headers=(("Location", place),), with_body=method != "HEAD"))
        return super().answer(host, method, target)


def test_a_robots_txt_on_another_host_is_asked_for_through_that_domains_gate(tmp_path: Path) -> None:
    """The server's log: the shared host is asked by five domains' visits and its own, and never too soon."""
    names = hosts(5)
    with serve_terrain(SharedRobots(names), tmp_path / "server", log=True) as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        release(workspace, [f"https://{host}/p{number}" for host in names for number in range(2)])
        with running(start_fetcher(config, tmp_path)):
            wait_for(lambda: len(pages(workspace)) == 10)
            finish(workspace)
        seen = served.requests()
        assert sum(request.host == names[-1] and request.target == "/robots.txt" for request in seen) == 5
        assert too_close(seen, DELAY) == []
        gate = GateFile(workspace.layout.gate_of(names[-1]))
        assert gate.read().sent == sum(request.host == names[-1] for request in seen)
        gate.close()
        assert audit(config).is_clean, list(audit(config).lines())


def test_no_bookmark_passes_a_job_whose_result_is_not_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`kill -9` cannot show this, for the kernel keeps what was written; so every bookmark is checked when it moves."""
    durable: dict[str, int] = {}  # segment → how much of it an fsync has returned for
    wrong: list[str] = []
    fsync = os.fsync

    def note_fsync(number: int) -> None:
        size = os.fstat(number).st_size
        fsync(number)
        durable[Path(f"/proc/self/fd/{number}").readlink().name] = size

    def is_durable(line: Line) -> bool:
        return line.end.offset <= durable.get(f"{line.end.segment:012d}.jsonl", 0)

    def check_and_write(folder: Path, bookmark: Bookmark, **options: bool) -> None:
        reader = Reader(config.workspace / "spool" / "results" / "fetcher-01")
        safe = {parse(line.body).key for line in reader if is_durable(line) and b'"kind":"page"' in line.body[:30]}
        for line in (jobs := Reader(folder)):
            job = parse(line.body)
            if line.end <= bookmark.jobs and job.key not in safe:
                wrong.append(f"{job.key} is before the bookmark, its result is not durable")
        reader.close()
        jobs.close()
        checked.append(bookmark)
        write_bookmark(folder, bookmark, **options)

    checked: list[Bookmark] = []
    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(file_workspace, "write_bookmark", check_and_write)
    monkeypatch.setattr(journal, "BOOKMARK_EVERY", 0.0)
    monkeypatch.setattr(journal, "SYNC_EVERY", 0.05)
    with serve_terrain(PlainTerrain(hosts(3)), tmp_path / "server") as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        release(workspace, [f"https://{host}/p{number}" for host in hosts(3) for number in range(4)])
        codes: list[int] = []
        stage = Fetcher(config, 0, 1)
        thread = threading.Thread(target=lambda: codes.append(stage.run(install_signals=False)))
        thread.start()
        try:
            wait_for(lambda: len(pages(workspace)) == 12)
        finally:
            finish(workspace)
            thread.join(20)
    assert codes == [0]
    assert wrong == []
    assert {bookmark.jobs for bookmark in checked} >= {end_of(workspace.layout.jobs_of(host)) for host in hosts(3)}
