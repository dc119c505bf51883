"""Real fetcher processes against a real HTTPS server on loopback, judged by the server's own log."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from crawler.demo.server import Seen, serve_terrain
from crawler.fetch.fetcher import Fetcher
from crawler.model.messages import NO_RETRIES
from crawler.model.records import DomainEvent, PageResult, RobotsResult, parse
from crawler.model.settings import Config, CrawlerSettings, SpoolSettings
from crawler.observe.audit import audit
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.gate_file import GateFile
from crawler.workspace.files.job_spools import read_bookmark
from crawler.workspace.files.spool import Reader, end_of
from crawler.workspace.log import Cursor
from crawler.workspace.unapplied import progress_facts
from tests.pipeline.fetching import (
    PlainTerrain,
    config_for,
    finish,
    pages,
    prepare,
    records,
    release,
    start_fetcher,
    start_pool,
    wait_for,
)

DELAY = 100  # the smallest that a config may have


@contextmanager
def running(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive its test."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def hosts(count: int) -> tuple[str, ...]:
    return tuple(f"d{number}.test" for number in range(count))


def too_close(requests: list[Seen], delay_ms: int, domain_of: dict[str, str] | None = None) -> list[tuple[Seen, Seen]]:
    """Pairs of requests to one domain that came closer than the delay, by the server's clock."""
    last: dict[str, Seen] = {}
    found = []
    for seen in sorted(requests, key=lambda seen: seen.at_ns):
        domain = seen.host.split(":")[0].removeprefix("www.")
        if domain in last and seen.at_ns - last[domain].at_ns < delay_ms * 1_000_000:
            found.append((last[domain], seen))
        last[domain] = seen
    return found


def status_of(workspace: FileWorkspace, name: str = "fetcher-01") -> dict[str, object]:
    facts: dict[str, object] = orjson.loads(workspace.layout.status_of(name).read_bytes())
    return facts


def test_jobs_become_results_in_order_and_bookmarks_follow(tmp_path: Path) -> None:
    with serve_terrain(PlainTerrain(hosts(4)), tmp_path / "server", log=True) as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        jobs = release(workspace, [f"https://{host}/p{number}" for host in hosts(4) for number in range(5)])
        release(workspace, ["https://d0.test/private/x"])
        with running(start_fetcher(config, tmp_path)) as fetcher:
            wait_for(lambda: len(pages(workspace)) == 21)
            finish(workspace)
            assert fetcher.wait(20) == 0
        results = pages(workspace)
        assert {(page.run, page.key) for page in results} == {(job.run, job.key) for job in jobs} | {
            (1, "https://d0.test/private/x")
        }
        for host in hosts(4):
            visited = [page.key for page in results if page.domain == host and "private" not in page.key]
            assert visited == [f"https://{host}/p{number}" for number in range(5)]
            bookmark = read_bookmark(workspace.layout.jobs_of(host))
            assert bookmark.jobs == end_of(workspace.layout.jobs_of(host))
            assert bookmark.holder is None
        assert {page.state for page in results if "private" in page.key} == {"failed"}
        learned = [record for record in records(workspace) if isinstance(record, RobotsResult)]
        assert sorted(record.host for record in learned) == sorted(hosts(4))
        # The ledgers hold exactly the requests that the server saw.
        ledger = Counter(entry.host for record in [*results, *learned] for entry in record.ledger)
        assert ledger == Counter(seen.host for seen in served.requests())
        assert too_close(served.requests(), DELAY) == []
        assert audit(config).is_clean, list(audit(config).lines())


def test_www_and_bare_host_of_a_domain_share_one_gate(tmp_path: Path) -> None:
    names = ("both.test", "www.both.test")
    with serve_terrain(PlainTerrain(names), tmp_path / "server", log=True) as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        release(workspace, [f"https://{names[number % 2]}/p{number}" for number in range(6)])
        with running(start_fetcher(config, tmp_path)):
            wait_for(lambda: len(pages(workspace)) == 6)
            finish(workspace)
        assert {seen.host for seen in served.requests()} == set(names)
        assert too_close(served.requests(), DELAY) == []


