"""Pages that bring a fetcher to a stop, in a pool under its supervisor: each costs one page, not a run.

No page is known that does this. So the fetchers of these tests have a flaw put into them: a page with the word POISON
keeps the interpreter in one call of C code that never returns and never releases the lock; one with the word HUNGRY
fills the memory and keeps it.
"""

from __future__ import annotations

import signal
import subprocess
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from crawler.demo.server import serve_terrain
from crawler.demo.sites import Answer, response
from crawler.model.settings import Config, CrawlerSettings
from crawler.model.states import slug_of
from crawler.supervise.exit_rules import PATIENCE
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.pipeline.fetching import (
    PlainTerrain,
    config_for,
    finish,
    pages,
    prepare,
    release,
    start_fetcher,
    start_pool,
    wait_for,
)

FLAW = """
import re
import time
import crawler.visit.flow as flow

sound = flow.read

def flawed(body, *arguments, **options):
    if b"POISON" in body:
        re.match("(a+)+$", "a" * 60 + "b")  # until the end of the world
    if b"HUNGRY" in body:
        eaten = b"x" * (18 << 24)  # the limit, and it has some already: to be filled before the time is up
        time.sleep(3600)  # without CPU: the memory is found long before the time
    return sound(body, *arguments, **options)

flow.read = flawed
"""
LESS_THAN_PATIENCE = PATIENCE - 10  # seconds; the supervisor's deadline after an interrupt is a tenth of it
HOSTS = ("poison.test", "hungry.test", "a.test", "b.test", "c.test")


@dataclass
class PoisonTerrain(PlainTerrain):
    def answer(self, host: str, method: str, target: str) -> Answer:
        for word in ("poison", "hungry"):
            if target.startswith(f"/{word}"):
                return Answer(response(200, f"<p>{word.upper()}</p>".encode(), with_body=method != "HEAD"))
        return super().answer(host, method, target)


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Config, FileWorkspace]]:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(textwrap.dedent(FLAW))
    monkeypatch.setenv("PYTHONPATH", str(hooks), prepend=":")
    with serve_terrain(PoisonTerrain(HOSTS), tmp_path) as served:
        crawler = CrawlerSettings(minimum_time_on_page=100, retries=1, retry_delay=100)
        config = config_for(served, tmp_path / "ws", crawler, processing_timeout=1000, parse_memory=16 * 1024 * 1024)
        yield config, prepare(config)


def end(process: subprocess.Popen[bytes], workspace: FileWorkspace) -> None:
    finish(workspace)
    try:
        assert process.wait(30) == 0
    finally:
        process.kill()


def test_a_poison_page_costs_one_page_and_no_job_is_lost_or_done_twice(
    pool: tuple[Config, FileWorkspace], tmp_path: Path
) -> None:
    config, workspace = pool
    # Filling memory takes CPU, too, on a busy machine half a second: that must not be taken for slowness.
    config = replace(config, network=replace(config.network, processing_timeout=2000))
    urls = [f"https://{host}/{number}" for host in HOSTS for number in range(5)]
    urls += ["https://poison.test/poison", "https://poison.test/poison-too", "https://hungry.test/hungry"]
    urls += ["https://poison.test/after", "https://hungry.test/after"]
    release(workspace, urls)
    process = start_pool(config, tmp_path, 2)
    try:
        wait_for(lambda: len(pages(workspace)) >= len(urls), 90)
        by_url = {page.wire: page for page in pages(workspace)}
        assert set(by_url) == set(urls)
        assert Counter(page.wire for page in pages(workspace)).most_common(1)[0][1] == 1
        bad = {url: slug_of(page.error) for url, page in by_url.items() if page.state != "processed"}
        assert bad == {
            "https://poison.test/poison": "too-slow",
            "https://poison.test/poison-too": "too-slow",
            "https://hungry.test/hungry": "too-costly",
        }
        end(process, workspace)
    finally:
        process.kill()


def test_an_interrupt_ends_a_pool_that_is_stuck_in_c_code(pool: tuple[Config, FileWorkspace], tmp_path: Path) -> None:
    """The watchdog is not what ends it: that would wait for an hour."""
    config, workspace = pool
    config = replace(config, network=replace(config.network, processing_timeout=3_600_000))
    release(workspace, ["https://poison.test/poison"])
    process = start_pool(config, tmp_path, 1)
    try:
        wait_for(lambda: any(work.domain == "poison.test" for work in workspace.busy_work()))
        process.send_signal(signal.SIGINT)
        assert process.wait(LESS_THAN_PATIENCE) == 130
    finally:
        process.kill()


def test_a_stuck_fetcher_whose_supervisor_is_dead_is_ended_by_the_kernel(
    pool: tuple[Config, FileWorkspace], tmp_path: Path
) -> None:
    """No thread of it runs any more, so nothing in it can notice, and no signal with a handler ends it."""
    config, workspace = pool
    release(workspace, ["https://poison.test/poison"])
    process = start_fetcher(config, tmp_path)
    try:
        assert process.wait(60) == -signal.SIGVTALRM
        assert [work.domain for work in workspace.busy_work()] == ["poison.test"]
    finally:
        process.kill()
