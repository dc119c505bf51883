"""One crawl as a user would start it, and what can be seen of it from outside: processes, server log, database."""

from __future__ import annotations

import os
import re
import resource
import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import ROOT, StageWatch
from benchmarks.sites import Layout
from benchmarks.terrain import BLACKLIST, HUB, QUALITY_SITES, STUB, Shape, host_of
from benchmarks.webserver import Seen, WebServer
from crawler.demo.server import Served
from crawler.model.urls import normalize
from crawler.rules.patterns import LONGEST_PATTERN


@dataclass(frozen=True, slots=True)
class CrawlOptions:
    """The keys that the benchmarks set. Times in milliseconds."""

    minimum_time_on_page: int = 100
    max_concurrent_pages_open: int = 100
    max_domain_requests: int = 1_000_000
    max_active_domains: int = 1000
    workers: int = 0
    max_depth: int = 10
    keeps_html: bool = False  # [store] html


@dataclass(slots=True)
class CrawlFigures:
    """What one crawl did and cost. `seconds` are those of the whole command, from its start to its exit.

    `first`, `all_at_work` and `last` are seconds after the start: the first request, the moment from which every
    host had been asked, and the last answer. `spans` has each domain's first and last request.
    """

    pages: int  # in the state `processed`
    known: int
    links: int
    seconds: float
    first: float
    all_at_work: float
    last: float
    steady_rate: float  # pages/s while the middle 80 % of the pages were fetched
    fetched: list[str]  # host/path of every page that was answered with 200, in order
    database: Path
    spans: dict[str, tuple[float, float]]
    cpu: dict[str, float] = field(default_factory=dict)
    cpu_total: float = 0.0
    memory: dict[str, float] = field(default_factory=dict)
    most_unread: int = 0  # bytes of results that waited for the ingest
    server_cpu: float = 0.0
    stages: dict[int, str] = field(default_factory=dict)  # pid → name

    @property
    def rate(self) -> float:
        return self.pages / self.seconds


# -- configs -------------------------------------------------------------------------------------------------


def write_config(folder: Path, server: WebServer | Served, options: CrawlOptions, lists: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "bench.toml"
    path.write_text(f"""workspace = "workspace"
[crawler]
max-depth = {options.max_depth}
max-concurrent-pages-open = {options.max_concurrent_pages_open}
minimum-time-on-page = {options.minimum_time_on_page}
max-domain-requests = {options.max_domain_requests}
max-active-domains = {options.max_active_domains}
workers = {options.workers}
[store]
html = {str(options.keeps_html).lower()}
[user-agent]
contact-email = "bench@bench.test"
[output]
database-path = "bench.db"
summary-path = "bench.md"
[network]
ca-bundle = "{server.ca_path}"
[network.resolve]
"*" = "127.0.0.1:{server.port}"
{lists}""")
    return path


def terrain_lists(shape: Shape) -> str:
    """The old terrain: the hub and a few sites are quality, everything else is found."""
    quality = [(HUB, f"https://{HUB}/")] + [
        (host_of(site), f"https://{host_of(site)}/") for site in range(min(QUALITY_SITES, shape.sites))
    ]
    lists = "[traps]\nmax-similar-paths = 0\nmax-subdomains = 0\n"  # all sites lie under one registered domain
    lists += "".join(f'[[quality]]\ndomain = "{domain}"\nseeds = ["{seed}"]\n' for domain, seed in quality)
    return lists + f'[[stub]]\ndomain = "{STUB}"\n[[blacklist]]\ndomain = "{BLACKLIST}"\n'


def layout_lists(layout: Layout) -> str:
    """Every host is quality and its pages are its seeds. With `layout_options` nothing else is visited."""
    return "".join(f'[[quality]]\ndomain = "{host.name}"\nseeds = {_toml_list(host.urls())}\n' for host in layout.hosts)


def closed_lists(layout: Layout) -> str:
    """The same, with nothing else in scope: a second run needs half the requests, and would visit other pages."""
    lists = ""
    for host in layout.hosts:
        allowed = ", ".join(f"'{pattern}'" for pattern in patterns_of([normalize(url) for url in host.urls()]))
        lists += f'[[quality]]\ndomain = "{host.name}"\nseeds = {_toml_list(host.urls())}\nallow = [{allowed}]\n'
    return lists


def open_lists(layout: Layout) -> str:
    """Every host is quality, its front page is its seed, and its HTML is followed wherever it links to."""
    return "[traps]\nmax-similar-paths = 0\n" + "".join(
        f"[[quality]]\ndomain = \"{host.name}\"\nseeds = {_toml_list(host.urls()[:1])}\nallow = ['\\.html$']\n"
        for host in layout.hosts
    )


def patterns_of(keys: list[str]) -> list[str]:
    """Few expressions that match these keys and no others: one for each key would cost more than the pages."""
    found: list[str] = []
    group: list[str] = []
    for key in keys:
        if group and sum(map(len, group)) + len(group) + len(re.escape(key)) > LONGEST_PATTERN - 10:
            found.append(f"^(?:{'|'.join(group)})$")
            group = []
        group.append(re.escape(key))
    return [*found, f"^(?:{'|'.join(group)})$"]


def layout_options(layout: Layout, *, open_pages: int, workers: int) -> CrawlOptions:
    """A budget of robots.txt, HEAD and GET for each page. Depth 0 keeps links to other hosts from being followed."""
    most = max(len(host.pages) for host in layout.hosts)
    return CrawlOptions(
        max_concurrent_pages_open=open_pages, max_domain_requests=1 + 2 * most, workers=workers, max_depth=0
    )


def _toml_list(texts: list[str]) -> str:
    return "[" + ", ".join(f'"{text}"' for text in texts) + "]"


# -- the crawl -----------------------------------------------------------------------------------------------


def crawl(
    folder: Path,
    server: WebServer,
    lists: str,
    options: CrawlOptions,
    *,
    timeout: float = 400,
    environment: dict[str, str] | None = None,
) -> CrawlFigures:
    """Run `sumi-ripple crawl` to its end and measure it from outside."""
    config = write_config(folder, server, options, lists)
    before, children_before = server.cpu(), _children_cpu()
    log_path = folder / "crawl.log"
    command = [sys.executable, "-m", "crawler", "crawl", str(config), "-q"]
    with log_path.open("wb") as log:
        began, started = time.time(), time.monotonic()
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT, env={**os.environ, **(environment or {})})
        watch = StageWatch(folder / "workspace", process.pid)
        watch.start()
        try:
            code = process.wait(timeout=timeout)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
            seconds = time.monotonic() - started
            watch.stop()
    if code:
        raise RuntimeError(f"the crawl ended with {code}:\n{log_path.read_text()[-3000:]}")
    figures = read_figures(folder / "bench.db", server.seen(began), began, seconds)
    figures.cpu = watch.by_stage(watch.cpu)
    helpers = figures.cpu.get("other", 0.0)  # the fork server and its like: nobody waits for their end
    seen_ending = _children_cpu() - children_before + watch.reaped() + helpers
    figures.cpu_total = max(seen_ending, sum(figures.cpu.values()))
    figures.memory = watch.worst(watch.memory)
    figures.most_unread = watch.most_unread
    figures.server_cpu = server.cpu() - before
    figures.stages = dict(watch.names)
    return figures


