"""The fetcher process as a whole, on a workspace that has no files. (On files: tests/pipeline/test_fetcher.py.)"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

import crawler.fetch.fetcher
from crawler.demo.server import serve_terrain
from crawler.fetch.fetcher import EXIT_MISTAKE, Fetcher
from crawler.model.records import Job, PageResult, Release, dump
from crawler.model.settings import Config, CrawlerSettings
from crawler.workspace.clock import read_clock
from crawler.workspace.reading import read_records
from crawler.workspace.runs import Run, RunStatus, write_run
from tests.crawler.workspace.memory_workspace import MemoryWorkspace, MemoryWriter
from tests.pipeline.fetching import PlainTerrain, config_for

HOSTS = ("a.test", "b.test")


class Ending(Fetcher):
    """A fetcher that ends as soon as a question is answered with yes."""

    def __init__(self, config: Config, is_over: Callable[[], bool]) -> None:
        super().__init__(config, 0, 1)
        self._is_over = is_over

    def _is_finished(self) -> bool:
        return super()._is_finished() or self._is_over()


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch) -> MemoryWorkspace:
    made = MemoryWorkspace()
    monkeypatch.setattr(crawler.fetch.fetcher, "open_workspace", lambda root: made)
    write_run(made, Run(1, RunStatus.RUNNING))
    return made


def release(workspace: MemoryWorkspace, *paths: str) -> None:
    releases = workspace.releases.writer(segment_bytes=1 << 20)
    for turn, host in enumerate(HOSTS):
        jobs = [Job(1, f"https://{host}/{path}", f"https://{host}/{path}", host) for path in paths]
        workspace.job_writer().write(host, jobs)
        releases.append(dump(Release(1, host, len(jobs), turn)))


def pages(workspace: MemoryWorkspace) -> list[PageResult]:
    return [page for page, _ in read_records(workspace.results.reader("fetcher-01"), PageResult)]


def test_a_fetcher_needs_nothing_but_the_door_of_the_workspace(tmp_path: Path, workspace: MemoryWorkspace) -> None:
    with serve_terrain(PlainTerrain(HOSTS), tmp_path / "server", log=True) as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=100))
        release(workspace, "one", "two")
        fetcher = Ending(config, lambda: fetcher.counts.pages == 4)
        assert fetcher.run(install_signals=False) == 0
        assert sorted(page.key for page in pages(workspace)) == [
            f"https://{host}/{path}" for host in HOSTS for path in ("one", "two")
        ]
        for host in HOSTS:
            assert workspace.job_writer().is_worked_off(host)
            assert workspace.bookmark(host).holder is None
            claim = workspace.claim(host)
            assert claim is not None and claim.token == 2, "its claim was the first, and is released"
            record = workspace.gate(host, read_clock).read()
            asked = sum(seen.host == host for seen in served.requests())
            assert (record.sent, record.ledgered) == (asked, asked)
    assert not (tmp_path / "ws").exists(), "nothing was written to files"


def test_the_heartbeat_has_the_facts_that_status_reads(tmp_path: Path, workspace: MemoryWorkspace) -> None:
    with serve_terrain(PlainTerrain(HOSTS), tmp_path / "server") as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=100))
        release(workspace, "one")
        fetcher = Ending(config, lambda: fetcher.counts.pages == 2)
        assert fetcher.run(install_signals=False) == 0
    beat = orjson.loads(workspace.heartbeats()["fetcher-01"])
    assert beat["doing"] == "stopped"
    assert list(beat["facts"]) == [
        *("run", "in_flight", "on_the_wire", "slots", "domains", "waiting", "backlog", "heard"),
        *("pages", "requests", "errors", "next_due", "most_domains", "open_files"),
        *("asked_ns", "asked_names_ns", "failing_since_ns", "failing_domains", "last_success_ns", "good_hosts"),
        "withheld",
    ]
    assert (beat["facts"]["pages"], beat["facts"]["requests"], beat["facts"]["errors"]) == (2, 6, 0)


@pytest.mark.parametrize(("problem", "code"), [(OSError(28, "No space left on device"), 1), (KeyError(), EXIT_MISTAKE)])
def test_an_error_of_the_log_ends_the_process_and_moves_no_bookmark(
    tmp_path: Path, workspace: MemoryWorkspace, monkeypatch: pytest.MonkeyPatch, problem: Exception, code: int
) -> None:
    def fail(writer: MemoryWriter, bodies: object) -> None:
        raise problem

    with serve_terrain(PlainTerrain(HOSTS), tmp_path / "server") as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=100))
        release(workspace, "one")
        monkeypatch.setattr(MemoryWriter, "append_all", fail)
        assert Ending(config, lambda: False).run(install_signals=False) == code
    assert pages(workspace) == []
    for host in HOSTS:
        assert not workspace.job_writer().is_worked_off(host)
        assert workspace.claim(host) is not None