def test_a_crawl_delay_in_robots_txt_is_kept_with_its_fraction(tmp_path: Path) -> None:
    terrain = PlainTerrain(("slow.test",), robots={"slow.test": b"User-agent: *\nCrawl-delay: 0.35\n"})
    with serve_terrain(terrain, tmp_path / "server", log=True) as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        release(workspace, [f"https://slow.test/p{number}" for number in range(3)])
        with running(start_fetcher(config, tmp_path)):
            wait_for(lambda: len(pages(workspace)) == 3)
            finish(workspace)
        assert too_close(served.requests(), 350) == []
        assert audit(config).is_clean


def test_a_429_closes_the_domain_and_its_other_jobs_are_skipped(tmp_path: Path) -> None:
    with serve_terrain(PlainTerrain(hosts(1)), tmp_path / "server", log=True) as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        release(workspace, ["https://d0.test/a", "https://d0.test/429", "https://d0.test/b", "https://d0.test/c"])
        with running(start_fetcher(config, tmp_path)):
            folder = workspace.layout.jobs_of("d0.test")
            wait_for(lambda: read_bookmark(folder).jobs == end_of(folder))
            finish(workspace)
        results = pages(workspace)
        assert [page.state for page in results] == ["processed", "rate_limited"]
        assert results[1].closes is not None
        assert (results[1].closes.reason, results[1].closes.request_number) == ("rate-limited", 4)
        before = len(served.requests())
        # The next fetcher knows the closure, and the next run begins without it.
        release(workspace, ["https://d0.test/d"])
        prepare(config, run=2)
        release(workspace, ["https://d0.test/e"], run=2)
        with running(start_fetcher(config, tmp_path)):
            wait_for(lambda: len(pages(workspace)) == 3)
            finish(workspace, run=2)
        assert pages(workspace)[-1].key == "https://d0.test/e"
        assert not any(seen.target == "/d" for seen in served.requests()[before:])


def test_the_budget_of_requests_closes_the_domain(tmp_path: Path) -> None:
    with serve_terrain(PlainTerrain(hosts(1)), tmp_path / "server", log=True) as served:
        settings = CrawlerSettings(minimum_time_on_page=DELAY, max_domain_requests=6)
        config = config_for(served, tmp_path / "ws", settings)
        workspace = prepare(config)
        release(workspace, [f"https://d0.test/p{number}" for number in range(6)])
        with running(start_fetcher(config, tmp_path)):
            folder = workspace.layout.jobs_of("d0.test")
            wait_for(lambda: read_bookmark(folder).jobs == end_of(folder))
            finish(workspace)
        assert len(served.requests()) == 6
        results = pages(workspace)
        assert [page.state for page in results] == ["processed", "processed", "request_limit_hit"]
        assert results[-1].closes is not None and results[-1].closes.limit == 6
        assert audit(config).is_clean


def test_a_larger_budget_opens_a_domain_that_the_smaller_one_closed(tmp_path: Path) -> None:
    with serve_terrain(PlainTerrain(hosts(1)), tmp_path / "server", log=True) as served:
        small = CrawlerSettings(minimum_time_on_page=DELAY, max_domain_requests=3)
        config = config_for(served, tmp_path / "ws", small)
        workspace = prepare(config)
        folder = workspace.layout.jobs_of("d0.test")
        for budget, number, requests in ((3, 0, 3), (3, 1, 3), (5, 2, 5)):
            config = config_for(served, tmp_path / "ws", replace(small, max_domain_requests=budget))
            # The first page takes all of the small budget, and the second one closes the domain.
            release(workspace, [f"https://d0.test/p{number}-{place}" for place in range(3)])
            with running(start_fetcher(config, tmp_path)) as fetcher:
                wait_for(lambda: read_bookmark(folder).jobs == end_of(folder))
                workspace.layout.flag("stop").touch()
                assert fetcher.wait(20) == 0
            workspace.layout.flag("stop").unlink()
            assert len(served.requests()) == requests
        closes = [page.closes for page in pages(workspace) if page.closes]
        assert [(each.reason, each.limit) for each in closes] == [("request-limit", 3), ("request-limit", 5)]


