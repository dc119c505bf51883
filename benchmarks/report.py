"""The figures of `make bench` as people read them: what was measured, the target, and whether it was met."""

from __future__ import annotations

import statistics
import textwrap
from typing import Any

from benchmarks.measure import bars, table, verdict

TARGET_LOOP, TARGET_SCRAPY = 1.0, 14.0
TARGET_FIRST, TARGET_ALL, TARGET_END = 1.0, 2.5, 2.0  # seconds
TARGET_FETCHER = 150.0  # MB
TARGET_REPLAY = 900.0  # results/s
TARGET_STORE = 1.15  # CPU a page with the store over without it, syncs included
TARGET_REVISIT = 0.5  # CPU a page of a run over an unchanged web over that of the visit before, both with the store
REVISITS = (("whole", "whole sites"), ("revisit", "cut-off sites"))  # figures, and what they are of
OLD_LOOP, OLD_SCRAPY = 0.65, 15.0  # on the old terrain, the targets that earlier versions were held to
OLD_LOOP_CPU = 0.60  # there, the ratio of CPU a page before real pages were measured; other work blurs it less
TERRAINS = {"real": "Real pages", "made": "Pages drawn like them", "old": "The old terrain"}
_TOP_STEPS = 14
Row = tuple[str, str, str, str]


def report(figures: dict[str, Any]) -> None:
    about = figures["machine"]
    print(f"\n{about['cpu']}, {about['cores']} cores, Python {about['python']},")
    print(f"load {about['load_before']} before and {about.get('load_after', '?')} after")
    if figures["quick"]:
        print("A quick run: start and end weigh more in it than the targets allow for.")
    for name, title in TERRAINS.items():
        if name in figures:
            _terrain(name, title, figures[name])
    if "advice" in figures:
        print("\n" + textwrap.fill(figures["advice"], 78))
    if "digest" in figures:
        same = figures["digest"]["equal"]
        print("\n" + table([("digest of a fast and a slow crawl", _same(same), "equal", verdict(same))]))
    if "fairness" in figures:
        _fairness(figures["fairness"])
    for mistake in figures["mistakes"]:
        print("\n" + textwrap.fill(f"NOT THE SAME PAGES: {mistake}", 78))


def _terrain(name: str, title: str, found: dict[str, Any]) -> None:
    print(f"\n{title}: {found['pages']:,} pages on {found['hosts']} hosts, served by {_server(found['server'])}")
    if "census" in found:
        _census(found["census"])
    print("\n" + table([*speed_rows(name, found), *time_rows(name, found)]))
    if "pauses_s" in found:
        took = statistics.mean(found["pipeline"]["seconds"])
        print(
            f"\n  Pauses between a host's requests alone take {found['pauses_s']:.1f} of the pipeline's {took:.1f} s."
        )
    _cpu(found)
    for stage, steps in found.get("steps", {}).items():
        print(f"\nSteps of the {stage}, CPU a page (one sampled crawl):")
        for step, cost in list(steps.items())[:_TOP_STEPS]:
            print(f"  {cost:7.3f} ms  {step[:66]}")


def _server(name: str) -> str:
    return "nginx" if name == "nginx" else "the project's own server"


def _census(facts: dict[str, Any]) -> None:
    size, hrefs, targets = facts["size"], facts["hrefs"], facts["targets"]
    print(f"  {'':8} {'mean':>9} {'median':>9} {'90 %':>9} {'99 %':>9} {'most':>9}")
    for label, spread, unit in (("KB", size, 1000), ("hrefs", hrefs, 1), ("targets", targets, 1)):
        print(
            f"  {label:8} "
            + " ".join(f"{spread[part] / unit:9,.0f}" for part in ("mean", "median", "p90", "p99", "most"))
        )
    print(
        f"  {facts['fragment_share']:.0%} of the hrefs have a fragment, {facts['in_page_share']:.0%} are one; "
        f"titles have {facts['title']['mean']:.0f} characters"
    )


