"""Settings that change in the middle of a run hold for every request after that: the server's log is the witness."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from crawler.config.load import load
from crawler.database.digest import digest
from crawler.demo.server import Served, serve_terrain
from crawler.supervise.suspension import are_requests_paused
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.pipeline.crawling import eventually, pages_done, run, started
from tests.pipeline.walks import config_for, site_of, terrain_of

pytestmark = pytest.mark.xdist_group("disturbed-crawl")

SITES = tuple(f"{letter}.test" for letter in "abcd")
PAGES = 50  # of each
DENY = "[scope]\ndeny = ['/leaf/[2-9]']\n"
DENIED = re.compile("/leaf/[2-9]")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve_terrain(terrain_of(*(site_of(host, PAGES, 2) for host in SITES)), tmp_path / "server", log=True) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "crawl"


def requested(served: Served, start: int = 0) -> list[str]:
    """The pages that were asked for, in the order of the server's log, from one of its requests on."""
    return [f"{seen.host}{seen.target}" for seen in served.requests()[start:] if seen.target != "/robots.txt"]


def released(folder: Path) -> list[str]:
    """The keys of the jobs that lie in the workspace, done or not."""
    workspace = FileWorkspace(folder / "workspace")
    lines = [line.body.decode() for site in SITES for line in workspace.jobs(site)]
    return re.findall(r'"(https://[^"]*)"', "".join(lines))


def under_way(folder: Path) -> None:
    """Wait until every site's window is out, some pages are done, and most are not."""
    eventually(lambda: pages_done(folder) >= 20, "some pages are crawled")


def pause(folder: Path) -> None:
    (folder / "workspace/pause.fetcher").touch()
    eventually(lambda: are_requests_paused(FileWorkspace(folder / "workspace")), "no request is on the wire")


def go_on(folder: Path) -> None:
    (folder / "workspace/pause.fetcher").unlink()


def finished(crawl: subprocess.Popen[str]) -> str:
    output, _ = crawl.communicate(timeout=90)
    assert crawl.returncode == 0, output
    return output


def change(config: Path, old: str, new: str) -> None:
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new, 1))


def is_sound(config: Path, folder: Path) -> bool:
    """Was the crawl polite, and does a replay make the same map?"""
    run("audit", config, cwd=folder)
    run("replay", config, "--into", "again.db", "-q", cwd=folder)
    return digest(folder / "again.db") == digest(folder / "sumi-ripple.db")


def has_map_of(config: Path, folder: Path) -> bool:
    with closing(sqlite3.connect(f"file:{folder / 'sumi-ripple.db'}?mode=ro", uri=True)) as db:
        try:
            found = db.execute("SELECT value FROM meta WHERE name = 'map_hash'").fetchone()
        except sqlite3.Error:
            return False
    return found is not None and found[0] == load(config).map_hash


@pytest.mark.parametrize("how", ["reload", "reload in one process", "restart"])
def test_no_request_leaves_under_a_lower_delay_before_it_is_recorded(how: str, served: Served, folder: Path) -> None:
    config = config_for(folder, served, SITES, more="[scope]")
    change(config, "minimum-time-on-page = 100", "minimum-time-on-page = 300")
    held = folder / "workspace/pause.scheduler"
    words: list[str | Path] = ["crawl", config, *(["--unified"] if how.endswith("process") else [])]
    with started(*words, cwd=folder) as crawl:
        under_way(folder)
        held.touch()  # the scheduler of the new settings records nothing for now
        change(config, "minimum-time-on-page = 300", "minimum-time-on-page = 100")
        change(config, "[scope]\n", DENY)
        if how == "restart":
            os.killpg(crawl.pid, signal.SIGKILL)
        else:
            run("reload", config, cwd=folder)
            eventually(lambda: has_map_of(config, folder), "the map is built under the new rules")
            held.unlink()
            finished(crawl)
    if how == "restart":
        with started(*words, cwd=folder) as crawl:
            eventually(lambda: has_map_of(config, folder), "the map is built under the new rules")
            held.unlink()
            finished(crawl)
    assert is_sound(config, folder)