def test_a_closure_of_an_earlier_fetcher_is_reported_once_more_for_the_jobs_that_it_skips(tmp_path: Path) -> None:
    """The line that reported it first may have been damaged since."""
    with serve_terrain(PlainTerrain(hosts(1)), tmp_path / "server", log=True) as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        folder = workspace.layout.jobs_of("d0.test")
        reported = []
        for urls in (["https://d0.test/429", "https://d0.test/a"], ["https://d0.test/b", "https://d0.test/c"]):
            release(workspace, urls)
            with running(start_fetcher(config, tmp_path)) as fetcher:
                wait_for(lambda: read_bookmark(folder).jobs == end_of(folder))
                workspace.layout.flag("stop").touch()
                assert fetcher.wait(20) == 0
            workspace.layout.flag("stop").unlink()
            reported.append([record for record in records(workspace) if isinstance(record, DomainEvent)])
        assert reported[0] == []
        (again,) = reported[1]
        (closed,) = pages(workspace)
        assert (again.event, again.run, again.domain, again.closes) == ("closed", 1, "d0.test", closed.closes)
        assert len(served.requests()) == 2


@pytest.mark.xdist_group("killed-fetchers")
@pytest.mark.parametrize("seed", [1])
def test_over_20_killed_and_restarted_fetchers_pace_budget_and_results_hold(tmp_path: Path, seed: int) -> None:
    """The server's log decides: no two requests to a domain closer than the delay, no budget exceeded. And the
    result spools: no visit was made twice whose result was there."""
    draw = random.Random(seed)
    count, budget, delay = 12, 20, 500
    # Answers take their time, so that most deaths leave requests on the wire; and the delay is longer than a new
    # process needs to start, so that a forgotten clock would show.
    with serve_terrain(PlainTerrain(hosts(count), delay=0.15), tmp_path / "server", log=True) as served:
        settings = CrawlerSettings(minimum_time_on_page=delay, max_domain_requests=budget, max_concurrent_pages_open=8)
        config = config_for(served, tmp_path / "ws", settings)
        workspace = prepare(config)
        jobs = release(workspace, [f"https://{host}/p{number}" for host in hosts(count) for number in range(12)])
        for _ in range(20):
            before = len(served.requests())
            pair = [start_fetcher(config, tmp_path, index, 2) for index in range(2)]
            try:
                wait_for(lambda: len(served.requests()) > before + 2)  # noqa: B023
                time.sleep(draw.uniform(0, 0.5))  # any moment will do: this one is when the axe falls
            finally:
                for process in pair:
                    os.kill(process.pid, signal.SIGKILL)
                for process in pair:
                    process.wait()
        with running(start_fetcher(config, tmp_path)) as last:
            folders = [workspace.layout.jobs_of(host) for host in hosts(count)]
            wait_for(lambda: all(read_bookmark(folder).jobs == end_of(folder) for folder in folders), 60)
            finish(workspace)
            assert last.wait(20) == 0
        seen = served.requests()
        assert too_close(seen, delay) == []
        assert max(Counter(one.host for one in seen).values()) <= budget
        results = pages(workspace)
        assert max(Counter((page.run, page.key) for page in results).values()) == 1
        settled = {page.key for page in results}
        closed = {page.domain for page in results if page.closes}
        assert closed, "the budget should have been in reach"
        assert {job.key for job in jobs if job.domain not in closed} <= settled
        # Requests without a ledger entry are reported as lost: together they are those that the server saw.
        in_ledgers: Counter[str] = Counter()
        for record in records(workspace):
            if isinstance(record, PageResult | RobotsResult):
                in_ledgers.update(entry.domain for entry in record.ledger)
            elif isinstance(record, DomainEvent) and record.event == "lost-requests":
                in_ledgers[record.domain] += record.count
        at_server = Counter(one.host for one in seen)
        for host in hosts(count):
            # A request that was counted and killed before it reached the server is in one and not in the other.
            assert at_server[host] <= in_ledgers[host] <= at_server[host] + 21
        report = audit(config)
        assert report.is_clean, list(report.lines())


