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
from crawler.model.records import Job
from crawler.supervise.suspension import are_requests_paused
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.reading import read_records
from tests.pipeline.crawling import eventually, pages_done, rows, run, started
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


def released(folder: Path) -> set[str]:
    """The pages whose jobs lie in the workspace, done or not, as the server's log names them."""
    workspace = FileWorkspace(folder / "workspace")
    jobs = (job for site in SITES for job, _ in read_records(workspace.jobs(site), Job))
    return {job.wire.removeprefix("https://") for job in jobs}


def waiting(served: Served, folder: Path) -> set[str]:
    """The pages that were released and not asked for."""
    return released(folder) - set(requested(served))


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


def finished_anew(words: list[str | Path], folder: Path) -> str:
    with started(*words, cwd=folder) as crawl:
        return finished(crawl)


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


@pytest.mark.parametrize("how", ["reload", "reload in one process", "kill and restart", "reload that denies, too"])
def test_a_limit_that_comes_in_the_middle_holds_as_if_it_had_been_there(how: str, served: Served, folder: Path) -> None:
    config = config_for(folder, served, SITES, more="[limits]")
    words: list[str | Path] = ["crawl", config, *(["--unified"] if how.endswith("process") else [])]
    most = 60
    with started(*words, cwd=folder) as crawl:
        under_way(folder)
        pause(folder)
        # The windows that are out hold more than the limit leaves.
        done = set(requested(served))
        assert len(done) < most < len(done | waiting(served, folder))
        change(config, "[limits]\n", f"[limits]\nmax-pages = {most}\n")
        if how.endswith("too"):
            change(config, "[limits]\n", DENY.replace("[2-9]", "[0-9]$") + "[limits]\n")
        if how.startswith("reload"):
            run("reload", config, cwd=folder)
            go_on(folder)
            finished(crawl)
    if how.endswith("restart"):
        go_on(folder)
        finished_anew(words, folder)
    pages = requested(served)
    assert len(set(pages)) == most
    assert len(pages) <= most + len(SITES), "a visit that was cut off may be made again"
    assert rows(folder, "SELECT status FROM runs") == [("interrupted",)]
    assert is_sound(config, folder)


def test_a_limit_of_domains_counts_those_that_were_asked_not_those_that_had_jobs(served: Served, folder: Path) -> None:
    config = config_for(folder, served, SITES, more="[limits]")
    (folder / "workspace").mkdir()
    (folder / "workspace/pause.fetcher").touch()
    with started("crawl", config, cwd=folder) as crawl:
        eventually(lambda: len(released(folder)) >= len(SITES), "every site has a job")
        change(config, "[limits]\n", "[limits]\nmax-domains = 2\n")
        run("reload", config, cwd=folder)
        go_on(folder)
        finished(crawl)
    assert len({page.split("/")[0] for page in requested(served)}) == 2
    assert rows(folder, "SELECT status FROM runs") == [("interrupted",)]
    assert is_sound(config, folder)


@pytest.mark.parametrize("how", ["reload", "reload in one process", "Ctrl-C and restart", "kill and restart"])
def test_pages_that_come_out_of_scope_are_not_asked_for(how: str, served: Served, folder: Path) -> None:
    config = config_for(folder, served, SITES, more="[scope]")
    words: list[str | Path] = ["crawl", config, *(["--unified"] if how.endswith("process") else [])]
    with started(*words, cwd=folder) as crawl:
        under_way(folder)
        pause(folder)
        assert any(DENIED.search(page) for page in waiting(served, folder)), "some are released"
        before = len(served.requests())
        change(config, "[scope]\n", DENY)
        if how.startswith("reload"):
            run("reload", config, cwd=folder)
            go_on(folder)
            finished(crawl)
        elif how.startswith("Ctrl-C"):
            os.kill(crawl.pid, signal.SIGINT)
            crawl.wait(timeout=90)
    if how.endswith("restart"):
        go_on(folder)
        finished_anew(words, folder)
    assert [page for page in requested(served, before) if DENIED.search(page)] == []
    assert rows(folder, "SELECT status FROM runs") == [("completed",)]
    out = rows(folder, "SELECT url FROM pages WHERE error_message LIKE 'out-of-scope%' AND state = 'discovered'")
    assert out and all(DENIED.search(url) for (url,) in out)
    assert rows(folder, "SELECT count(*) FROM pages WHERE state = 'processed'") == [(PAGES * len(SITES) - len(out),)]
    assert is_sound(config, folder)


def test_fetchers_alone_leave_released_pages_out_that_their_config_denies(served: Served, folder: Path) -> None:
    config = config_for(folder, served, SITES, more="[scope]")
    with started("crawl", config, cwd=folder):
        under_way(folder)
        pause(folder)
    before = len(served.requests())
    out = waiting(served, folder)
    denied = {page for page in out if DENIED.search(page)}
    assert denied and denied != out
    change(config, "[scope]\n", DENY)
    go_on(folder)
    with started("fetch", config, cwd=folder) as fetch:
        eventually(lambda: out - denied <= set(requested(served)), "everything else that was released is asked for")
        os.kill(fetch.pid, signal.SIGINT)
        fetch.communicate(timeout=90)
    finished_anew(["crawl", config], folder)
    assert [page for page in requested(served, before) if DENIED.search(page)] == []
    assert rows(folder, "SELECT status FROM runs") == [("completed",)]
    assert is_sound(config, folder)


def test_pages_that_come_back_into_scope_are_asked_for_once(served: Served, folder: Path) -> None:
    config = config_for(folder, served, SITES, more="[scope]")
    with started("crawl", config, cwd=folder) as crawl:
        under_way(folder)
        pause(folder)
        change(config, "[scope]\n", DENY)
        run("reload", config, cwd=folder)
        eventually(lambda: has_map_of(config, folder), "the map is built under the new rules")
        before = set(requested(served))
        go_on(folder)
        eventually(lambda: len(set(requested(served))) > len(before) + len(SITES), "other pages are asked for")
        change(config, DENY, "[scope]\n")
        run("reload", config, cwd=folder)
        output = finished(crawl)
    assert "released again" not in output
    asked = [page for page in requested(served) if DENIED.search(page)]
    assert len(asked) == len(set(asked))
    assert rows(folder, "SELECT count(*) FROM pages WHERE state = 'processed'") == [(PAGES * len(SITES),)]
    assert is_sound(config, folder)
