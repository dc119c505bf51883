"""Bookmarks, leases, and what a fetcher finds of one before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.hosts import RobotsCache
from crawler.leases import BOOKMARK, Bookmark, ResultIndex, read_bookmark, take_lease, write_bookmark
from crawler.records import Closure, DomainEvent, Exchange, PageResult, RobotsResult, dump
from crawler.spool import Cursor, Writer
from crawler.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path)
    workspace.prepare()
    return workspace


def page(
    key: str, domain: str = "a.test", requests: int = 2, closes: Closure | None = None, run: int = 1
) -> PageResult:
    ledger = tuple(Exchange(0, number, "GET", domain, 200, 1, domain) for number in range(requests))
    return PageResult(run, key, key, domain, "", "processed", hrefs=("/x",) * 50, ledger=ledger, closes=closes)


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


def test_a_lease_is_held_by_one(workspace: Workspace) -> None:
    mine = take_lease(workspace, "a.test")
    assert mine is not None
    assert take_lease(workspace, "a.test") is None
    assert take_lease(workspace, "b.test") is not None
    mine.release()
    assert take_lease(workspace, "a.test") is not None


def test_what_a_dead_fetcher_left_is_found_by_domain_from_any_cursor(workspace: Workspace) -> None:
    folder = workspace.results_of("fetcher-01")
    writer = Writer(folder, segment_bytes=2000)
    first = writer.append(dump(page("https://a.test/1")))
    second = writer.append(dump(page("https://b.test/1", "b.test")))
    writer.append(dump(page("https://a.test/2", requests=3, closes=Closure("rate-limited", 5))))
    writer.append(dump(DomainEvent(1, "a.test", "", "lost-requests", 4)))
    writer.close()
    index = ResultIndex(folder)
    late = index.since("a.test", second)
    assert late.done == {(1, "https://a.test/2")}
    assert sum(requests for _, _, requests in late.ledgered) == 3
    assert late.closes == {1: Closure("rate-limited", 5)}
    assert late.told == {1}
    assert index.since("a.test", Cursor()).done == {(1, "https://a.test/1"), (1, "https://a.test/2")}
    assert index.since("a.test", first).done == {(1, "https://a.test/2")}
    assert index.since("b.test", Cursor()).done == {(1, "https://b.test/1")}
    assert index.since("c.test", Cursor()).done == set()


def test_an_index_sees_what_is_written_after_its_first_look(workspace: Workspace) -> None:
    folder = workspace.results_of("fetcher-01")
    writer = Writer(folder)
    writer.append(dump(page("https://a.test/1")))
    index = ResultIndex(folder)
    assert len(index.since("a.test", Cursor()).done) == 1
    writer.append(dump(page("https://a.test/2")))
    assert len(index.since("a.test", Cursor()).done) == 2
    writer.close()


def test_requests_to_other_domains_are_not_counted_for_this_one(workspace: Workspace) -> None:
    folder = workspace.results_of("fetcher-01")
    writer = Writer(folder)
    ledger = (Exchange(0, 0, "GET", "a.test", 302, 1, "a.test"), Exchange(0, 9, "GET", "b.test", 200, 1, "b.test"))
    writer.append(dump(RobotsResult(1, "a.test", "a.test", "", "parsed", ledger=ledger)))
    writer.close()
    index = ResultIndex(folder)
    assert [requests for _, _, requests in index.since("a.test", Cursor()).ledgered] == [1]
    assert index.since("b.test", Cursor()).ledgered == []


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


def test_a_robots_txt_is_known_for_a_day_and_across_restarts(workspace: Workspace) -> None:
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


def test_a_robots_txt_from_the_future_is_asked_for_again(workspace: Workspace) -> None:
    wall = Wall()
    cache = RobotsCache(workspace, wall)
    cache.learn(learned(), wall())
    wall.ms -= 1
    assert cache.policy(1, "a.test") is None


def test_an_unreachable_host_is_known_as_such_for_its_run_only(workspace: Workspace) -> None:
    wall = Wall()
    RobotsCache(workspace, wall).learn(learned("unreachable"), wall())
    cache = RobotsCache(workspace, wall)
    policy = cache.policy(1, "a.test")
    assert policy is not None and policy.error == "connection-refused: no"
    assert cache.policy(2, "a.test") is None


def test_a_broken_cache_file_is_no_knowledge(workspace: Workspace) -> None:
    workspace.robots_of("a.test").write_bytes(b"{broken")
    assert RobotsCache(workspace, Wall()).policy(1, "a.test") is None
