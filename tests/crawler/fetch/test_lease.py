"""Bookmarks and leases, and what is known of each host's robots.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.fetch.lease import Domain
from crawler.fetch.robots_cache import RobotsCache
from crawler.model.records import RobotsResult
from crawler.pace.gate_record import GateRecord
from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.gate_file import GateFile
from crawler.workspace.files.job_spools import BOOKMARK, read_bookmark, write_bookmark
from crawler.workspace.files.spool import Reader
from crawler.workspace.log import Cursor


@pytest.fixture
def workspace(tmp_path: Path) -> FileWorkspace:
    workspace = FileWorkspace(tmp_path)
    workspace.prepare()
    return workspace


@pytest.mark.parametrize("holder", [None, "fetcher-03"])
def test_a_bookmark_comes_back_as_it_was_written(tmp_path: Path, holder: str | None) -> None:
    bookmark = Bookmark(Cursor(7_000_001, 42), holder, Cursor(3, 99))
    write_bookmark(tmp_path, bookmark)
    assert read_bookmark(tmp_path) == bookmark


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"v":1}', b'{"segment":"x","offset":0}', b"\xff"])
def test_an_unreadable_bookmark_is_the_very_start(tmp_path: Path, content: bytes) -> None:
    (tmp_path / BOOKMARK).write_bytes(content)
    assert read_bookmark(tmp_path) == Bookmark()


def test_a_bookmark_for_a_folder_that_is_gone_is_not_needed(tmp_path: Path) -> None:
    write_bookmark(tmp_path / "gone", Bookmark(Cursor(1, 1)))
    assert not (tmp_path / "gone").exists()


def test_a_lease_is_held_by_one(workspace: FileWorkspace) -> None:
    mine = workspace.claim("a.test")
    assert mine is not None
    assert workspace.claim("a.test") is None
    assert workspace.claim("b.test") is not None
    mine.release()
    assert workspace.claim("a.test") is not None


def test_a_domain_that_has_had_more_stands_behind_but_not_for_ever(workspace: FileWorkspace) -> None:
    def handicap(name: str, requests: int) -> int:
        lease = workspace.claim(name)
        assert lease is not None
        domain = Domain(
            name, lease, GateFile(workspace.layout.gate_of(name)), Reader(workspace.layout.jobs_of(name)), Bookmark()
        )
        domain.gate.record = GateRecord(sent=requests)
        found = domain.handicap()
        domain.drop()
        return found

    assert handicap("a.test", 0) < handicap("a.test", 1) < handicap("a.test", 50)
    assert handicap("a.test", 50_000) == handicap("a.test", 5_000_000) < 3_000_000_000
    a_page_more = handicap("a.test", 2) - handicap("a.test", 0)
    alike = sorted(handicap(f"{number}.test", 10) for number in range(40))
    assert alike[-1] - alike[0] < a_page_more, "what tells them apart is what they have had"
    middle = (alike[0] + alike[-1]) / 2
    assert 10 < sum(each < middle for each in alike) < 30, "half are at a HEAD while half are at a GET"


# -- robots.txt by host ------------------------------------------------------------------------------------

DAY_MS = 24 * 3600 * 1000


class Wall:
    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.ms


def learned(outcome: str = "parsed", run: int = 1) -> RobotsResult:
    error = "connection-refused: no" if outcome == "unreachable" else None
    return RobotsResult(run, "a.test", "a.test", "", outcome, 200, "User-agent: *\nDisallow: /x\n", 1.5, error)


def test_a_robots_txt_is_known_for_a_day_and_across_restarts(workspace: FileWorkspace) -> None:
    wall = Wall()
    RobotsCache(workspace, wall).learn(learned(), wall())
    cache = RobotsCache(workspace, wall)
    policy = cache.policy(2, "a.test")
    assert policy is not None
    assert policy.crawl_delay_ms == 1500
    assert not policy.rules.allows("https://a.test/x", "SumiRipple")
    wall.ms += DAY_MS - 1
    assert cache.policy(2, "a.test") is not None
    wall.ms += 1
    assert cache.policy(2, "a.test") is None


def test_a_robots_txt_from_the_future_is_asked_for_again(workspace: FileWorkspace) -> None:
    wall = Wall()
    cache = RobotsCache(workspace, wall)
    cache.learn(learned(), wall())
    wall.ms -= 1
    assert cache.policy(1, "a.test") is None


def test_an_unreachable_host_is_known_as_such_for_its_run_only(workspace: FileWorkspace) -> None:
    wall = Wall()
    RobotsCache(workspace, wall).learn(learned("unreachable"), wall())
    cache = RobotsCache(workspace, wall)
    policy = cache.policy(1, "a.test")
    assert policy is not None and policy.error == "connection-refused: no"
    assert cache.policy(2, "a.test") is None


def test_a_broken_cache_file_is_no_knowledge(workspace: FileWorkspace) -> None:
    workspace.layout.robots_of("a.test").write_bytes(b"{broken")
    assert RobotsCache(workspace, Wall()).policy(1, "a.test") is None
