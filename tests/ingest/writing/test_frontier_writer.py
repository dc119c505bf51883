"""The order inside a domain, as the frontier's rows have it."""

from __future__ import annotations

import sqlite3

from crawler.model.records import Closure, DomainEvent, FamilyEvent, PageResult, RunEvent, changed
from crawler.model.settings import Config
from tests.ingest.terrains import AT, Terrain, result_of
from tests.ingest.test_loop import LATER, QA, begun, drain, start, write

HUB, DONE, LEAF, NEW = (f"https://qa.test/{name}" for name in ("hub", "done", "leaf", "new"))
PAGES = Terrain(
    {
        QA: ("links", [DONE, HUB], False),
        DONE: ("links", [QA], False),
        HUB: ("links", [LEAF, NEW], False),
        LEAF: ("links", [], False),
    }
)


def visits(run: int, *keys: str) -> list[PageResult]:
    return [result_of(PAGES, key, run) for key in keys]


def turns(config: Config) -> dict[str, int]:
    db = sqlite3.connect(config.output.database_path)
    try:
        return dict(db.execute("SELECT url, turn FROM frontier JOIN pages ON pages.id = page_id").fetchall())
    finally:
        db.close()


def test_after_a_budget_ran_out_pages_that_lead_to_new_ones_go_before_other_visited_ones(rules: Config) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", visits(1, QA, DONE, HUB, LEAF))
    write(rules, "fetcher-01", [DomainEvent(1, "qa.test", LATER, "closed", closes=Closure("request-limit", 5, 500))])
    write(rules, "scheduler", [RunEvent(1, LATER, "finished"), *begun(2, LATER)])
    write(rules, "fetcher-01", visits(2, QA))
    drain(rules)
    assert turns(rules) | {"https://qb.test/0": 0} == {HUB: 1, DONE: 2, "https://qb.test/0": 0}
    write(rules, "fetcher-01", visits(2, HUB))
    drain(rules)
    assert turns(rules) | {"https://qb.test/0": 0} == {NEW: 0, LEAF: 2, DONE: 2, "https://qb.test/0": 0}


def test_without_that_the_page_whose_last_visit_is_the_most_runs_ago_goes_first(rules: Config) -> None:
    for run in (1, 2):
        write(rules, "scheduler", begun(run))
        write(rules, "fetcher-01", visits(run, QA, *((DONE,) if run == 1 else (HUB,))))
        write(rules, "scheduler", [RunEvent(run, AT, "finished")])
    write(rules, "scheduler", begun(3))
    write(rules, "fetcher-01", visits(3, QA))
    drain(rules)
    assert turns(rules) | {"https://qb.test/0": 0} == {DONE: 2, HUB: 3, "https://qb.test/0": 0}


def counted(config: Config) -> dict[int, int]:
    db = sqlite3.connect(config.output.database_path)
    try:
        return dict(db.execute("SELECT domain_id, count(*) FROM frontier GROUP BY domain_id").fetchall())
    finally:
        db.close()


def test_the_waiting_pages_of_each_domain_are_counted_as_rows_come_and_go(rules: Config) -> None:
    """Against the table after every batch: visits, a closure of a domain, of a family, the next run."""
    family = FamilyEvent(1, "one.test", LATER, "one.test/#", "trap-similar-paths: enough", 5000, ())
    batches = [
        begun(),
        visits(1, QA),
        visits(1, HUB),
        [changed(result_of(PAGES, DONE, 1), hrefs=tuple(f"https://one.test/{n}" for n in range(5)))],
        [family],
        [DomainEvent(1, "qa.test", LATER, "closed", closes=Closure("request-limit", 5, 500))],
        [RunEvent(1, LATER, "finished")],
        begun(2, LATER),
        visits(2, QA, HUB),
    ]
    ingest = start(rules)
    seen = set()
    for batch in batches:
        is_own = isinstance(batch[0], RunEvent | FamilyEvent)
        write(rules, "scheduler" if is_own else "fetcher-01", list(batch))
        while ingest.step():
            pass
        left = ingest.store.domains_left(ingest.updater.run)
        now = counted(rules)
        assert sorted(domain.waiting for domain in left) == sorted(now.values()), batch
        seen.add(sum(now.values()))
    ingest.shutdown()
    assert len(seen) > 3, "they did come and go"
