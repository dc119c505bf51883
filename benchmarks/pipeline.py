"""`make bench`: the whole pipeline, a bare loop and Scrapy on the same pages, one after the other.

    python -m benchmarks.pipeline [--quick] [--sites DIR,DIR] [--only real,made,old,fairness,digest] [--profile]

Three terrains: `real`, documentation that is on the machine; `made`, drawn from a seed and made like it; `old`, the
even terrain of earlier figures. Prints a table against the targets and where a page's CPU goes, and keeps the
figures as JSON in benchmarks/results/. Twelve minutes, and four for whole sites; two with --quick. Exits with 1 if the
crawl, the loop or Scrapy did not fetch exactly the pages listed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import sampling
from benchmarks.bare_loop import BareResult, run_bare
from benchmarks.census import summarise
from benchmarks.crawls import (
    CrawlFigures,
    CrawlOptions,
    closed_lists,
    crawl,
    digest_of,
    layout_lists,
    layout_options,
    open_lists,
    replay,
    terrain_lists,
)
from benchmarks.docs_terrain import write_sites
from benchmarks.measure import ROOT, Steps, machine, reporting
from benchmarks.report import report
from benchmarks.sites import ADVICE, SPREAD, SUFFIX, Layout, find_documentation, lay_out, lay_out_whole, read_sites
from benchmarks.terrain import HUB, ScaledTerrain, Shape, host_of
from benchmarks.webserver import WebServer, find_nginx, serve, serve_layout

SECTIONS = ("real", "made", "old", "fairness", "digest")
Crawl = Callable[[Path], CrawlFigures]
_LARGEST_WHOLE = 600  # pages of a whole site: with two pauses of 100 ms each, its visit takes two minutes
_SPARE = 20  # requests that a revisited host has left over: the visit must not end with its budget
_DRAWN = 121  # pages of a drawn site at least; fewer would be mostly giants


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything. `peer_pages` is how many pages Scrapy gets of each terrain."""

    hosts: int = 200
    pages: int = 31  # of each host
    wider: int = 2  # times as many hosts with as many pages in all, once more: the pauses take so much less of that
    rounds: int = 2  # of the pipeline, with the bare loop before, between and after them
    made_rounds: int = 1
    peer_pages: int = 1_550
    whole: int = 20  # hosts with a whole site each, visited and visited again; 0: none
    old: Shape = Shape(sites=400, pages=40)  # noqa: RUF009
    old_peer_seconds: float = 25.0
    fair_sites: int = 60


FULL = Plan()
QUICK = Plan(
    pages=10,
    rounds=1,
    peer_pages=310,
    whole=0,
    old=Shape(sites=150, pages=20),
    old_peer_seconds=8.0,
    fair_sites=30,
)


@dataclass(frozen=True, slots=True)
class Setting:
    """What one call of the benchmark was asked to do."""

    plan: Plan
    sections: tuple[str, ...]
    roots: tuple[Path, ...]
    open_pages: int
    workers: int
    is_profiled: bool
    nginx: str | None


def main() -> int:
    options = _parser().parse_args()
    plan = QUICK if options.quick else FULL
    changes = {
        name: getattr(options, name) for name in ("hosts", "pages", "wider", "peer_pages") if getattr(options, name)
    }
    roots = [Path(part).resolve() for part in options.sites.split(",") if part] or find_documentation()
    sections = options.only or ",".join(part for part in SECTIONS if not (options.quick and part == "fairness"))
    setting = Setting(
        replace(plan, **changes),
        tuple(sections.split(",")),
        tuple(roots),
        options.open,
        options.workers,
        options.profile,
        None if options.own_server else find_nginx(),
    )
    figures: dict[str, Any] = {
        "machine": machine(),
        "quick": options.quick,
        "plan": asdict(setting.plan),
        "open_pages": options.open,
        "mistakes": [],
    }
    with reporting("pipeline", figures, report, options.keep) as folder:
        measure(setting, folder, Steps(), figures)
        figures["machine"]["load_after"] = round(os.getloadavg()[0], 2)
    return 1 if figures["mistakes"] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure the pipeline against a bare loop and Scrapy.")
    parser.add_argument("--quick", action="store_true", help="about two minutes instead of ten")
    parser.add_argument("--sites", default="", help="folders of HTML, comma-separated, instead of /usr/share/doc")
    parser.add_argument("--only", default="", help=f"sections to run, of {','.join(SECTIONS)}")
    parser.add_argument("--hosts", type=int, default=0, help="hosts of the real and the made terrain")
    parser.add_argument("--pages", type=int, default=0, help="pages of each host")
    parser.add_argument("--wider", type=int, default=0, help="times as many hosts for the run that pauses bind less")
    parser.add_argument("--peer-pages", type=int, default=0, help="pages that Scrapy gets")
    parser.add_argument("--workers", type=int, default=0, help="fetcher processes of the pipeline; 0: as it chooses")
    parser.add_argument("--open", type=int, default=20, help="max-concurrent-pages-open: as the bare loop has")
    parser.add_argument("--own-server", action="store_true", help="serve with the project's server, not nginx")
    parser.add_argument("--profile", action="store_true", help="one more crawl, to see which steps use the CPU")
    parser.add_argument("--keep", type=Path, help="keep the crawls' folders here")
    return parser


