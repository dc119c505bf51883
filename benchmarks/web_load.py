"""The web face under load: `make bench-web`.

A made-up map of a completed run is served by the real command. First nobody looks, and the CPU of the server is
measured; then so many clients, each with an account, go round the questions that the pages of the face ask. What counts
is the time of each answer, after a first round in which the answers that take a scan of the map are worked out.
`--crawl`: meanwhile the next run is under way on the same map: 40 sites, a quarter of a second between requests. Its
pages a second are measured with and without people who look.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import requests

from benchmarks import crawls
from benchmarks.crawls import CrawlOptions, terrain_lists
from benchmarks.terrain import ScaledTerrain, Shape
from benchmarks.webserver import WebServer, serve
from crawler.config.load import load
from crawler.database.format import SCHEMA_VERSION
from crawler.model.settings import Config
from crawler.model.urls import hash64
from crawler.observe.processes import observe
from crawler.workspace.opening import open_workspace
from ingest.sqlite.sqlite_engine import SqliteEngine
from ingest.writing.order_rows import prepare_orders
from ingest.writing.schema import READING_INDEXES, READING_VIEWS, TABLES
from ingest.writing.setup import note_rules
from ingest.writing.visit_counts import prepare_counts
from reporter.web.routing import Role
from reporter.web.web_accounts import WebAccounts

AT = "2025-01-15T10:30:00.000Z"
LINKS = 3  # from each visited page
PATHS = (
    *("/api/live", "/api/stats", "/api/stats/timeseries?seconds=3600", "/api/frontier/stats", "/api/frontier/waiting"),
    *("/api/runs", "/api/domains?limit=50", "/api/domains?limit=50&sort=crawled&after=500", "/api/pages?limit=50"),
    *("/api/pages?limit=50&state=processed&after=1000000", "/api/pages?limit=50&state=errors", "/api/candidates"),
    *("/api/explain?domain=d7.test", "/api/pages?limit=50&domain=d9.test", "/api/log", "/"),
    *("/api/pages?limit=50&domain=d9.test&state=dead_link", "/api/pages?limit=50&depth=3&status=500", "/metrics"),
    *("/api/graph?level=communities", "/api/graph?level=pages&domain=d0.test", "/api/pages?limit=50&q=tea"),
)
SITES = Shape(sites=40, pages=500)  # of the run that goes on meanwhile
PAUSE = 0.2  # seconds of a client between two calls: an admin may make 500 a minute
_STATES = ("processed", "processed", "depth_exceeded", "depth_exceeded", "depth_exceeded", "dead_link")


def make_map(path: Path, pages: int, domains: int, config: Config | None = None) -> None:
    """A completed run: so many pages in so many domains, a third of them visited, with links in between.

    `config`: the one that the next run is made with.
    """
    with sqlite3.connect(path, isolation_level=None) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = OFF")
        db.executescript(TABLES)
        db.execute("BEGIN")
        db.executemany("INSERT INTO meta VALUES (?, ?)", [("schema_version", str(SCHEMA_VERSION)), ("map_id", "bench")])
        db.execute("INSERT INTO origins VALUES (0, 'd0.test')")
        db.execute("INSERT INTO runs VALUES (1, ?, ?, 'hash', 'completed')", (AT, AT))
        db.executemany(
            "INSERT INTO domain_states (id, domain, class, run, first_seen_run) VALUES (?, ?, ?, 1, 1)",
            ((n + 1, f"d{n}.test", "quality" if n < 20 else "discovered") for n in range(domains)),
        )
        db.executemany(
            "INSERT INTO pages (id, url, domain, state, title, status_code, discovered_at, discovered_run, url_hash,"
            " domain_id, depth, seen_run, visited_run, visited_at, bytes)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, 1, ?, ?, ?)",
            _pages(pages, domains),
        )
        visited = (n for n in range(1, pages + 1) if _STATES[n % len(_STATES)] == "processed")
        db.executemany(
            "INSERT OR IGNORE INTO links VALUES (?, ?, ?, 1, 1, 0)",
            ((n << 32 | to, n, to) for n in visited for to in _targets(n, pages)),
        )
        db.execute(
            "INSERT INTO domain_links SELECT (f.domain_id << 32) | t.domain_id, f.domain_id, t.domain_id, count(*)"
            " FROM links l JOIN pages f ON f.id = l.from_page_id JOIN pages t ON t.id = l.to_page_id GROUP BY 1"
        )
        db.execute(
            "INSERT INTO run_figures SELECT 1, sum(state = 'processed'), count(*), (SELECT count(*) FROM links),"
            " sum(state = 'dead_link'), ? FROM pages",
            (domains,),
        )
        db.execute("COMMIT")
        for sql in (*READING_INDEXES.values(), *READING_VIEWS.values()):
            db.execute(sql)
    engine = SqliteEngine(path)
    prepare_counts(engine)
    prepare_orders(engine.db)
    if config is not None:
        note_rules(engine.db, config)
    engine.close()


def _targets(page: int, pages: int) -> Iterator[int]:
    for step in range(1, LINKS + 1):
        yield (page * 7919 * step) % pages + 1


def _pages(pages: int, domains: int) -> Iterator[tuple[object, ...]]:
    for number in range(1, pages + 1):
        domain = number % domains
        state = _STATES[number % len(_STATES)]
        url = f"https://d{domain}.test/page/{number}"
        is_visited = state != "depth_exceeded"
        title = f"Page {number} about tea and ink" if is_visited else None
        status = {"processed": 200, "dead_link": 404}.get(state)
        visit = (1, AT, 20_000) if is_visited else (None, None, None)
        yield (number, url, f"d{domain}.test", state, title, status, AT, hash64(url), domain + 1, number % 4, *visit)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def client(base: str, token: str, until: float, offset: int, times: dict[str, list[float]], bad: list[str]) -> None:
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {token}"
    turn = offset
    while time.monotonic() < until:
        path = PATHS[turn % len(PATHS)]
        turn += 1
        began = time.perf_counter()
        answer = session.get(base + path, timeout=60)
        times[path].append(time.perf_counter() - began)
        if answer.status_code != 200:
            bad.append(f"{path} {answer.status_code}")
        time.sleep(PAUSE)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pages", type=int, default=3_000_000)
    options.add_argument("--domains", type=int, default=30_000)
    options.add_argument("--clients", type=int, default=20)
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--idle", type=int, default=30, help="seconds in which nobody looks")
    options.add_argument("--crawl", action="store_true")
    given = options.parse_args()
    with TemporaryDirectory(prefix="sumi-bench-web-") as folder:
        return measure(Path(folder), given)


def measure(folder: Path, given: argparse.Namespace) -> int:
    with ExitStack() as stack:
        server = stack.enter_context(serve(ScaledTerrain(SITES), folder / "sites")) if given.crawl else None
        config = write_config(folder, server) if server else folder / "my.toml"
        if server is None:
            config.write_text('[[quality]]\ndomain = "d0.test"\n')
        loaded = load(config)
        began = time.monotonic()
        make_map(loaded.output.database_path, given.pages, given.domains, loaded)
        size = loaded.output.database_path.stat().st_size / 2**30
        print(f"made a map of {given.pages:,} pages in {time.monotonic() - began:.0f} s, {size:.1f} GiB", flush=True)
        tokens = make_accounts(loaded, given.clients)
        face = stack.enter_context(ended([sys.executable, "-m", "crawler", "serve", str(config), "--port", "0"]))
        assert face.stdout is not None
        found = re.search(r"http://[^/]+", face.stdout.readline())
        assert found is not None, "the server did not start"
        warm_up(found[0], tokens[0])
        before = cpu_seconds(face.pid)
        time.sleep(given.idle)
        print(f"nobody looks: {(cpu_seconds(face.pid) - before) / given.idle:.2%} of a core", flush=True)
        if not given.crawl:
            return look(found[0], tokens, given.seconds, face.pid)
        stack.enter_context(ended([sys.executable, "-m", "crawler", "crawl", str(config), "-q"]))
        alone = crawl_rate(loaded, given.seconds, is_first=True)
        warm_up(found[0], tokens[0])
        watched: list[float] = []
        meter = threading.Thread(target=lambda: watched.append(crawl_rate(loaded, given.seconds)))
        meter.start()
        code = look(found[0], tokens, given.seconds, face.pid)
        meter.join()
        print(f"the crawl: {alone:.1f} pages/s while nobody looks, {watched[0]:.1f} while {len(tokens)} do")
        return code


def write_config(folder: Path, server: WebServer) -> Path:
    options = CrawlOptions(minimum_time_on_page=250, workers=2)
    return crawls.write_config(folder, server, options, terrain_lists(SITES))


def make_accounts(config: Config, count: int) -> list[str]:
    """So many admins; returns their tokens."""
    accounts = WebAccounts(open_workspace(config), config.workspace)
    tokens = []
    for number in range(count):
        accounts.add(f"client-{number}", Role.ADMIN, "a password for the benchmark")
        tokens.append(accounts.add_token(f"client-{number}", "bench"))
    return tokens


@contextmanager
def ended(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A command that ends with the block."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)


def crawl_rate(config: Config, seconds: int, *, is_first: bool = False) -> float:
    """Pages a second that the run under way visits. `is_first`: once it has visited its first thousand."""
    workspace = open_workspace(config)

    def visited() -> int:
        return observe(workspace).figures()["pages"]

    until = time.monotonic() + 300
    while is_first and not 1000 <= visited() < 10**6:
        assert time.monotonic() < until, "the crawl did not begin"
        time.sleep(0.5)
    before, began = visited(), time.monotonic()
    time.sleep(seconds)
    return (visited() - before) / (time.monotonic() - began)


def warm_up(base: str, token: str) -> None:
    """Ask everything until it is answered: what takes a scan of the map is worked out once for each state of it."""
    for path in PATHS:
        began = time.monotonic()
        while True:
            answer = requests.get(base + path, headers={"Authorization": f"Bearer {token}"}, timeout=300)
            if answer.status_code != 503:
                break
            time.sleep(1)
        if time.monotonic() - began > 1:
            print(f"  first answer of {path}: {time.monotonic() - began:.1f} s", flush=True)


def look(base: str, tokens: list[str], seconds: int, pid: int) -> int:
    times: dict[str, list[float]] = {path: [] for path in PATHS}
    bad: list[str] = []
    until, before = time.monotonic() + seconds, cpu_seconds(pid)
    threads = [
        threading.Thread(target=client, args=(base, token, until, number, times, bad))
        for number, token in enumerate(tokens)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    calls = sum(map(len, times.values()))
    print(f"{len(tokens)} clients for {seconds} s: {calls:,} calls, {len(bad)} not answered with 200")
    print(f"the server: {(cpu_seconds(pid) - before) / seconds:.0%} of a core")
    print(f"{'milliseconds':<58}{'median':>8}{'95 %':>8}{'most':>8}")
    for path, found in times.items():
        ordered = sorted(found)
        if ordered:
            figures = (ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)], ordered[-1])
            print(f"{path:<58}" + "".join(f"{figure * 1000:>8.1f}" for figure in figures))
    for words in sorted(set(bad))[:10]:
        print(f"  {words}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
