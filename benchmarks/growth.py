"""`make bench-growth`: what the map's size costs the ingest, the scheduler, a restart and the report.

    python -m benchmarks.growth [--quick] [--only ingest,growth,idle,help]

Result spools are generated from a seed and taken in by the real ingest; then the real pipeline is started on the
workspace that this leaves. Figures go to benchmarks/results/ as JSON.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.crawls import CrawlOptions, terrain_lists, write_config
from benchmarks.growing import QUALITY, GrowingWeb, recorded_results, start_run, write_results
from benchmarks.measure import (
    ROOT,
    StageWatch,
    Steps,
    children,
    cpu_seconds,
    family_seconds,
    machine,
    memory_mb,
    reporting,
    table,
    verdict,
)
from benchmarks.terrain import ScaledTerrain, Shape
from crawler.config.load import load
from crawler.demo.server import Served, serve_terrain
from crawler.model.records import PageResult
from crawler.workspace.control import StageControl
from crawler.workspace.files.file_workspace import FileWorkspace

SECTIONS = ("ingest", "growth", "idle", "help")
BEYOND = 3_000  # pages: more than a batch, so that the window ends where it ended the first time


@dataclass(frozen=True, slots=True)
class Plan:
    """How far to grow. The early window begins at `early` known URLs, the late one shortly before `known`."""

    known: int = 3_025_000
    early: int = 100_000
    domains: int = 50_000
    recorded_pages: int = 8_000
    crawl_seconds: float = 25.0


QUICK = Plan(known=400_000, early=60_000, domains=10_000, recorded_pages=2_500, crawl_seconds=12.0)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what the map's size costs.")
    parser.add_argument("--quick", action="store_true", help="a small map")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections to run, comma-separated")
    parser.add_argument("--keep", type=Path, help="keep the workspaces here")
    parser.add_argument("--take-in", nargs=2, type=Path, metavar=("CONFIG", "OUTPUT"), help=argparse.SUPPRESS)
    parser.add_argument("--engine", type=int, metavar="PID", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.take_in:
        return take_in(*options.take_in, options.engine)
    plan = QUICK if options.quick else Plan()
    sections = set(options.only.split(","))
    figures: dict[str, Any] = {"machine": machine(), "quick": options.quick, "plan": plan_facts(plan)}
    steps = Steps()
    with reporting("growth", figures, report, options.keep) as folder:
        if "ingest" in sections:
            figures["ingest"] = ingest_alone(plan, folder / "recorded", steps)
        if "growth" in sections:
            figures["growth"] = growth(plan, folder / "growth", steps)
        if "idle" in sections:
            figures["waiting"] = waiting(folder / "waiting", steps)
        if "help" in sections:
            figures["help_s"] = help_time(steps)
    return 0


def plan_facts(plan: Plan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in Plan.__slots__}


# -- the ingest as a child ---------------------------------------------------------------------------------


def take_in(config_path: Path, output: Path, engine: int | None = None) -> int:
    """In a process of its own: take in everything there is, and note after each batch where the clocks stand.

    The results lie in files; the map is where the config says. `engine` is the process of the map's server on this
    machine: its CPU is noted too.
    """
    from ingest.loop import Ingest, calm_collector

    config = load(config_path)
    workspace = FileWorkspace(config.workspace)
    workspace.prepare()
    control = StageControl(workspace, "ingest")
    role = workspace.take_role("ingest")
    ingest = Ingest(config, control)
    calm_collector()

    def clocks() -> tuple[float, float, float]:
        return time.perf_counter(), time.process_time(), family_seconds(engine) if engine is not None else 0.0

    marks = [(0, ingest.store.counts["known"], *clocks())]
    while ingest.step():
        facts: dict[str, Any] = ingest.facts()
        marks.append((facts["taken"], facts["known"], *clocks()))
    facts = ingest.facts()
    ingest.shutdown()
    control.close()
    role.release()
    output.write_text(json.dumps({"marks": marks, "facts": facts, "memory_mb": memory_mb(_own_pid())}))
    return 0


def _own_pid() -> int:
    return int(Path("/proc/self").resolve().name)


def run_take_in(config: Path, engine: int | None = None) -> dict[str, Any]:
    output = config.with_suffix(".json")
    command = [sys.executable, "-m", "benchmarks.growth", "--take-in", str(config), str(output)]
    command += ["--engine", str(engine)] if engine is not None else []
    subprocess.run(command, check=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(output.read_text())
    return found


# -- ingest alone ------------------------------------------------------------------------------------------


def ingest_alone(plan: Plan, folder: Path, steps: Steps) -> dict[str, Any]:
    """Results of the scaled terrain as a crawl would have recorded them, taken in with nothing else running."""
    shape = Shape(pages=max(10, plan.recorded_pages // 400))
    terrain = ScaledTerrain(shape)
    config = _terrain_config(folder, shape)
    start_run(folder / "workspace", config)
    steps.say(f"Recording {plan.recorded_pages:,} pages of the scaled terrain")
    links = write_results(folder / "workspace", recorded_results(terrain, plan.recorded_pages))
    steps.say("Taking them in")
    found = run_take_in(config)
    marks = found["marks"]
    pages, seconds = len(links) - 1, marks[-1][2] - marks[0][2]
    return {
        "pages": pages,
        "links": links[-1],
        "seconds": seconds,
        "pages_per_second": pages / seconds,
        "links_per_second": links[-1] / seconds,
        "cpu_ms_per_page": 1000 * (marks[-1][3] - marks[0][3]) / pages,
    }


def _terrain_config(folder: Path, shape: Shape) -> Path:
    return write_config(folder, nowhere(folder), CrawlOptions(), terrain_lists(shape))


def nowhere(folder: Path) -> Served:
    """The server of a config with which nothing is fetched."""
    served = Served(0, 9, 9, folder / "ca.pem", None)
    folder.mkdir(parents=True, exist_ok=True)
    served.ca_path.write_text("")
    return served


# -- growth ------------------------------------------------------------------------------------------------


def growth(plan: Plan, folder: Path, steps: Steps) -> dict[str, Any]:
    web = GrowingWeb(plan.domains)
    with serve_terrain(web, folder / "server", log=True) as served:
        config = growth_config(folder, served, web)
        workspace = folder / "workspace"
        start_run(workspace, config)
        steps.say(f"Writing result spools until {plan.known:,} URLs are known")
        # The late window lies behind the doubling of the register's table at 2.94 million, once in two million pages.
        starts = (plan.early, plan.known - 85_000)
        links = write_results(workspace, web.results(plan.known, starts))
        steps.say(f"Taking in {len(links) - 1:,} pages with {links[-1]:,} links")
        found = run_take_in(config)
        early, late = web.windows
        # The two windows lie minutes apart, and a machine that others use may be another one by then: so the early one
        # is looked at once more, on a map that is drawn up to there.
        steps.say("Taking in the beginning again")
        beginning = islice(GrowingWeb(plan.domains).results(plan.known, starts), early[1] + BEYOND)
        again = _take_in_anew(folder / "again", config, beginning)
        figures = windows([cost(early, marks, links) for marks in (found["marks"], again)], late, found["marks"], links)
        figures["ingest_memory_mb"] = found["memory_mb"]
        figures |= _database_facts(folder / "bench.db")
        steps.say("Starting the pipeline on that workspace")
        figures |= restarted(plan, folder, config, served, steps)
    steps.say("The report")
    started = time.perf_counter()
    _command("report", str(config))
    figures["report_s"] = time.perf_counter() - started
    return figures


def growth_config(folder: Path, served: Served, web: GrowingWeb) -> Path:
    lists = "".join(
        f'[[quality]]\ndomain = "d{number}.grow.test"\nseeds = ["{web.url(number)}"]\n' for number in range(QUALITY)
    )
    lists = "[traps]\nmax-similar-paths = 0\n" + lists + '[[stub]]\ndomain = "*.shelf.test"\n'
    return write_config(folder, served, CrawlOptions(), lists)


def _take_in_anew(folder: Path, config: Path, results: Iterable[PageResult]) -> list[list[float]]:
    """Take these results in, into a map of their own under the same rules; where the clocks stood."""
    folder.mkdir()
    copied = Path(shutil.copy(config, folder))
    start_run(folder / "workspace", copied)
    write_results(folder / "workspace", results)
    marks: list[list[float]] = run_take_in(copied)["marks"]
    return marks


def cost(window: tuple[int, int], marks: list[list[float]], links: list[int]) -> dict[str, float]:
    """Cost per raw link in a window, over the batches that lie inside it."""
    inside = [mark for mark in marks if window[0] <= _page(mark, links) <= window[1]]
    first, last = inside[0], inside[-1]
    count = links[_page(last, links)] - links[_page(first, links)]
    wall, cpu, engine = (last[clock] - first[clock] for clock in (2, 3, 4))
    return {
        "known": first[1],
        "links": count,
        "us_per_link": 1e6 * wall / count,
        "cpu_us_per_link": 1e6 * cpu / count,
        "engine_us_per_link": 1e6 * engine / count,
    }


def windows(
    early: list[dict[str, float]], window: tuple[int, int], marks: list[list[float]], links: list[int]
) -> dict[str, Any]:
    """What a link cost early (before and after) and late, and the one against the other."""
    late = cost(window, marks, links)
    pages, seconds = len(links) - 1, marks[-1][2] - marks[0][2]
    return {
        "pages": pages,
        "links": links[-1],
        "seconds": seconds,
        "links_per_second": links[-1] / seconds,
        "early": early,
        "late": late,
        "ratio": late["us_per_link"] / fmean(each["us_per_link"] for each in early),
        "cpu_ratio": late["cpu_us_per_link"] / fmean(each["cpu_us_per_link"] for each in early),
    }


def _page(mark: list[float], links: list[int]) -> int:
    """How many pages had been taken in at a mark: all results but the event that started the run."""
    return min(max(int(mark[0]) - 1, 0), len(links) - 1)


def _database_facts(database: Path) -> dict[str, Any]:
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        counts = {
            "known": "SELECT count(*) FROM pages",
            "frontier": "SELECT count(*) FROM frontier",
            "domains": "SELECT count(*) FROM domain_states",
        }
        facts: dict[str, Any] = {name: db.execute(sql).fetchone()[0] for name, sql in counts.items()}
    db.close()
    return facts | {"database_mb": database.stat().st_size / 1e6}


def restarted(plan: Plan, folder: Path, config: Path, served: Served, steps: Steps) -> dict[str, Any]:
    """Start it, wait for its first request, let it work, pause it, stop it."""
    started = time.monotonic_ns()
    process = _start_crawl(config, folder / "crawl.log")
    watch = StageWatch(folder / "workspace", process.pid)
    watch.start()
    try:
        while not served.requests():
            if process.poll() is not None or time.monotonic_ns() - started > 120e9:
                raise RuntimeError(f"no request came:\n{(folder / 'crawl.log').read_text()[-3000:]}")
            time.sleep(0.05)
        first = (served.requests()[0].at_ns - started) / 1e9
        time.sleep(plan.crawl_seconds)
        requests = len(served.requests())
        steps.say("Paused")
        (folder / "workspace" / "pause").touch()
        time.sleep(10)  # what is in flight ends, and so does the batch at hand
        before = _everybodys_cpu(process.pid)
        count = len(served.requests())
        time.sleep(10)
        paused = (_everybodys_cpu(process.pid) - before) / 10
        leaked = len(served.requests()) - count
        watch.look()
        memory = watch.worst(watch.memory)
        (folder / "workspace" / "pause").unlink()
    finally:
        _stop(process)
        watch.stop()
    return {
        "first_request_s": first,
        "requests_made": requests,
        "paused_core_share": paused,
        "requests_while_paused": leaked,
        "memory_mb": memory,
    }


def _start_crawl(config: Path, log_path: Path) -> subprocess.Popen[bytes]:
    with log_path.open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "crawler", "crawl", str(config), "-q"], stdout=log, stderr=log, cwd=ROOT
        )


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _everybodys_cpu(pid: int) -> float:
    return sum(cpu_seconds(child) for child in children(pid))


def _command(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "crawler", *arguments], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


# -- doing nothing -----------------------------------------------------------------------------------------


def waiting(folder: Path, steps: Steps) -> dict[str, Any]:
    """The whole pipeline while every domain has to wait."""
    shape = Shape(seed=3, sites=40, pages=20)
    options = CrawlOptions(minimum_time_on_page=60_000)
    with serve_terrain(ScaledTerrain(shape), folder / "server") as served:
        process = _start_crawl(write_config(folder, served, options, terrain_lists(shape)), folder / "crawl.log")
        try:
            steps.say("Waiting on politeness")
            time.sleep(12)
            before = _everybodys_cpu(process.pid)
            time.sleep(15)
            share = (_everybodys_cpu(process.pid) - before) / 15
            if process.poll() is not None:
                raise RuntimeError(f"the crawl ended:\n{(folder / 'crawl.log').read_text()[-3000:]}")
        finally:
            _stop(process)
    return {"core_share": share}


def help_time(steps: Steps) -> float:
    steps.say("--help")
    times = []
    for _ in range(7):
        started = time.perf_counter()
        program = Path(sys.executable).with_name("sumi-ripple")
        subprocess.run([program, "--help"], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - started)
    return sorted(times)[len(times) // 2]


# -- what people read --------------------------------------------------------------------------------------


def report(figures: dict[str, Any]) -> None:
    about = figures["machine"]
    print(f"\n{about['cpu']}, {about['cores']} cores, Python {about['python']}\n")
    rows: list[tuple[str, str, str, str]] = []

    def row(what: str, figure: float, form: str, target: float, unit: str, *, at_least: bool = False) -> None:
        sign = ">=" if at_least else "<="
        holds = figure >= target if at_least else figure <= target
        rows.append((what, f"{figure:{form}}{unit}", f"{sign} {target:,}{unit}", verdict(holds)))

    alone = figures.get("ingest")
    if alone:
        row("ingest alone", alone["pages_per_second"], ",.0f", 1500, " pages/s", at_least=True)
        row("ingest alone", alone["links_per_second"], ",.0f", 60_000, " links/s", at_least=True)
    grown = figures.get("growth")
    if grown:
        for windows, when in ((grown["early"], ", before and after"), ([grown["late"]], "")):
            wall, cpu = (", ".join(f"{one[key]:.1f}" for one in windows) for key in ("us_per_link", "cpu_us_per_link"))
            rows.append(
                (f"ingest at {windows[0]['known']:,} URLs known{when}", f"{wall} µs a link ({cpu} CPU)", "", "")
            )
        row("  the one against the other", grown["ratio"], ".2f", 1.5, "")
        memory = grown["memory_mb"]
        row("memory, scheduler", memory.get("scheduler", 0.0), ".0f", 150, " MB")
        row("memory, ingest", max(memory.get("ingest", 0.0), grown["ingest_memory_mb"]), ".0f", 400, " MB")
        row("memory, a fetcher", memory.get("fetcher", 0.0), ".0f", 150, " MB")
        row("restart until the first request", grown["first_request_s"], ".1f", 5, " s")
        row("report", grown["report_s"], ".1f", 10, " s")
        row("paused, whole pipeline", 100 * grown["paused_core_share"], ".1f", 2, " % of a core")
    if "waiting" in figures:
        row("waiting on politeness", 100 * figures["waiting"]["core_share"], ".1f", 2, " % of a core")
    if "help_s" in figures:
        row("sumi-ripple --help", figures["help_s"], ".2f", 0.3, " s")
    print(table(rows))
    if grown:
        print(
            f"\n  {grown['known']:,} URLs known, {grown['frontier']:,} in the frontier, {grown['domains']:,} domains; "
            f"the database has {grown['database_mb']:,.0f} MB"
        )


if __name__ == "__main__":
    sys.exit(main())
