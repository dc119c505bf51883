"""`make bench`: the whole pipeline, the bare loop and Scrapy on one terrain, one after the other.

    python -m benchmarks.pipeline [--quick] [--only pipeline,bare,scrapy,fairness,digest]

Prints a table against the targets and a picture of where a page's CPU goes, and keeps the figures as JSON in
benchmarks/results/. At most ten minutes; two with --quick.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.bare_loop import BareResult, run_bare
from benchmarks.crawls import CrawlFigures, CrawlOptions, crawl
from benchmarks.measure import ROOT, Steps, bars, cpu_seconds, machine, reporting, table, verdict
from benchmarks.terrain import HUB, ScaledTerrain, Shape, host_of
from crawler.database.digest import digest
from crawler.demo.server import Served, serve_terrain

SECTIONS = ("bare", "pipeline", "scrapy", "fairness", "digest")
TARGET_BARE, TARGET_SCRAPY = 0.65, 15.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything."""

    shape: Shape
    rounds: int = 2  # of the pipeline, with the bare loop before, between and after them
    bare_pages: int = 10_000
    scrapy_seconds: float = 60.0
    lean_seconds: float = 40.0
    fair_sites: int = 60


FULL = Plan(Shape(pages=100))
QUICK = Plan(
    Shape(sites=250, pages=24), rounds=1, bare_pages=2_500, scrapy_seconds=15.0, lean_seconds=0.0, fair_sites=40
)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the pipeline against a bare loop and Scrapy.")
    parser.add_argument("--quick", action="store_true", help="two minutes instead of ten")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections to run, comma-separated")
    parser.add_argument("--workers", type=int, default=0, help="fetcher processes of the pipeline; 0: as it chooses")
    parser.add_argument("--open", type=int, default=20, help="max-concurrent-pages-open: as the bare loop has")
    parser.add_argument("--keep", type=Path, help="keep the crawls' folders here")
    options = parser.parse_args()
    plan = QUICK if options.quick else FULL
    sections = set(options.only.split(","))
    crawl_options = CrawlOptions(workers=options.workers, max_concurrent_pages_open=options.open)
    steps = Steps()
    figures: dict[str, Any] = {"machine": machine(), "quick": options.quick, "shape": asdict(plan.shape)}
    with reporting("pipeline", figures, report, options.keep) as folder:
        measure(plan, sections, crawl_options, folder, steps, figures)
    return 0


def measure(
    plan: Plan, sections: set[str], options: CrawlOptions, folder: Path, steps: Steps, figures: dict[str, Any]
) -> None:
    if sections & {"bare", "pipeline", "scrapy"}:
        terrain = ScaledTerrain(plan.shape)
        figures["terrain"] = describe(terrain)
        steps.say(f"Terrain: {figures['terrain']}")
        with serve_terrain(terrain, folder / "server") as served:
            loops = Bare(terrain.urls()[: plan.bare_pages], served, steps) if "bare" in sections else None
            crawls: list[CrawlFigures] = []
            # By turns, so that a machine that grows busy or quiet meanwhile favours neither.
            for number in range(1, plan.rounds + 1 if "pipeline" in sections else 1):
                if loops:
                    loops.run()
                steps.say("The pipeline: sumi-ripple crawl")
                crawls.append(crawl(folder / f"pipeline-{number}", served, plan.shape, options))
            if loops:
                loops.run()
                figures["bare"] = loops.figures()
            if crawls:
                figures["pipeline"] = pipeline(crawls)
            if "scrapy" in sections:
                figures["scrapy"] = scrapy(served, plan, folder, steps)
    if "fairness" in sections:
        figures["fairness"] = fairness(plan, folder / "fairness", steps)
    if "digest" in sections:
        figures["digest"] = digests(folder / "digest", steps)


