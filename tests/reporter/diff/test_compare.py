"""A diff equals what two replays say: every change is recomputed here with plain sets."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings

from crawler.database.completed_map import aside_path
from crawler.model.records import PageResult, RunEvent, changed
from crawler.model.settings import Config
from crawler.model.states import ERRORS
from ingest.replay import replay
from ingest.run_maps import map_of_run
from reporter.diff.compare import compare, compare_successive
from reporter.diff.run_changes import Changes, ComparedRun, Kind
from tests.ingest.terrains import AT, Terrain, config, read_plainly, results_of, terrains
from tests.ingest.test_loop import begun, drain, write


@dataclass
class Seen:
    """A map as plain values."""

    pages: dict[str, tuple]  # URL → state, title, status, error, redirect
    links: set[tuple[str, str]]
    domains: dict[str, tuple]  # name → class, least depth


def seen(path: Path) -> Seen:
    db = sqlite3.connect(path)
    rows = db.execute(
        "SELECT p.url, p.state, p.title, p.status_code, p.error_message, t.url, p.domain, p.depth"
        " FROM pages p LEFT JOIN pages t ON t.id = p.redirect_to"
    ).fetchall()
    links = db.execute(
        "SELECT a.url, b.url FROM links JOIN pages a ON a.id = from_page_id JOIN pages b ON b.id = to_page_id"
    ).fetchall()
    classes = dict(db.execute("SELECT domain, class FROM domain_states").fetchall())
    db.close()
    depths: dict[str, list[int]] = {row[6]: [] for row in rows}
    for row in rows:
        if row[7] is not None:
            depths[row[6]].append(row[7])
    domains = {name: (classes[name], min(found, default=None)) for name, found in depths.items()}
    return Seen({row[0]: row[1:6] for row in rows}, set(links), domains)


def expected(earlier: Seen, old: Seen, new: Seen) -> dict[Kind, set]:
    """The changes from `old` to `new`; `earlier` is the run before both."""
    both = old.pages.keys() & new.pages.keys()
    crawled = {url for url in both if old.pages[url][0] == new.pages[url][0] == "processed"}
    moved = {
        url
        for url in crawled
        if new.pages[url][4] and new.pages[url][2] in (301, 308) and new.pages[url][4] != old.pages[url][4]
    }
    found = {
        Kind.PAGE_NEW: new.pages.keys() - old.pages.keys() - earlier.pages.keys(),
        Kind.PAGE_RETURNED: (new.pages.keys() - old.pages.keys()) & earlier.pages.keys(),
        Kind.PAGE_VANISHED: old.pages.keys() - new.pages.keys(),
        Kind.PAGE_DIED: {u for u in both if old.pages[u][0] == "processed" and new.pages[u][0] in ERRORS},
        Kind.PAGE_CAME_BACK: {u for u in both if new.pages[u][0] == "processed" and old.pages[u][0] in ERRORS},
        Kind.PAGE_MOVED: moved,
        Kind.PAGE_TITLE: {url for url in crawled - moved if old.pages[url][1] != new.pages[url][1]},
        Kind.LINK_NEW: new.links - old.links - earlier.links,
        Kind.LINK_RETURNED: (new.links - old.links) & earlier.links,
        Kind.LINK_VANISHED: old.links - new.links,
        Kind.DOMAIN_NEW: new.domains.keys() - old.domains.keys() - earlier.domains.keys(),
        Kind.DOMAIN_RETURNED: (new.domains.keys() - old.domains.keys()) & earlier.domains.keys(),
        Kind.DOMAIN_VANISHED: old.domains.keys() - new.domains.keys(),
    }
    shared = old.domains.keys() & new.domains.keys()
    found[Kind.DOMAIN_CLASS] = {name for name in shared if old.domains[name][0] != new.domains[name][0]}
    found[Kind.DOMAIN_REACH] = {name for name in shared if old.domains[name][1] != new.domains[name][1]}
    return {kind: set(names) for kind, names in found.items() if names}


def listed(found: Changes) -> dict[Kind, set]:
    assert {kind: len(rows) for kind, rows in found.lists.items()} == dict(found.counts)
    return {
        kind: {(change.name, change.target) if change.target else change.name for change in rows}
        for kind, rows in found.lists.items()
    }


def crawl(rules: Config, run: int, terrain: Terrain, titles: int) -> None:
    write(rules, "scheduler", begun(run))
    results = [
        changed(result, title=f"T{int(result.key[-1]) % titles}") if isinstance(result, PageResult) else result
        for result in results_of(terrain, read_plainly(terrain, 2), run)
    ]
    write(rules, "fetcher-01", results)
    write(rules, "scheduler", [RunEvent(run, AT, "finished")])


def run_of(number: int) -> ComparedRun:
    return ComparedRun(number, AT, AT, "completed")


@settings(max_examples=40, deadline=None)
@given(terrains(size=3), terrains(size=3), terrains(size=3))
def test_a_diff_is_what_two_replays_say(first: Terrain, second: Terrain, third: Terrain) -> None:
    with TemporaryDirectory() as folder:
        rules = config(Path(folder))
        for run, terrain in enumerate((first, second, third), 1):
            crawl(rules, run, terrain, run + 1)
        drain(rules)
        maps = [map_of_run(rules, run) for run in (1, 2, 3)]
        live = rules.output.database_path
        found = compare((run_of(2), maps[1]), (run_of(3), maps[2]), live)
        replays = []
        for run in (1, 2, 3):
            replay(rules, path := Path(folder) / f"replay-{run}.db", run=run)
            replays.append(seen(path))
        assert listed(found) == expected(*replays)
        assert compare_successive(run_of(2), run_of(3), live, aside_path(live)) == found
        assert listed(compare((run_of(1), maps[0]), (run_of(3), maps[2]), live)) == expected(
            Seen({}, set(), {}), replays[0], replays[2]
        )


def test_a_run_compared_with_itself_has_no_change(rules_with_two_runs: Config) -> None:
    first = map_of_run(rules_with_two_runs, 1)
    told: list[tuple[int, int]] = []
    found = compare(
        (run_of(1), first),
        (run_of(1), first),
        rules_with_two_runs.output.database_path,
        progress=lambda done, total: told.append((done, total)),
    )
    assert not found.counts and not found.lists
    assert told[-1][0] == told[-1][1] > 0


def test_successive_runs_are_not_compared_by_number_where_the_map_was_built_anew(rules_with_two_runs: Config) -> None:
    live = rules_with_two_runs.output.database_path
    quick = compare_successive(run_of(1), run_of(2), live, aside_path(live))
    assert quick is not None and quick.counts[Kind.PAGE_DIED] == 1
    db = sqlite3.connect(live)
    db.execute("UPDATE pages SET url_hash = url_hash + 1 WHERE id = 2")
    db.commit()
    db.close()
    assert compare_successive(run_of(1), run_of(2), live, aside_path(live)) is None
