"""One crawl of a scaled terrain, as a user would start it, and the figures that can be read from what it left."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, StageWatch, cpu_seconds
from benchmarks.terrain import BLACKLIST, HUB, QUALITY_SITES, STUB, Shape, host_of
from crawler.demo.server import Served
from crawler.model.records import PageResult, parse
from crawler.workspace.files.spool import Reader


@dataclass(frozen=True, slots=True)
class CrawlOptions:
    """The keys of [crawler] that the benchmarks turn. Times in milliseconds."""

    minimum_time_on_page: int = 100
    max_concurrent_pages_open: int = 100
    max_domain_requests: int = 1_000_000
    max_active_domains: int = 1000
    workers: int = 0
    max_depth: int = 10


@dataclass(slots=True)
class CrawlFigures:
    """What one crawl did and cost. `seconds` is the run as the database has it, from its start to its end."""

    pages: int
    links: int
    known: int
    seconds: float
    whole_seconds: float  # of the command, from the shell's point of view
    steady_rate: float  # pages/s while the middle 80 % of the pages were fetched
    cpu: dict[str, float] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)
    server_cpu: float = 0.0
    database: Path = Path()
    spans: dict[str, tuple[float, float, int]] = field(default_factory=dict)  # domain → first, last (s), pages

    @property
    def rate(self) -> float:
        return self.pages / self.seconds


def write_config(folder: Path, served: Served, shape: Shape, options: CrawlOptions) -> Path:
    """A config for the scaled terrain: the hub and a few sites are quality, everything else is found."""
    folder.mkdir(parents=True, exist_ok=True)
    quality = [(HUB, f"https://{HUB}/")] + [
        (host_of(site), f"https://{host_of(site)}/") for site in range(min(QUALITY_SITES, shape.sites))
    ]
    lists = "".join(f'[[quality]]\ndomain = "{domain}"\nseeds = ["{seed}"]\n' for domain, seed in quality)
    lists += f'[[stub]]\ndomain = "{STUB}"\n[[blacklist]]\ndomain = "{BLACKLIST}"\n'
    path = folder / "bench.toml"
    path.write_text(f"""workspace = "workspace"
[crawler]
max-depth = {options.max_depth}
max-concurrent-pages-open = {options.max_concurrent_pages_open}
minimum-time-on-page = {options.minimum_time_on_page}
max-domain-requests = {options.max_domain_requests}
max-active-domains = {options.max_active_domains}
workers = {options.workers}
[traps]
max-similar-paths = 0
[user-agent]
contact-email = "bench@bench.test"
[output]
database-path = "bench.db"
summary-path = "bench.md"
[network]
ca-bundle = "{served.ca_path}"
[network.resolve]
"*" = "127.0.0.1:{served.port}"
{lists}""")
    return path


def crawl(folder: Path, served: Served, shape: Shape, options: CrawlOptions, *, timeout: float = 400) -> CrawlFigures:
    """Run `sumi-ripple crawl` to its end and measure it from outside."""
    config = write_config(folder, served, shape, options)
    before = cpu_seconds(served.pid)
    started = time.monotonic()
    log_path = folder / "crawl.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "crawler", "crawl", str(config), "-q"], stdout=log, stderr=log, cwd=ROOT
        )
        watch = StageWatch(folder / "workspace", process.pid)
        watch.start()
        try:
            code = process.wait(timeout=timeout)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
            watch.stop()
    if code:
        raise RuntimeError(f"the crawl ended with {code}:\n{log_path.read_text()[-3000:]}")
    figures = read_figures(folder)
    figures.whole_seconds = time.monotonic() - started
    figures.cpu = watch.by_stage(watch.cpu)
    figures.memory = watch.worst(watch.memory)
    figures.server_cpu = cpu_seconds(served.pid) - before
    return figures


def read_figures(folder: Path) -> CrawlFigures:
    """Count from the result spools and the database what the crawl in `folder` did."""
    ends: list[int] = []
    links = 0
    spans: dict[str, list[Any]] = {}
    first = None
    for writer in sorted((folder / "workspace" / "spool" / "results").iterdir()):
        for line in Reader(writer):
            record = parse(line.body)
            if not isinstance(record, PageResult) or not record.ledger:
                continue
            begin = record.ledger[0].mono_ms
            end = record.ledger[-1].mono_ms + record.ledger[-1].elapsed_ms
            first = begin if first is None else min(first, begin)
            links += len(record.hrefs)
            if record.state == "processed":
                ends.append(end)
                span = spans.setdefault(record.domain, [begin, end, 0])
                span[0], span[1], span[2] = min(span[0], begin), max(span[1], end), span[2] + 1
    ends.sort()
    start = first or 0
    low, high = len(ends) // 10, max(len(ends) * 9 // 10, 1)
    steady = (high - low) / max((ends[high - 1] - ends[low]) / 1000, 0.001) if len(ends) > 10 else 0.0
    database = folder / "bench.db"
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        began, ended = db.execute("SELECT started_at, finished_at FROM runs ORDER BY id DESC").fetchone()
        (known,) = db.execute("SELECT count(*) FROM pages").fetchone()
    db.close()
    seconds = (_moment(ended) - _moment(began)).total_seconds()
    return CrawlFigures(
        pages=len(ends),
        links=links,
        known=known,
        seconds=seconds,
        whole_seconds=seconds,
        steady_rate=steady,
        database=database,
        spans={
            domain: ((one - start) / 1000, (two - start) / 1000, pages) for domain, (one, two, pages) in spans.items()
        },
    )


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