def describe(terrain: ScaledTerrain) -> dict[str, Any]:
    links = terrain.drawn.links
    sample = [url.split("/", 3) for url in terrain.urls()[:: max(1, len(links) // 500)]]
    sizes = [len(terrain.answer(host, "GET", "/" + path).data) for _, _, host, path in sample]
    return {
        "sites": terrain.shape.sites,
        "pages": len(terrain.urls()),
        "mean_bytes": round(statistics.mean(sizes)),
        "mean_links": round(statistics.mean(links), 1),
        "median_links": statistics.median(links),
    }


# -- the three ---------------------------------------------------------------------------------------------


class Bare:
    """The bare loop in its two forms, as often as it is run; the figures are of all runs together."""

    def __init__(self, urls: list[str], served: Served, steps: Steps) -> None:
        self._urls, self._served, self._steps = urls, served, steps
        self._runs: dict[str, list[tuple[BareResult, float]]] = {"urllib3": [], "own": []}

    def run(self) -> None:
        for form, runs in self._runs.items():
            self._steps.say(f"The bare loop ({form}): {len(self._urls):,} pages")
            before = cpu_seconds(self._served.pid)
            result = run_bare(form, self._urls, self._served.port, self._served.ca_path)
            runs.append((result, cpu_seconds(self._served.pid) - before))

    def figures(self) -> dict[str, Any]:
        forms = {}
        for form, runs in self._runs.items():
            pages = sum(result.pages for result, _ in runs)
            seconds = sum(result.seconds for result, _ in runs)
            server = sum(cpu for _, cpu in runs)
            forms[form] = {
                "pages": pages,
                "rate": pages / seconds,
                "rates": [result.rate for result, _ in runs],
                "cpu_ms": 1000 * sum(result.cpu_seconds for result, _ in runs) / pages,
                "server_ms": 1000 * server / pages,
                "server_core_share": server / seconds,
            }
        return {"forms": forms, "rate": max(form["rate"] for form in forms.values())}


def pipeline(runs: list[CrawlFigures]) -> dict[str, Any]:
    """All crawls together."""
    pages = sum(run.pages for run in runs)
    server = sum(run.server_cpu for run in runs)
    stages = sorted({stage for run in runs for stage in run.cpu})
    return {
        "pages": pages,
        "links": sum(run.links for run in runs),
        "known": runs[0].known,
        "seconds": sum(run.seconds for run in runs),
        "whole_seconds": sum(run.whole_seconds for run in runs),
        "rate": pages / sum(run.seconds for run in runs),
        "rates": [run.rate for run in runs],
        "steady_rate": len(runs) / sum(1 / run.steady_rate for run in runs),
        "cpu_ms": {stage: 1000 * sum(run.cpu.get(stage, 0.0) for run in runs) / pages for stage in stages},
        "server_ms": 1000 * server / pages,
        "server_core_share": server / sum(run.whole_seconds for run in runs),
        "memory_mb": {stage: max(run.memory.get(stage, 0.0) for run in runs) for stage in runs[0].memory},
    }


def by_rounds(ours: dict[str, Any], loop: dict[str, Any]) -> list[float]:
    """Each crawl against the bare loop just before and just after it: how much the ratio is to be trusted."""
    rates = max(loop["forms"].values(), key=lambda form: form["rate"])["rates"]
    return [
        rate * (1 / before + 1 / after) / 2
        for rate, before, after in zip(ours["rates"], rates, rates[1:], strict=False)
    ]


def scrapy(served: Served, plan: Plan, folder: Path, steps: Steps) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for form, seconds in (("usual", plan.scrapy_seconds), ("lean", plan.lean_seconds)):
        if not seconds:
            continue
        steps.say(f"Scrapy ({form} spider): {seconds:.0f} s")
        output = folder / "scrapy.json"
        command = [sys.executable, "-m", "benchmarks.scrapy_peer", str(served.port), str(output)]
        command += ["--seconds", str(seconds)] + (["--lean"] if form == "lean" else [])
        subprocess.run(command, check=True, cwd=ROOT, timeout=seconds + 120)
        progress = json.loads(output.read_text())["progress"]
        (began, cpu_began, _), (ended, cpu_ended, _) = progress[0], progress[-1]
        found[form] = {
            "pages": len(progress),
            "rate": (len(progress) - 1) / (ended - began),
            "cpu_ms": 1000 * (cpu_ended - cpu_began) / len(progress),
            "links_per_page": sum(links for _, _, links in progress) / len(progress),
        }
    return found


# -- fairness and sameness ---------------------------------------------------------------------------------


def fairness(plan: Plan, folder: Path, steps: Steps) -> dict[str, Any]:
    """Small sites alone, then next to one with very many URLs, then next to slow servers."""
    calm = Shape(seed=7, sites=plan.fair_sites, pages=8)
    cases = {
        "alone": calm,
        "next to a giant": replace(calm, giant=20_000),
        "next to slow servers": replace(calm, slow=3, slow_delay=1.0),
    }
    options = CrawlOptions(max_concurrent_pages_open=16, max_domain_requests=160)
    small = {host_of(site) for site in range(1, plan.fair_sites - 3)}
    found = {}
    for name, shape in cases.items():
        steps.say(f"Fairness: {len(small)} small sites {name}")
        with serve_terrain(ScaledTerrain(shape), folder / name.replace(" ", "-") / "server") as served:
            run = crawl(folder / name.replace(" ", "-"), served, shape, options)
        ends = [last for domain, (_, last, _) in run.spans.items() if domain in small]
        others = [last for domain, (_, last, _) in run.spans.items() if domain not in small and domain != HUB]
        found[name] = {
            "small_sites": len(ends),
            "median_done_s": statistics.median(ends),
            "last_done_s": max(ends),
            "others_done_s": max(others),
            "known": run.known,
        }
    return found


def digests(folder: Path, steps: Steps) -> dict[str, Any]:
    """The map of a fast crawl and that of a slow one, one page at a time."""
    shape = Shape(seed=11, sites=14, pages=8)
    found = {}
    for name, options in (
        ("fast", CrawlOptions()),
        ("slow", CrawlOptions(minimum_time_on_page=120, max_concurrent_pages_open=1, workers=1)),
    ):
        steps.say(f"Digest of a {name} crawl")
        with serve_terrain(ScaledTerrain(shape), folder / name / "server") as served:
            run = crawl(folder / name, served, shape, options)
        found[name] = digest(run.database)
    return {**found, "equal": found["fast"] == found["slow"]}


# -- what people read --------------------------------------------------------------------------------------


def report(figures: dict[str, Any]) -> None:
    about = figures["machine"]
    print(f"\n{about['cpu']}, {about['cores']} cores, Python {about['python']}")
    if "terrain" in figures:
        facts = figures["terrain"]
        print(
            f"{facts['sites']} sites, {facts['pages']:,} pages, {facts['mean_bytes'] / 1000:.0f} KB and "
            f"{facts['mean_links']} links on average (median {facts['median_links']:.0f})"
        )
    rows: list[tuple[str, str, str, str]] = []
    ours, loop, peer = figures.get("pipeline"), figures.get("bare"), figures.get("scrapy")
    if loop:
        rows += [(f"bare loop, {name}", f"{form['rate']:.0f} pages/s", "", "") for name, form in loop["forms"].items()]
    if ours:
        rows.append(("pipeline, whole run", f"{ours['rate']:.0f} pages/s", "", ""))
        rows.append(("pipeline, middle 80 % of pages", f"{ours['steady_rate']:.0f} pages/s", "", ""))
        if loop:
            ratio = ours["rate"] / loop["rate"]
            holds = verdict(ratio >= TARGET_BARE)
            rounds = ", ".join(f"{each:.2f}" for each in by_rounds(ours, loop))
            rows.append(
                ("pipeline against the bare loop", f"{ratio:.2f} (by rounds: {rounds})", f">= {TARGET_BARE}", holds)
            )
            best = min(form["cpu_ms"] + form["server_ms"] for form in loop["forms"].values())
            whole = sum(ours["cpu_ms"].values()) + ours["server_ms"]
            rows.append(("CPU a page, server included", f"{whole:.2f} ms, bare loop {best:.2f} ms", "", ""))
    for name, form in (peer or {}).items():
        rows.append((f"Scrapy, {name} spider", f"{form['rate']:.1f} pages/s", "", ""))
        if ours:
            ratio = ours["rate"] / form["rate"]
            target = f">= {TARGET_SCRAPY:.0f}" if name == "usual" else ""
            rows.append(
                ("pipeline against that", f"{ratio:.1f}", target, verdict(ratio >= TARGET_SCRAPY) if target else "")
            )
    if "digest" in figures:
        same = figures["digest"]["equal"]
        rows.append(("digest of a fast and a slow crawl", "equal" if same else "DIFFERENT", "equal", verdict(same)))
    print("\n" + table(rows))
    if ours:
        print("\nWhere a page's CPU goes:")
        print(bars({**ours["cpu_ms"], "(server)": ours["server_ms"]}, "ms"))
        share = ours["server_core_share"]
        print(f"  The server used {share:.0%} of one core; it is no part of the pipeline.")
        print("  Most memory: " + ", ".join(f"{stage} {mb:.0f} MB" for stage, mb in sorted(ours["memory_mb"].items())))
    if "fairness" in figures:
        print("\nFairness: when were the small sites done?")
        for name, case in figures["fairness"].items():
            half, last = case["median_done_s"], case["last_done_s"]
            print(
                f"  {name:<21} half of them after {half:5.1f} s, all after {last:5.1f} s"
                f"  (the others after {case['others_done_s']:.1f} s; {case['known']:,} URLs known)"
            )


if __name__ == "__main__":
    sys.exit(main())
