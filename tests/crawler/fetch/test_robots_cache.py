"""The cache of robots.txt: 24 hours, across restarts, whatever the wall clock does."""

from __future__ import annotations

from crawler.fetch import robots_cache
from crawler.fetch.robots_cache import RobotsCache
from crawler.model.records import Exchange, RobotsResult
from crawler.workspace.clock import boot_id
from crawler.workspace.files.file_workspace import FileWorkspace

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class Clock:
    def __init__(self, ms: int = 1_700_000_000_000) -> None:
        self.ms = ms

    def __call__(self) -> int:
        return self.ms


def learned(outcome: str = "parsed", run: int = 1) -> RobotsResult:
    error = "connection-refused: no" if outcome == "unreachable" else None
    return RobotsResult(run, "a.test", "a.test", "", outcome, 200, "User-agent: *\nDisallow: /x\n", 1.5, error)


def test_a_robots_txt_is_known_for_a_day_and_across_restarts(workspace: FileWorkspace) -> None:
    wall = Clock()
    RobotsCache(workspace, "SumiRipple", wall).learn(learned(), wall())
    cache = RobotsCache(workspace, "SumiRipple", wall)
    policy = cache.policy(2, "a.test")
    assert policy is not None
    assert policy.crawl_delay_ms == 1500
    assert not policy.rules.allows("https://a.test/x", "SumiRipple")
    wall.ms += DAY_MS - 1
    assert cache.policy(2, "a.test") is not None
    wall.ms += 1
    assert cache.policy(2, "a.test") is None


def test_a_robots_txt_from_the_future_is_asked_for_again(workspace: FileWorkspace) -> None:
    wall = Clock()
    cache = RobotsCache(workspace, "SumiRipple", wall)
    cache.learn(learned(), wall())
    wall.ms -= 1
    assert cache.policy(1, "a.test") is None


def test_an_unreachable_host_is_known_as_such_for_its_run_only(workspace: FileWorkspace) -> None:
    wall = Clock()
    RobotsCache(workspace, "SumiRipple", wall).learn(learned("unreachable"), wall())
    cache = RobotsCache(workspace, "SumiRipple", wall)
    policy = cache.policy(1, "a.test")
    assert policy is not None and policy.error == "connection-refused: no"
    assert cache.policy(2, "a.test") is None


def test_a_broken_cache_file_counts_as_none(workspace: FileWorkspace) -> None:
    workspace.layout.robots_of("a.test").write_bytes(b"{broken")
    assert RobotsCache(workspace, "SumiRipple", Clock()).policy(1, "a.test") is None


def test_a_wall_clock_set_back_does_not_make_a_robots_txt_live_longer(workspace: FileWorkspace) -> None:
    wall, mono = Clock(1_700_000_000_000), Clock(5_000_000)
    ledger = (Exchange(wall.ms, mono.ms, "GET", "a.test", 200, 10, "a.test"),)
    result = RobotsResult(1, "a.test", "a.test", "", "parsed", 200, "", boot=boot_id(), ledger=ledger)
    RobotsCache(workspace, "SumiRipple", wall, mono).learn(result, wall.ms)
    cache = RobotsCache(workspace, "SumiRipple", wall, mono)
    wall.ms += 20 * HOUR_MS
    mono.ms += 20 * HOUR_MS
    assert cache.policy(1, "a.test") is not None
    wall.ms -= 10 * HOUR_MS  # somebody sets the clock
    mono.ms += 5 * HOUR_MS
    assert cache.policy(1, "a.test") is None
    later = RobotsCache(workspace, "SumiRipple", wall, mono)
    assert later.policy(1, "a.test") is None, "nor for a process that starts then"


def test_dense_files_of_many_hosts_are_bounded_in_bytes(workspace: FileWorkspace) -> None:
    wall = Clock()
    cache = RobotsCache(workspace, "SumiRipple", wall)
    dense = "User-agent: *\n" + "Disallow: /x\n" * 20_000
    for number in range(40):
        host = f"h{number}.test"
        cache.learn(RobotsResult(1, host, host, "", "parsed", 200, dense), wall())
    assert sum(known.policy.rules.count for known in cache._known.values()) * 512 <= robots_cache._MOST_BYTES
    policy = cache.policy(1, "h0.test")
    assert policy is not None and policy.rules.count == 20_000, "it is read from the workspace again"