def read_figures(database: Path, seen: list[Seen], began: float, seconds: float) -> CrawlFigures:
    """Put together what the database and the server's log say of a crawl."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        (pages,) = db.execute("SELECT count(*) FROM pages WHERE state = 'processed'").fetchone()
        (known,) = db.execute("SELECT count(*) FROM pages").fetchone()
        (links,) = db.execute("SELECT count(*) FROM links").fetchone()
    db.close()
    got = [each for each in seen if each.method == "GET" and each.status == 200 and each.path != "robots.txt"]
    spans: dict[str, tuple[float, float]] = {}
    for each in seen:
        first, _ = spans.get(each.host, (each.began - began, 0.0))
        spans[each.host] = first, each.ended - began
    ends = sorted(each.ended for each in got)
    low, high = len(ends) // 10, len(ends) * 9 // 10
    return CrawlFigures(
        pages=pages,
        known=known,
        links=links,
        seconds=seconds,
        first=min((first for first, _ in spans.values()), default=0.0),
        all_at_work=max((first for first, _ in spans.values()), default=0.0),
        last=max((last for _, last in spans.values()), default=0.0),
        steady_rate=(high - low) / max(ends[high - 1] - ends[low], 0.001) if len(ends) > 10 else 0.0,
        fetched=[f"{each.host}/{each.path}" for each in got],
        database=database,
        spans=spans,
    )


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# -- replay --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplayFigures:
    results: int
    seconds: float
    equal: bool  # the digests of the crawl's map and of the replayed one


def replay(folder: Path, results: int) -> ReplayFigures:
    """`sumi-ripple replay` of a finished crawl into a new database, the command's start included."""
    into = folder / "replayed.db"
    started = time.monotonic()
    _sumi("replay", str(folder / "bench.toml"), "--into", str(into))
    seconds = time.monotonic() - started
    return ReplayFigures(results, seconds, _sumi("digest", str(folder / "bench.db")) == _sumi("digest", str(into)))


def digest_of(database: Path) -> str:
    return _sumi("digest", str(database)).split()[0]


def _sumi(*arguments: str) -> str:
    command = [sys.executable, "-m", "crawler", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"sumi-ripple {arguments[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout
