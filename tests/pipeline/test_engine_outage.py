"""A whole fetcher while the engine is away: what waits in its memory, and that it goes on where it was."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from crawler.demo.server import Served, serve_terrain
from crawler.engine.engine_connection import connect
from crawler.engine.schemas import upgrade
from crawler.fetch.fetcher import Fetcher
from crawler.model.records import Job, PageResult, Release, dump, parse
from crawler.model.settings import CrawlerSettings, EngineSettings
from crawler.workspace.control import StageControl
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.postgres.record_logs import RecordWriter
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from crawler.workspace.runs import Run, RunStatus, write_run
from tests.pipeline.fetching import PlainTerrain, config_for, wait_for
from tests.postgres_server import own_server

SLOTS = 4
HOSTS = tuple(f"d{number}.test" for number in range(3 * SLOTS))
JOBS = 12  # of each host
PAGES = JOBS * len(HOSTS)


def test_no_more_results_wait_in_memory_than_visits_were_under_way_and_none_is_lost(tmp_path: Path) -> None:
    """docs/scale.md: however long the engine is away, and however many jobs and domains are due."""
    with own_server() as engine, serve_terrain(PlainTerrain(HOSTS), tmp_path / "server") as served:
        with connect(engine.url(), "test") as admin:
            upgrade(admin, WORKSPACE)
        settings = CrawlerSettings(minimum_time_on_page=100, max_concurrent_pages_open=SLOTS)
        config = replace(config_for(served, tmp_path / "ws", settings), engine=EngineSettings(engine.url()))
        workspace = EngineWorkspace(config.workspace, engine.url())
        release(workspace)
        fetcher = Fetcher(config, 0, 1)
        with working(fetcher):
            wait_for(lambda: fetcher.counts.pages >= SLOTS)
            stop_with_pages_on_the_wire(served, fetcher)
            engine.stop()
            os.kill(served.pid, signal.SIGCONT)
            # All have their answers, and every slot has a domain again, whose request waits for the engine's word.
            wait_for(lambda: not fetcher._requester.in_flight and bool(kept_pages(fetcher)))
            wait_for(lambda: fetcher._loop._open == SLOTS)
            assert kept_pages(fetcher) <= SLOTS and not fetcher._requester.in_flight
            assert fetcher.counts.pages < PAGES
            engine.start()
            wait_for(lambda: fetcher.counts.pages == PAGES, 60)
            write_run(workspace, Run(1, RunStatus.COMPLETED))
        found = Counter(
            record.key
            for line in workspace.results.reader("fetcher-01")
            if isinstance(record := parse(line.body), PageResult)
        )
        assert len(found) == PAGES and set(found.values()) == {1}
        workspace.close()


def release(workspace: EngineWorkspace) -> None:
    """Put jobs into the engine as the scheduler would."""
    workspace.prepare()
    write_run(workspace, Run(1, RunStatus.RUNNING))
    jobs, releases = workspace.job_writer(), workspace.releases.writer(segment_bytes=1 << 20)
    for turn, host in enumerate(HOSTS):
        urls = [f"https://{host}/p{number}" for number in range(JOBS)]
        jobs.write(host, [Job(1, url, url, host) for url in urls])
        releases.append(dump(Release(1, host, JOBS, turn)))
    releases.close()


def stop_with_pages_on_the_wire(served: Served, fetcher: Fetcher) -> None:
    """Stop the sites while every slot waits for an answer, one or more for a page, and all else is in the engine."""
    while True:
        os.kill(served.pid, signal.SIGSTOP)
        wait_for(lambda: fetcher._requester.in_flight == SLOTS)
        ended = fetcher._requester.ended
        wait_for(lambda: not kept_lines(fetcher))
        out = [request for request, _ in list(fetcher._requester._out.values())]
        if ended == fetcher._requester.ended and any(each.method == "GET" and "/p" in each.url for each in out):
            return
        os.kill(served.pid, signal.SIGCONT)
        wait_for(lambda ended=ended: fetcher._requester.ended > ended)  # type: ignore[misc]


def kept_lines(fetcher: Fetcher) -> list[bytes]:
    """The lines of its log that are in its memory alone."""
    writer = fetcher._journal._writer
    assert isinstance(writer, RecordWriter)
    return [line for _, _, line in list(writer._lines)]


def kept_pages(fetcher: Fetcher) -> int:
    """Results among them: a line about robots.txt names no page."""
    return sum(b".test/p" in line for line in kept_lines(fetcher))


@contextmanager
def working(fetcher: Fetcher) -> Iterator[None]:
    """The fetcher at work in a thread. It ends with its run, or if the test fails."""
    controls: list[StageControl] = []
    thread = threading.Thread(
        target=fetcher.run, kwargs={"install_signals": False, "on_control": controls.append}, daemon=True
    )
    thread.start()
    wait_for(lambda: bool(controls) and hasattr(fetcher, "_loop"))
    try:
        yield
    except BaseException:
        controls[0].signals += 1
        raise
    finally:
        thread.join(30)
    assert not thread.is_alive()
