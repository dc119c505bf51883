"""The map of a single run: under the rules it had, kept for the next question, never mistaken for another run's."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.database.digest import digest
from crawler.database.map_errors import NoSuchRun
from crawler.model import recorded_settings
from crawler.model.records import RunEvent
from crawler.model.settings import Config
from ingest.replay import ReplayError, replay
from ingest.run_maps import KEPT, map_of_run
from tests.ingest.terrains import AT, read_plainly, results_of
from tests.ingest.test_loop import LATER, TWO, drain, web, write


def event(config: Config, run: int, word: str, at: str = AT) -> RunEvent:
    return RunEvent(run, at, word, config.config_hash, config.map_hash, recorded_settings.dump(config))


def crawl(rules: Config, run: int, depth: int = 2) -> None:
    write(rules, "scheduler", [event(rules, run, "started")])
    write(rules, "fetcher-01", results_of(web(), read_plainly(web(), depth), run))
    write(rules, "scheduler", [RunEvent(run, AT, "finished")])
    drain(rules)


def state(path: Path, url: str) -> str | None:
    db = sqlite3.connect(path)
    try:
        row = db.execute("SELECT state FROM pages WHERE url = ?", (url,)).fetchone()
        return row[0] if row else None
    finally:
        db.close()


def test_the_map_of_a_run_is_a_replay_of_its_results_under_its_own_rules(rules: Config, tmp_path: Path) -> None:
    crawl(rules, 1)
    wary = replace(rules, blacklist=(*rules.blacklist, "two.test"))
    crawl(wary, 2)
    first, second = map_of_run(wary, 1), map_of_run(wary, 2)
    assert (state(first, TWO), state(second, TWO)) == ("processed", "blacklisted")
    assert state(wary.output.database_path, TWO) == "blacklisted"
    replay(rules, tmp_path / "one.db", run=1)
    replay(wary, tmp_path / "two.db", run=2)
    assert (digest(first), digest(second)) == (digest(tmp_path / "one.db"), digest(tmp_path / "two.db"))


def test_a_map_is_built_once(rules: Config) -> None:
    crawl(rules, 1)
    first = map_of_run(rules, 1)
    made = first.stat().st_ino
    assert map_of_run(rules, 1) == first and first.stat().st_ino == made


def test_a_run_that_goes_on_is_built_again(rules: Config) -> None:
    write(rules, "scheduler", [event(rules, 1, "started")])
    results = results_of(web(), read_plainly(web(), 2), 1)
    write(rules, "fetcher-01", results[:2])
    drain(rules)
    early = map_of_run(rules, 1)
    write(rules, "fetcher-01", results[2:])
    drain(rules)
    late = map_of_run(rules, 1)
    assert early != late and digest(late) == digest(rules.output.database_path)


def test_only_a_few_maps_are_kept(rules: Config) -> None:
    for run in range(1, KEPT + 3):
        crawl(rules, run)
    for run in range(1, KEPT + 3):
        map_of_run(rules, run)
    kept = sorted(path.name.split("-")[1] for path in map_of_run(rules, 3).parent.glob("run-*.db"))
    assert kept == [str(run) for run in range(3, KEPT + 3)]


def test_a_run_that_never_was_is_named_with_those_that_were(rules: Config) -> None:
    crawl(rules, 1)
    crawl(rules, 2)
    with pytest.raises(NoSuchRun, match="there is no run 9; the runs there are: 1, 2"):
        map_of_run(rules, 9)


def test_a_run_whose_results_were_dropped_is_refused(rules: Config) -> None:
    few = replace(rules, spool=replace(rules.spool, results=1))
    crawl(few, 1)
    crawl(few, 2)
    with pytest.raises(ReplayError, match="results of run 1 are gone"):
        map_of_run(few, 1)
    assert map_of_run(few, 2).exists()


def test_settings_changed_in_a_run_hold_for_its_map(rules: Config) -> None:
    write(rules, "scheduler", [event(rules, 1, "started")])
    narrow = replace(rules, crawler=replace(rules.crawler, max_depth=0))
    write(rules, "scheduler", [event(narrow, 1, "resumed", LATER)])
    write(rules, "fetcher-01", results_of(web(), read_plainly(web(), 2), 1))
    drain(rules)
    assert state(map_of_run(rules, 1), TWO) == "depth_exceeded"