@pytest.mark.xdist_group("timed-fetchers")
def test_no_request_leaves_two_seconds_after_pause_and_all_goes_on_after_it(tmp_path: Path) -> None:
    with serve_terrain(PlainTerrain(hosts(8)), tmp_path / "server", log=True) as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        jobs = release(workspace, [f"https://{host}/p{number}" for host in hosts(8) for number in range(12)])
        with running(start_fetcher(config, tmp_path)) as fetcher:
            wait_for(lambda: len(served.requests()) > 20)
            workspace.layout.flag("pause").touch()
            paused_ns = time.monotonic_ns()
            wait_for(lambda: time.monotonic_ns() > paused_ns + 2_000_000_000)
            at_two_seconds = len(served.requests())
            wait_for(lambda: time.monotonic_ns() > paused_ns + 3_500_000_000)
            assert len(served.requests()) == at_two_seconds
            assert status_of(workspace)["doing"] == "paused"
            workspace.layout.flag("pause").unlink()
            wait_for(lambda: len(pages(workspace)) == len(jobs), 60)
            finish(workspace)
            assert fetcher.wait(20) == 0
        assert too_close(served.requests(), DELAY) == []


def test_a_stop_finishes_half_made_visits_and_the_other_jobs_are_done_later(tmp_path: Path) -> None:
    with serve_terrain(PlainTerrain(hosts(3), delay=0.05), tmp_path / "server", log=True) as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        jobs = release(workspace, [f"https://{host}/p{number}" for host in hosts(3) for number in range(10)])
        with running(start_fetcher(config, tmp_path)) as fetcher:
            wait_for(lambda: len(pages(workspace)) >= 3)
            workspace.layout.flag("stop", "fetcher").touch()
            assert fetcher.wait(20) == 0
        stopped_at = len(pages(workspace))
        assert stopped_at < len(jobs)
        assert status_of(workspace)["doing"] == "stopped"
        assert [record for record in records(workspace) if isinstance(record, DomainEvent)] == []
        workspace.layout.flag("stop", "fetcher").unlink()
        with running(start_fetcher(config, tmp_path)):
            wait_for(lambda: len(pages(workspace)) == len(jobs))
            finish(workspace)
        assert Counter(page.key for page in pages(workspace)) == Counter(job.key for job in jobs)


def test_a_first_signal_finishes_and_says_interrupted(tmp_path: Path) -> None:
    with serve_terrain(PlainTerrain(hosts(1)), tmp_path / "server") as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        release(workspace, [f"https://d0.test/p{number}" for number in range(50)])
        with running(start_fetcher(config, tmp_path)) as fetcher:
            wait_for(lambda: len(pages(workspace)) >= 1)
            fetcher.send_signal(signal.SIGINT)
            assert fetcher.wait(20) == 130


def test_two_pools_share_the_slots_and_the_names(tmp_path: Path) -> None:
    """The server counts the requests that it holds at once, from all fetchers."""
    with serve_terrain(PlainTerrain(hosts(16), delay=0.15), tmp_path / "server", log=True) as served:
        settings = CrawlerSettings(minimum_time_on_page=DELAY, max_concurrent_pages_open=3)
        config = config_for(served, tmp_path / "ws", settings)
        workspace = prepare(config)
        jobs = release(workspace, [f"https://{host}/p{number}" for host in hosts(16) for number in range(2)])
        with running(start_pool(config, tmp_path, 2)) as one, running(start_pool(config, tmp_path, 2)) as two:
            wait_for(lambda: len(pages(workspace)) == len(jobs), 60)
            finish(workspace)
            assert one.wait(30) == 0
            assert two.wait(30) == 0
        assert Counter(page.key for page in pages(workspace)) == Counter(job.key for job in jobs)
        names = {path.stem for path in workspace.layout.status.iterdir()}
        assert names == {"fetcher-01", "fetcher-02", "fetcher-03", "fetcher-04"}
        assert too_close(served.requests(), DELAY) == []
        # Each answer is 150 ms in the making: in any such stretch at most 3 pages can have been asked for.
        at = sorted(seen.at_ns for seen in served.requests() if seen.target != "/robots.txt")
        assert all(later - earlier >= 140_000_000 for earlier, later in zip(at, at[3:], strict=False))