def measure(setting: Setting, folder: Path, steps: Steps, figures: dict[str, Any]) -> None:
    plan = setting.plan
    if "real" in setting.sections:
        if not setting.roots:
            figures["advice"] = ADVICE
            steps.say(ADVICE)
        else:
            bench = Bench(setting, folder / "real", steps, figures["mistakes"])
            figures["real"] = bench.layout(list(setting.roots), plan.rounds, ("usual", "lean"))
            figures["real"]["wider"] = bench.wider(list(setting.roots))
            if plan.whole and setting.nginx:
                figures["real"]["whole"] = bench.whole(list(setting.roots))
    if "made" in setting.sections:
        steps.say("Drawing a terrain like documentation")
        roots = write_sites(folder / "drawn", max(_DRAWN, 1 + (plan.pages - 1) * SPREAD))
        figures["made"] = Bench(setting, folder / "made", steps, figures["mistakes"]).layout(roots, plan.made_rounds)
    if "old" in setting.sections:
        figures["old"] = Bench(setting, folder / "old", steps, figures["mistakes"]).terrain(plan.old)
    if "fairness" in setting.sections:
        figures["fairness"] = fairness(plan, folder / "fairness", steps)
    if "digest" in setting.sections:
        figures["digest"] = digests(folder / "digest", steps)


# -- one terrain ---------------------------------------------------------------------------------------------


