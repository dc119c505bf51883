"""`make bench ENGINE=postgresql`: the same crawl with files and with an engine on this machine.

Real pages on many hosts, by turns: with files, and with the engine under 2, 4 and 8 fetchers. Told are pages a second,
CPU a page of the crawl and of the engine, and what 10,000 leased domains take: to claim, to renew, to release. Then a
map is grown in the engine, to 3 million pages (`benchmarks/engine_growth.py`).

    python -m benchmarks.engine [--quick] [--only crawls,leases,growth] [--fetchers 2,4,8]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.crawls import CrawlOptions, layout_lists, layout_options, write_config
from benchmarks.docs_terrain import write_sites
from benchmarks.engine_growth import QUICK, Size, growth_lines, measure_growth
from benchmarks.measure import ROOT, StageWatch, Steps, family_seconds, machine, reporting
from benchmarks.sites import SPREAD, find_documentation, lay_out, read_sites
from benchmarks.webserver import WebServer, find_nginx, serve_layout
from crawler.fetch.claims import CLAIMED_TOGETHER
from crawler.workspace.door import Claim
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from tests.postgres_server import PostgresServer, own_server

SECTIONS = ("crawls", "leases", "growth")
LEAST_SHARE = 0.7  # of the pages a second with files, on one machine
LEASED = 10_000  # and 1,000 where it is to be quick


@dataclass(frozen=True, slots=True)
class Turn:
    """One crawl. CPU in seconds; the map is the same command's in all of them."""

    name: str
    pages: int
    seconds: float
    cpu: float
    engine_cpu: float
    digest: str

    @property
    def rate(self) -> float:
        return self.pages / self.seconds


def crawl_once(
    name: str, folder: Path, server: WebServer, lists: str, options: CrawlOptions, engine: PostgresServer | None
) -> Turn:
    """Run `sumi-ripple crawl` to its end. The engine's database is a new one."""
    config = write_config(folder, server, options, lists)
    if engine is not None:
        database = f"bench_{name.replace(' ', '_').replace(',', '')}"
        subprocess_sql(engine, f"CREATE DATABASE {database}")
        config.write_text(config.read_text() + f'[engine]\nurl = "{engine.url(database)}"\n')
        sumi("engine", "init", str(config))
    engine_before, began = _cpu_of(engine), time.time()
    started = time.monotonic()
    cpu = _run_crawl(config)
    seconds, engine_cpu = time.monotonic() - started, _cpu_of(engine) - engine_before
    seen = [each for each in server.seen(began) if each.method == "GET" and each.status == 200]
    pages = sum(each.path != "robots.txt" for each in seen)
    digest = sumi("digest", str(config if engine is not None else folder / "bench.db")).split()[0]
    return Turn(name, pages, seconds, cpu, engine_cpu, digest)


def _run_crawl(config: Path) -> float:
    """Crawl to the end; the CPU of all its processes. Its stages are the fork server's children, not ours."""
    log_path = config.with_suffix(".log")
    with log_path.open("wb") as log:
        command = [sys.executable, "-m", "crawler", "crawl", str(config), "-q"]
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT)
    watch = StageWatch(config.parent / "workspace", process.pid, every=0.1)
    watch.start()
    code = process.wait()
    watch.stop()
    if code:
        raise SystemExit(f"sumi-ripple crawl ended with {code}:\n{log_path.read_text()[-2000:]}")
    return sum(watch.cpu.values())


def sumi(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "crawler", *words], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"sumi-ripple {words[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def subprocess_sql(engine: PostgresServer, statement: str) -> None:
    import psycopg

    with psycopg.connect(engine.url(), autocommit=True) as admin:
        admin.execute(statement)


def _cpu_of(engine: PostgresServer | None) -> float:
    """All processes of the server, those that have ended included."""
    if engine is None:
        return 0.0
    return family_seconds(engine.pid)


def lease_many(folder: Path, engine: PostgresServer, count: int) -> dict[str, float]:
    """Seconds to claim many domains, to renew all leases once, and to release them."""
    subprocess_sql(engine, "CREATE DATABASE bench_leases")
    config = folder / "leases.toml"
    folder.mkdir(parents=True, exist_ok=True)
    quality = '[[quality]]\ndomain = "a.test"\nseeds = ["https://a.test/"]\n'
    config.write_text(f'{quality}[engine]\nurl = "{engine.url("bench_leases")}"\n')
    sumi("engine", "init", str(config))
    workspace = EngineWorkspace(folder / "workspace", engine.url("bench_leases"))
    started = time.monotonic()
    names = [f"d{number}.test" for number in range(count)]
    claims: list[Claim] = []
    for start in range(0, count, CLAIMED_TOGETHER):  # as a fetcher claims them
        claims += workspace.claim_all(names[start : start + CLAIMED_TOGETHER]).values()
    claimed = time.monotonic()
    workspace.session.run(workspace.session.renew)
    renewed = time.monotonic()
    workspace.release_all(claims)
    released = time.monotonic()
    workspace.close()
    return {"count": count, "claim": claimed - started, "renew": renewed - claimed, "release": released - renewed}