def speed_rows(name: str, found: dict[str, Any]) -> list[Row]:
    """The rates, and the ratios that come from this one run."""
    ours, loop = found["pipeline"], found["loop"]
    old = name == "old"
    ratio, aim = ours["rate"] / loop["rate"], OLD_LOOP if old else TARGET_LOOP
    rounds = by_rounds(ours["rates"], loop["rates"])
    rows: list[Row] = [
        ("bare loop, urllib3 and lxml", f"{loop['rate']:.0f} pages/s", "", ""),
        ("pipeline, start and end included", f"{ours['rate']:.0f} pages/s", "", ""),
        ("pipeline, middle 80 % of the pages", f"{ours['steady_rate']:.0f} pages/s", "", ""),
        ("pipeline against the bare loop", f"{ratio:.2f}", f">= {aim:.2f}", verdict(ratio >= aim)),
    ]
    if len(rounds) > 1:
        rows.append(("  round by round", ", ".join(f"{each:.2f}" for each in rounds), "", ""))
    if "pauses_s" in found:
        rows += bound_rows(found)
    cost = max(ours["cpu_ms_total"], 0.001)
    aim_cpu = (f">= {OLD_LOOP_CPU:.2f}", verdict(loop["cpu_ms"] / cost >= OLD_LOOP_CPU)) if old else ("", "")
    rows.append(("  CPU a page, the bare loop's over ours", f"{loop['cpu_ms'] / cost:.2f}", *aim_cpu))
    if "store" in found:
        more = found["store"]["cpu_ms_total"] / cost
        rows.append(("pipeline with [store] html = true", f"{found['store']['rate']:.0f} pages/s", "", ""))
        judged = (f"<= {TARGET_STORE:.2f}", verdict(more <= TARGET_STORE))
        rows.append(("  CPU a page, with the store over without", f"{more:.2f}", *judged))
    for name, words in REVISITS:
        if name in found:
            again = found[name]
            less = again["cpu_ms_total"] / max(again["visit_ms"], 0.001)
            rows.append((f"revisit of {words}, {again['confirmed']:,} x 304", f"{again['rate']:.0f} pages/s", "", ""))
            judged = (f"<= {TARGET_REVISIT:.2f}", verdict(less <= TARGET_REVISIT))
            rows.append(("  CPU a page, over that of the visit", f"{less:.2f}", *judged))
    if "wider" in found:
        rows += wider_rows(found["wider"])
    for form, peer in found.get("scrapy", {}).items():
        cpu = peer["cpu_ms"] / cost
        ratio, aim = ours["rate"] / peer["rate"], OLD_SCRAPY if old else TARGET_SCRAPY
        rows.append((f"Scrapy, {form} spider, {peer['pages']:,} pages", f"{peer['rate']:.1f} pages/s", "", ""))
        judged = (f">= {aim:.0f}", verdict(ratio >= aim)) if form == "usual" else ("", "")
        rows.append((f"pipeline against Scrapy, {form}", f"{ratio:.1f}", *judged))
        rows.append(("  CPU a page, Scrapy's over ours", f"{cpu:.1f}", "", ""))
    return rows


def bound_rows(found: dict[str, Any]) -> list[Row]:
    """The rate that the pauses alone allow, and its ratio to the loop: no crawl that keeps them can do better."""
    most = found["pages"] / found["pauses_s"]
    return [
        ("  the pauses alone allow at most", f"{most:.0f} pages/s", "", ""),
        ("  that against the bare loop", f"{most / found['loop']['rate']:.2f}", "", ""),
    ]


def wider_rows(wide: dict[str, Any]) -> list[Row]:
    """The run over more hosts, where the pauses bind less."""
    ours, loop = wide["pipeline"], wide["loop"]
    ratio = ours["rate"] / loop["rate"]
    return [
        (f"on {wide['hosts']} hosts, {wide['pages']:,} pages: bare loop", f"{loop['rate']:.0f} pages/s", "", ""),
        ("  pipeline, start and end included", f"{ours['rate']:.0f} pages/s", "", ""),
        ("  pipeline against the bare loop", f"{ratio:.2f}", f">= {TARGET_LOOP:.2f}", verdict(ratio >= TARGET_LOOP)),
        *bound_rows(wide),
        ("  CPU a page, the bare loop's over ours", f"{loop['cpu_ms'] / max(ours['cpu_ms_total'], 0.001):.2f}", "", ""),
        ("  from the last answer to the end", f"{ours['after_last_answer_s']:.2f} s", "", ""),
    ]