class Bench:
    """The loop and the pipeline by turns, then Scrapy, on one terrain; `mistakes` collects what did not agree."""

    def __init__(self, setting: Setting, folder: Path, steps: Steps, mistakes: list[str]) -> None:
        self._setting, self._folder, self._steps, self._mistakes = setting, folder, steps, mistakes
        folder.mkdir(parents=True, exist_ok=True)

    def layout(self, roots: list[Path], rounds: int, forms: tuple[str, ...] = ("usual",)) -> dict[str, Any]:
        """Folders of HTML over many hosts."""
        plan = self._setting.plan
        sites = read_sites(roots, plan.pages)
        if not sites:
            raise SystemExit(f"none of {', '.join(map(str, roots))} has {plan.pages} HTML pages")
        layout = lay_out(sites, plan.hosts, plan.pages)
        nginx = self._setting.nginx
        found: dict[str, Any] = {
            "sites": [str(site.root) for site in sites],
            "hosts": len(layout.hosts),
            "pages": len(layout.urls()),
            "pauses_s": pauses(plan.pages),
            "census": summarise(layout.counts()),
        }
        name = "nginx" if nginx else "the project's own server"
        self._steps.say(f"{len(sites)} sites on {plan.hosts} hosts, {len(layout.urls()):,} pages, by {name}")
        lists = layout_lists(layout)
        options = layout_options(layout, open_pages=self._setting.open_pages, workers=self._setting.workers)
        with serve_layout(layout, self._folder / "server", nginx=nginx) as server:
            found["server"] = server.name

            def run(folder: Path) -> CrawlFigures:
                return crawl(folder, server, lists, options)

            def run_and_keep(folder: Path) -> CrawlFigures:
                return crawl(folder, server, lists, replace(options, keeps_html=True))

            runs, found["loop"], keeping = self._by_turns(run, layout.urls(), server, rounds, run_and_keep)
            for one in keeping:
                self._agree(one, layout, f"the pipeline with the store in {self._folder.name}")
            found["store"] = summary_of(keeping)
            if server.name == "nginx":  # the own server has no validators
                found["revisit"] = self._revisit("revisited", server, closed_lists(layout), options)
            for one in runs:
                self._agree(one, layout, f"the pipeline in {self._folder.name}")
            found["pipeline"] = summary_of(runs)
            found["replay"] = self._replay(self._folder / "pipeline-1", runs[0])
            fewer = layout.first(max(1, plan.peer_pages // plan.pages))
            found["scrapy"] = self._scrapy_on(fewer, server, forms)
            if self._setting.is_profiled:
                found["steps"] = self._profile(server, lists, options)
        return found

    def wider(self, roots: list[Path]) -> dict[str, Any]:
        """About as many pages over more hosts, where the pauses between a host's requests take less of the run."""
        plan = self._setting.plan
        hosts, pages = plan.hosts * plan.wider, (plan.pages + plan.wider - 1) // plan.wider
        layout = lay_out(read_sites(roots, pages), hosts, pages)
        self._steps.say(f"The same over {hosts} hosts, {pages} pages each")
        options = layout_options(layout, open_pages=self._setting.open_pages, workers=self._setting.workers)
        with serve_layout(layout, self._folder / "wider-server", nginx=self._setting.nginx) as server:

            def run(folder: Path) -> CrawlFigures:
                return crawl(folder.with_name(f"wider-{folder.name}"), server, layout_lists(layout), options)

            runs, loop, _ = self._by_turns(run, layout.urls(), server, 1)
        self._agree(runs[0], layout, f"the pipeline on more hosts in {self._folder.name}")
        return {
            "hosts": hosts,
            "pages": len(layout.urls()),
            "pauses_s": pauses(pages),
            "loop": loop,
            "pipeline": summary_of(runs),
        }

    def whole(self, roots: list[Path]) -> dict[str, Any]:
        """Whole sites, visited and visited again: all pages that they link to are there, and are visited."""
        layout = lay_out_whole(roots, self._setting.plan.whole, _LARGEST_WHOLE)
        self._steps.say(f"Whole sites on {len(layout.hosts)} hosts, {len(layout.urls()):,} pages")
        options = layout_options(layout, open_pages=self._setting.open_pages, workers=self._setting.workers)
        with serve_layout(layout, self._folder / "whole-server", nginx=self._setting.nginx) as server:
            found = self._revisit("whole", server, open_lists(layout), options)
        return found | {"hosts": len(layout.hosts), "sites": sorted({str(host.root) for host in layout.hosts})}

    def terrain(self, shape: Shape) -> dict[str, Any]:
        """The old terrain: found from a hub, pages as even as a generator makes them."""
        terrain = ScaledTerrain(shape)
        urls = terrain.urls()
        self._steps.say(f"The old terrain: {shape.sites} sites, {len(urls):,} pages")
        options = CrawlOptions(max_concurrent_pages_open=self._setting.open_pages, workers=self._setting.workers)
        with serve(terrain, self._folder / "server") as server:

            def run(folder: Path) -> CrawlFigures:
                return crawl(folder, server, terrain_lists(shape), options)

            runs, loop, _ = self._by_turns(run, urls, server, 1)
            if runs[0].pages != len(urls):
                self._mistakes.append(f"old terrain: {runs[0].pages:,} pages processed, {len(urls):,} there are")
            task = {"start": [f"https://{HUB}/"], "suffix": ".bench.test"}
            peer = self._scrapy("usual", task, server, self._setting.plan.old_peer_seconds)
        return {
            "server": "own",
            "pages": len(urls),
            "hosts": shape.sites,
            "loop": loop,
            "pipeline": summary_of(runs),
            "scrapy": {"usual": peer},
        }

    def _by_turns(
        self, run: Crawl, urls: list[str], server: WebServer, rounds: int, run_and_keep: Crawl | None = None
    ) -> tuple[list[CrawlFigures], dict[str, Any], list[CrawlFigures]]:
        """Loop, pipeline, loop, pipeline, loop: a machine that grows busy or quiet meanwhile favours neither.

        With `run_and_keep`, each crawl is followed by one with the store on.
        """
        loops = [self._loop(urls, server)]
        runs, keeping = [], []
        for number in range(1, rounds + 1):
            self._steps.say("The pipeline: sumi-ripple crawl")
            runs.append(run(self._folder / f"pipeline-{number}"))
            self._steps.say(f"  {runs[-1].pages:,} pages in {runs[-1].seconds:.1f} s, {runs[-1].rate:.0f} pages/s")
            loops.append(self._loop(urls, server))
            if run_and_keep is not None:
                self._steps.say("The pipeline with [store] html = true")
                keeping.append(run_and_keep(self._folder / f"keeping-{number}"))
                self._steps.say(f"  {keeping[-1].seconds:.1f} s, {keeping[-1].rate:.0f} pages/s")
        return runs, loops_of(loops), keeping

    def _revisit(self, name: str, server: WebServer, lists: str, options: CrawlOptions) -> dict[str, Any]:
        """A crawl with the store, and its next run: nothing has changed since. Both have requests to spare."""
        options = replace(options, keeps_html=True, max_domain_requests=options.max_domain_requests + _SPARE)
        self._steps.say("A crawl with the store, and its next run: nothing has changed")
        first = crawl(self._folder / name, server, lists, options)
        since = time.time()
        again = crawl(self._folder / name, server, lists, options)
        answers = Counter(
            each.status for each in server.seen(since) if each.method == "GET" and each.path != "robots.txt"
        )
        self._steps.say(f"  {again.seconds:.1f} s, {answers[304]:,} pages confirmed, {answers[200]:,} sent again")
        if again.pages != first.pages or answers[304] < 0.9 * first.pages:
            words = f"{again.pages:,} of {first.pages:,} pages, {answers[304]:,} confirmed"
            self._mistakes.append(f"the revisit in {self._folder.name}/{name}: {words}")
        visit = summary_of([first])
        costs = {"visit_ms": visit["cpu_ms_total"], "visit_stages_ms": visit["cpu_ms"]}
        return summary_of([again]) | costs | {"confirmed": answers[304], "sent_again": answers[200]}

    def _loop(self, urls: list[str], server: WebServer) -> tuple[BareResult, float]:
        self._steps.say(f"The bare loop: {len(urls):,} pages")
        before = server.cpu()
        result = run_bare(urls, server.port, server.ca_path)
        if result.pages != len(urls):
            self._mistakes.append(f"the bare loop fetched {result.pages:,} of {len(urls):,} pages")
        self._steps.say(f"  {result.seconds:.1f} s, {result.rate:.0f} pages/s")
        return result, server.cpu() - before

    def _agree(self, run: CrawlFigures, layout: Layout, who: str) -> None:
        wanted = sum(len(host.pages) for host in layout.hosts)
        if run.pages != wanted:
            self._mistakes.append(f"{who}: {run.pages:,} pages processed, {wanted:,} listed")
        self._mistakes.extend(disagreement(run.fetched, layout, who))

    def _replay(self, folder: Path, run: CrawlFigures) -> dict[str, Any]:
        self._steps.say("Replaying the first crawl")
        done = replay(folder, run.pages)
        if not done.equal:
            self._mistakes.append(f"{folder.parent.name}: the replayed map has another digest")
        return {"results": done.results, "rate": done.results / done.seconds, "equal": done.equal}

    def _scrapy_on(self, layout: Layout, server: WebServer, forms: tuple[str, ...]) -> dict[str, Any]:
        task = {"start": layout.urls(), "listed": layout.urls(), "suffix": SUFFIX}
        found = {form: self._scrapy(form, task, server, 240.0) for form in forms}
        for form, peer in found.items():
            if peer["pages"] != len(task["listed"]):
                self._mistakes.append(f"Scrapy ({form}) fetched {peer['pages']:,} of {len(task['listed']):,} pages")
        return found

    def _scrapy(self, form: str, task: dict[str, Any], server: WebServer, seconds: float) -> dict[str, Any]:
        listed = f"{len(task['listed']):,} pages" if "listed" in task else f"{seconds:.0f} s"
        self._steps.say(f"Scrapy ({form} spider): {listed}")
        output, order = self._folder / "scrapy.json", self._folder / "task.json"
        order.write_text(json.dumps(task))
        command = [sys.executable, "-m", "benchmarks.scrapy_peer", str(server.port), str(order), str(output)]
        command += ["--seconds", str(seconds)] + (["--lean"] if form == "lean" else [])
        subprocess.run(command, check=True, cwd=ROOT, timeout=seconds + 120)
        progress = json.loads(output.read_text())["progress"]
        (began, cpu_began, _), (ended, cpu_ended, _) = progress[0], progress[-1]
        return {
            "pages": len(progress),
            "rate": (len(progress) - 1) / (ended - began),
            "cpu_ms": 1000 * (cpu_ended - cpu_began) / len(progress),
            "links_per_page": sum(links for _, _, links in progress) / len(progress),
        }

    def _profile(self, server: WebServer, lists: str, options: CrawlOptions) -> dict[str, Any]:
        self._steps.say("One more crawl, sampled")
        notes = self._folder / "samples"
        environment = sampling.environment(notes, ROOT.resolve())
        try:
            run = crawl(self._folder / "sampled", server, lists, options, timeout=120, environment=environment)
        except (subprocess.TimeoutExpired, RuntimeError) as problem:  # the other figures stand without it
            self._steps.say(f"  The sampled crawl came to nothing: {problem}")
            return {}
        by_stage = sampling.read(notes, run.stages)
        return {
            stage: {step: 1000 * seconds / run.pages for step, seconds in steps.items()}
            for stage, steps in by_stage.items()
        }


def pauses(pages: int) -> float:
    """Seconds that politeness alone asks for: between robots.txt, and HEAD and GET of each page of a host."""
    return 2 * pages * CrawlOptions().minimum_time_on_page / 1000


def disagreement(fetched: list[str], layout: Layout, who: str) -> list[str]:
    """Sentences on how the pages that the server gave out differ from those listed; none if each was given once."""
    wanted = {f"{host.name}/{page}" for host in layout.hosts for page in host.pages}
    counts = Counter(fetched)
    missing, extra = sorted(wanted - counts.keys()), sorted(counts.keys() - wanted)
    twice = [page for page, times in counts.items() if times > 1]
    return [
        f"{who}: {len(pages):,} pages {words}, e.g. {pages[0]}"
        for words, pages in (("missing", missing), ("not listed", extra), ("fetched twice", twice))
        if pages
    ]


def loops_of(loops: list[tuple[BareResult, float]]) -> dict[str, Any]:
    """All runs of the bare loop together."""
    pages = sum(result.pages for result, _ in loops)
    seconds = sum(result.seconds for result, _ in loops)
    return {
        "pages": pages,
        "rate": pages / seconds,
        "rates": [result.rate for result, _ in loops],
        "cpu_ms": 1000 * sum(result.cpu_seconds for result, _ in loops) / pages,
        "server_ms": 1000 * sum(cpu for _, cpu in loops) / pages,
    }


def summary_of(runs: list[CrawlFigures]) -> dict[str, Any]:
    """All crawls together; of times and memory the worst."""
    pages = sum(run.pages for run in runs)
    seconds = sum(run.seconds for run in runs)
    server = sum(run.server_cpu for run in runs)
    stages = sorted({stage for run in runs for stage in run.cpu})
    return {
        "pages": pages,
        "known": runs[0].known,
        "links": runs[0].links,
        "seconds": [run.seconds for run in runs],
        "rate": pages / seconds,
        "rates": [run.rate for run in runs],
        "steady_rate": statistics.harmonic_mean([run.steady_rate for run in runs]),
        "first_request_s": max(run.first for run in runs),
        "all_at_work_s": max(run.all_at_work for run in runs),
        "after_last_answer_s": max(run.seconds - run.last for run in runs),
        "domains": min(len(run.spans) for run in runs),
        "cpu_ms": {stage: 1000 * sum(run.cpu.get(stage, 0.0) for run in runs) / pages for stage in stages},
        "cpu_ms_total": 1000 * sum(run.cpu_total for run in runs) / pages,
        "server_ms": 1000 * server / pages,
        "server_core_share": server / seconds,
        "most_unread_mb": max(run.most_unread for run in runs) / 1e6,
        "memory_mb": {stage: max(run.memory.get(stage, 0.0) for run in runs) for stage in runs[0].memory},
    }


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
        with serve(ScaledTerrain(shape), folder / name.replace(" ", "-") / "server") as server:
            run = crawl(folder / name.replace(" ", "-"), server, terrain_lists(shape), options)
        ends = [last - run.first for domain, (_, last) in run.spans.items() if domain in small]
        others = [last - run.first for domain, (_, last) in run.spans.items() if domain not in small and domain != HUB]
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
        with serve(ScaledTerrain(shape), folder / name / "server") as server:
            run = crawl(folder / name, server, terrain_lists(shape), options)
        found[name] = digest_of(run.database)
    return {**found, "equal": found["fast"] == found["slow"]}


if __name__ == "__main__":
    sys.exit(main())