def measure(folder: Path, sections: set[str], fetchers: list[int], figures: dict[str, Any], steps: Steps) -> None:
    is_quick = figures["quick"]
    with own_server(is_small=False) as engine:
        if "crawls" in sections:
            hosts, pages = (60, 8) if is_quick else (200, 31)
            figures |= crawl_by_turns(folder, hosts, pages, fetchers, engine, steps)
        if "leases" in sections:
            count = LEASED // 10 if is_quick else LEASED
            steps.say(f"{count:,} domains leased")
            figures["leases"] = lease_many(folder / "leases", engine, count)
        if "growth" in sections:
            figures["growth"] = measure_growth(QUICK if is_quick else Size(), folder / "growth", engine, steps)


def crawl_by_turns(
    folder: Path, hosts: int, pages: int, fetchers: list[int], engine: PostgresServer, steps: Steps
) -> dict[str, Any]:
    """With files before and after the first crawl with the engine; then with the engine under more fetchers."""
    roots = find_documentation() or write_sites(folder / "drawn", 1 + (pages - 1) * SPREAD)
    layout = lay_out(read_sites(roots, pages), hosts, pages)
    first, *more = fetchers
    lists, options = layout_lists(layout), layout_options(layout, open_pages=20, workers=first)
    turns: list[Turn] = []
    with serve_layout(layout, folder / "server", nginx=find_nginx()) as server:
        for name, workers, has_engine in (
            (f"files, {first} fetchers", first, False),
            (f"engine, {first} fetchers", first, True),
            (f"files again, {first} fetchers", first, False),
            *((f"engine, {count} fetchers", count, True) for count in more),
        ):
            steps.say(name)
            place = folder / name.replace(" ", "-").replace(",", "")
            one = replace(options, workers=workers)
            turns.append(crawl_once(name, place, server, lists, one, engine if has_engine else None))
            steps.say(f"  {turns[-1].rate:,.0f} pages/s")
    return {
        "turns": [asdict(turn) | {"rate": turn.rate} for turn in turns],
        "share": turns[1].rate / ((turns[0].rate + turns[2].rate) / 2),
        "same_map": len({turn.digest for turn in turns}) == 1,
    }


def report(figures: dict[str, Any]) -> str:
    parts = crawl_lines(figures) if "turns" in figures else []
    if "leases" in figures:
        leases = figures["leases"]
        parts += [
            "",
            f"{leases['count']:,.0f} domains: claimed in {leases['claim']:.1f} s, "
            f"renewed in {leases['renew'] * 1000:.1f} ms, "
            f"released in {leases['release']:.1f} s",
        ]
    if "growth" in figures:
        parts += ["", *growth_lines(figures["growth"])]
    return "\n".join(parts) + "\n"


def crawl_lines(figures: dict[str, Any]) -> list[str]:
    rows = ["| crawl | pages/s | CPU a page, ms | the engine's, ms |", "|---|---|---|---|"]
    for turn in figures["turns"]:
        each = 1000 / max(turn["pages"], 1)
        own, engine = turn["cpu"] * each, turn["engine_cpu"] * each
        rows.append(f"| {turn['name']} | {turn['rate']:,.0f} | {own:.2f} | {engine:.2f} |")
    verdict = "met" if figures["share"] >= LEAST_SHARE else "NOT MET"
    return [
        *rows,
        "",
        f"engine against files, the same fetchers: {figures['share']:.2f} (at least {LEAST_SHARE}: {verdict}); "
        f"maps {'the same' if figures['same_map'] else 'DIFFERENT'}",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keep", type=Path, help="keep the crawls' folders here")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections to run, comma-separated")
    parser.add_argument("--fetchers", default="2,4,8", help="of the crawls, comma-separated: the first with files too")
    options = parser.parse_args()
    sections = set(options.only.split(","))
    if unknown := sections - {*SECTIONS}:
        parser.error(f"there is no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    fetchers = [int(count) for count in options.fetchers.split(",")]
    figures: dict[str, Any] = {"machine": machine(), "quick": options.quick, "load": os.getloadavg()[0]}
    with reporting("engine", figures, lambda found: print(report(found)), options.keep) as folder:
        measure(folder, sections, fetchers, figures, Steps())
    return 0 if figures.get("same_map", True) else 1


if __name__ == "__main__":
    sys.exit(main())