def by_rounds(ours: list[float], loops: list[float]) -> list[float]:
    """Each crawl against the bare loop just before and just after it: how much the ratio is to be trusted."""
    return [rate * (1 / before + 1 / after) / 2 for rate, before, after in zip(ours, loops, loops[1:], strict=False)]


def time_rows(name: str, found: dict[str, Any]) -> list[Row]:
    """Start, end, memory and replay. On the old terrain most domains are not known at the start: no targets there."""
    ours = found["pipeline"]
    first, everyone, end = ours["first_request_s"], ours["all_at_work_s"], ours["after_last_answer_s"]
    has_targets = name != "old"
    rows = [
        ("from the command to the first request", f"{first:.2f} s", TARGET_FIRST, first),
        (f"until all of {ours['domains']} domains are at work", f"{everyone:.2f} s", TARGET_ALL, everyone),
        ("from the last answer to the end", f"{end:.2f} s", TARGET_END, end),
    ]
    told: list[Row] = [
        (what, measured, f"<= {aim} s" if has_targets else "", verdict(value <= aim) if has_targets else "")
        for what, measured, aim, value in rows
    ]
    memory = ours["memory_mb"].get("fetcher", 0.0)
    aim = f"<= {TARGET_FETCHER:.0f} MB" if has_targets else ""
    told.append(("most memory of a fetcher", f"{memory:.0f} MB", aim, verdict(memory <= TARGET_FETCHER) if aim else ""))
    told.append(("results that waited for the ingest, at most", f"{ours['most_unread_mb']:.1f} MB", "", ""))
    if "replay" in found:
        rate, same = found["replay"]["rate"], found["replay"]["equal"]
        told.append(("replay", f"{rate:.0f} results/s", f">= {TARGET_REPLAY:.0f}", verdict(rate >= TARGET_REPLAY)))
        told.append(("digest of the replayed map", _same(same), "equal", verdict(same)))
    return told


def _same(holds: bool) -> str:
    return "equal" if holds else "DIFFERENT"


def _cpu(found: dict[str, Any]) -> None:
    ours, loop = found["pipeline"], found["loop"]
    unseen = max(0.0, ours["cpu_ms_total"] - sum(ours["cpu_ms"].values()))
    print("\nWhere a page's CPU goes:")
    print(bars({**ours["cpu_ms"], "(unseen)": unseen, "(server)": ours["server_ms"]}, "ms", width=36))
    print(f"  {ours['cpu_ms_total']:.2f} ms a page without the server; the bare loop takes {loop['cpu_ms']:.2f} ms,")
    print(f"  and the server {loop['server_ms']:.2f} ms for it. Beside the pipeline the server used")
    print(f"  {ours['server_core_share']:.0%} of one core. Most memory of one process, in MB:")
    print("  " + ", ".join(f"{stage} {mb:.0f}" for stage, mb in sorted(ours["memory_mb"].items())))
    print(f"  The map: {ours['known']:,} pages known, {ours['links']:,} links.")
    for name, which in REVISITS:
        if name not in found:
            continue
        again, before = found[name]["cpu_ms"], found[name]["visit_stages_ms"]
        stages = ", ".join(f"{stage} {cost:.2f} ({before.get(stage, 0.0):.2f})" for stage, cost in again.items())
        words = f"The revisit of {which}, ms a page by stage (in brackets those of the visit before it): {stages}."
        print(textwrap.fill(words, 78, initial_indent="  ", subsequent_indent="  "))


def _fairness(cases: dict[str, Any]) -> None:
    print("\nFairness: when were the small sites done?")
    for name, case in cases.items():
        print(
            f"  {name:<21} half after {case['median_done_s']:5.1f} s, all after {case['last_done_s']:5.1f} s, "
            f"the others {case['others_done_s']:.1f} s"
        )