def test_a_pool_starts_a_killed_fetcher_again(tmp_path: Path) -> None:
    with serve_terrain(PlainTerrain(hosts(2)), tmp_path / "server") as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        jobs = release(workspace, [f"https://{host}/p{number}" for host in hosts(2) for number in range(20)])
        with running(start_pool(config, tmp_path, 1)) as pool:
            wait_for(lambda: len(pages(workspace)) >= 2)
            pid = status_of(workspace)["pid"]
            assert isinstance(pid, int) and pid != pool.pid
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: len(pages(workspace)) == len(jobs), 60)
            finish(workspace)
            assert pool.wait(20) == 0
        assert Counter(page.key for page in pages(workspace)) == Counter(job.key for job in jobs)


def test_a_fetcher_whose_pool_is_killed_stops_by_itself(tmp_path: Path) -> None:
    with serve_terrain(PlainTerrain(hosts(1)), tmp_path / "server") as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        release(workspace, [f"https://d0.test/p{number}" for number in range(200)])
        with running(start_pool(config, tmp_path, 1)) as pool:
            wait_for(lambda: len(pages(workspace)) >= 1)
            os.kill(pool.pid, signal.SIGKILL)
            pool.wait()
            wait_for(lambda: not workspace.is_role_taken("fetcher-01"))
        assert status_of(workspace)["doing"] == "stopped"


def test_a_full_disk_stops_the_fetcher_with_one_sentence_and_acknowledges_nothing(tmp_path: Path) -> None:
    """A file size limit stands for the full disk: the write that crosses it fails for real."""
    with serve_terrain(PlainTerrain(hosts(2)), tmp_path / "server") as served:
        config = replace(
            config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY)),
            spool=SpoolSettings(segment_size=1 << 20),
        )
        workspace = prepare(config)
        jobs = release(workspace, [f"https://{host}/p{number}" for host in hosts(2) for number in range(30)])

        def cramped() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))

        with running(start_fetcher(config, tmp_path, preexec=cramped, capture=True)) as fetcher:
            _, errors = fetcher.communicate(timeout=60)
            assert fetcher.returncode == 1
        sentences = [line for line in errors.decode().splitlines() if "stops:" in line]
        assert len(sentences) == 1, errors
        assert "File too large" in sentences[0]
        assert "Traceback" not in errors.decode()
        before = {page.key for page in pages(workspace)}
        with running(start_fetcher(config, tmp_path)):
            wait_for(lambda: len(pages(workspace)) == len(jobs))
            finish(workspace)
        assert before < {page.key for page in pages(workspace)}
        assert Counter(page.key for page in pages(workspace)) == Counter(job.key for job in jobs)


def test_a_job_that_was_written_twice_is_done_once(tmp_path: Path) -> None:
    with serve_terrain(PlainTerrain(hosts(1)), tmp_path / "server") as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        release(workspace, ["https://d0.test/a", "https://d0.test/a", "https://d0.test/b"])
        with running(start_fetcher(config, tmp_path)):
            folder = workspace.layout.jobs_of("d0.test")
            wait_for(lambda: read_bookmark(folder).jobs == end_of(folder))
            finish(workspace)
        assert [page.key for page in pages(workspace)] == ["https://d0.test/a", "https://d0.test/b"]


def test_jobs_released_while_a_fetcher_runs_are_found(tmp_path: Path) -> None:
    with serve_terrain(PlainTerrain(hosts(2)), tmp_path / "server") as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        with running(start_fetcher(config, tmp_path)):
            wait_for(lambda: workspace.layout.status_of("fetcher-01").exists())
            release(workspace, ["https://d0.test/a", "https://d1.test/a"])
            wait_for(lambda: len(pages(workspace)) == 2)
            release(workspace, ["https://d0.test/b"])
            wait_for(lambda: len(pages(workspace)) == 3)
            finish(workspace)


def test_domains_are_dealt_out_in_turns(tmp_path: Path) -> None:
    with serve_terrain(PlainTerrain(hosts(8)), tmp_path / "server") as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        with running(start_fetcher(config, tmp_path, 0, 2)), running(start_fetcher(config, tmp_path, 1, 2)):
            wait_for(lambda: all(workspace.layout.status_of(f"fetcher-{number:02d}").exists() for number in (1, 2)))
            release(workspace, [f"https://{host}/a" for host in hosts(8)])
            wait_for(lambda: len(pages(workspace)) == 8)
            finish(workspace)
        shares = [
            {
                page.domain
                for line in Reader(workspace.layout.results_of(name))
                if isinstance(page := parse(line.body), PageResult)
            }
            for name in workspace.results.writers()
        ]
        assert sorted(map(sorted, shares)) == [list(hosts(8)[0::2]), list(hosts(8)[1::2])]


def test_an_idle_domain_is_released(tmp_path: Path) -> None:
    with serve_terrain(PlainTerrain(hosts(1)), tmp_path / "server") as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        release(workspace, ["https://d0.test/a"])
        with running(start_fetcher(config, tmp_path)):
            wait_for(lambda: len(pages(workspace)) == 1)
            assert workspace.claim("d0.test") is None
            wait_for(lambda: (lease := workspace.claim("d0.test")) is not None and lease.release() is None)
            gate = GateFile(workspace.layout.gate_of("d0.test"))
            record = gate.read()
            gate.close()
            assert (record.sent, record.ledgered) == (3, 3)
            finish(workspace)


@pytest.mark.xdist_group("timed-fetchers")
def test_a_fetcher_that_waits_costs_next_to_no_cpu(tmp_path: Path) -> None:
    """CPU time, not wall time: the scheduler of the machine has no say in it."""
    with serve_terrain(PlainTerrain(hosts(30)), tmp_path / "server") as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=60_000))
        workspace = prepare(config)
        release(workspace, [f"https://{host}/p" for host in hosts(30)])
        with running(start_fetcher(config, tmp_path)) as fetcher:
            wait_for(lambda: len([one for one in records(workspace) if isinstance(one, RobotsResult)]) == 30)
            before, started = _cpu_seconds(fetcher.pid), time.monotonic()
            wait_for(lambda: time.monotonic() - started > 4)
            assert (_cpu_seconds(fetcher.pid) - before) / (time.monotonic() - started) < 0.03


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_mistake_in_the_program_costs_a_page_not_the_crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import crawler.visit.flow

    real = crawler.visit.flow.read

    def fragile(body: bytes, *rest: object, **more: object) -> object:
        if b"/p1<" in body:
            raise ZeroDivisionError
        return real(body, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(crawler.visit.flow, "read", fragile)
    with serve_terrain(PlainTerrain(hosts(1)), tmp_path / "server") as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        workspace = prepare(config)
        release(workspace, [f"https://d0.test/p{number}" for number in range(3)])
        fetcher = _Ending(config, workspace, 3)
        assert fetcher.run(install_signals=False) == 0
        assert [page.state for page in pages(workspace)] == ["processed", "failed", "processed"]
        assert pages(workspace)[1].error == "internal-error: ZeroDivisionError"


class _Ending(Fetcher):
    """A fetcher inside the test's own process, that ends after so many pages."""

    def __init__(self, config: Config, workspace: FileWorkspace, count: int) -> None:
        super().__init__(config, 0, 1)
        self._wanted = count

    def _is_finished(self) -> bool:
        return super()._is_finished() or self.counts.pages >= self._wanted


def test_a_pause_that_a_server_asked_for_outlives_the_fetcher_that_made_it(tmp_path: Path) -> None:
    """Retry-After is a minimum, also for the fetcher after one that was killed while it waited."""
    with serve_terrain(PlainTerrain(hosts(1)), tmp_path / "server", log=True) as served:
        config = config_for(served, tmp_path / "workspace", CrawlerSettings(minimum_time_on_page=DELAY, retry_delay=1))
        workspace = prepare(config)
        release(workspace, ["https://d0.test/503"])

        def asked() -> list[Seen]:
            return [seen for seen in served.requests() if seen.target == "/503"]

        def is_paused() -> bool:
            return (
                workspace.layout.gate_of("d0.test").exists()
                and GateFile(workspace.layout.gate_of("d0.test")).read().pause_ms == 3000
            )

        with running(start_fetcher(config, tmp_path)) as fetcher:
            wait_for(is_paused)
            os.kill(fetcher.pid, signal.SIGKILL)
            fetcher.wait()
        before = len(asked())
        with running(start_fetcher(config, tmp_path)) as fetcher:
            wait_for(lambda: len(asked()) > before)
        seen = asked()
        assert seen[before].at_ns - seen[before - 1].at_ns >= 3 * 10**9


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize(
    ("url", "asked", "requests", "retries", "error"),
    [
        ("https://d0.test/502", "/502", 3, 2, "http-502"),
        ("https://d0.test/429", "/429", 2, 1, "http-429"),
        ("https://d1.test/p", "/robots.txt", 3, 0, "robots-unreachable: http-500"),
    ],
)
def test_a_visit_that_is_interrupted_at_every_pause_makes_no_more_retries_than_the_config_allows(
    tmp_path: Path, how: signal.Signals, url: str, asked: str, requests: int, retries: int, error: str
) -> None:
    terrain = PlainTerrain(hosts(2), robots={"d1.test": None})
    with serve_terrain(terrain, tmp_path / "server", log=True) as served:
        settings = CrawlerSettings(
            minimum_time_on_page=DELAY,
            retries=2,
            retry_delay=800,
            robots_retries=2,
            robots_retry_delay=800,
            on_429="wait",
        )
        config = config_for(served, tmp_path / "workspace", settings)
        workspace = prepare(config)
        (job,) = release(workspace, [url])

        def retry_counts() -> tuple[int, ...]:
            if not workspace.layout.gate_of(job.domain).exists():
                return NO_RETRIES
            gate = GateFile(workspace.layout.gate_of(job.domain))
            try:
                return gate.read().retry_counts
            finally:
                gate.close()

        seen = [retry_counts()]
        for _ in range(requests - 1):
            with running(start_fetcher(config, tmp_path)) as fetcher:
                wait_for(lambda: retry_counts() != seen[-1])
                fetcher.send_signal(how)
                fetcher.wait(20)
            seen.append(retry_counts())
        with running(start_fetcher(config, tmp_path)) as fetcher:
            wait_for(lambda: len(pages(workspace)) == 1)
            finish(workspace)
            assert fetcher.wait(20) == 0
        (page,) = pages(workspace)
        assert (page.error, page.retries) == (error, retries)
        assert Counter(one.target for one in served.requests())[asked] == requests
        events = Counter(record.event for record in records(workspace) if isinstance(record, DomainEvent))
        assert events["deferred"] == (asked == "/robots.txt")
        assert retry_counts() == NO_RETRIES, "the job is done"
        assert audit(config).is_clean, list(audit(config).lines())


def test_fetchers_wait_while_results_pile_up_say_so_and_go_on_once_they_are_applied(tmp_path: Path) -> None:
    names = hosts(12)
    with serve_terrain(PlainTerrain(names), tmp_path / "server", log=True) as served:
        config = config_for(served, tmp_path / "ws", CrawlerSettings(minimum_time_on_page=DELAY))
        config = replace(config, spool=replace(config.spool, max_backlog=4))
        workspace = prepare(config)

        def tell(positions: dict[str, Cursor]) -> None:
            """As an ingest does that has read so far; 500 bytes are the size of these results, about."""
            facts = progress_facts(positions, 500.0, None)
            workspace.beat("ingest", orjson.dumps({"name": "ingest", "facts": facts}))

        tell({})
        release(workspace, [f"https://{host}/p{number}" for host in names for number in range(8)])
        with running(start_fetcher(config, tmp_path)) as fetcher:
            wait_for(lambda: workspace.layout.status_of("fetcher-01").exists())
            wait_for(lambda: str(status_of(workspace)["doing"]).startswith("waiting: about"))
            wait_for(lambda: status_of(workspace)["facts"]["in_flight"] == 0)  # type: ignore[index]
            assert len(pages(workspace)) < 8 * len(names)
            tell({"fetcher-01": Cursor(10**6, 0)})
            wait_for(lambda: len(pages(workspace)) == 8 * len(names))
            finish(workspace)
            assert fetcher.wait(20) == 0
        assert too_close(served.requests(), DELAY) == []
