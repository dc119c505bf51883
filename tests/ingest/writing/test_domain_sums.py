"""Links between domains are added up behind the batches: whenever somebody looks, the map says the right sums."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.database.map_errors import StoreError
from crawler.model.records import PageResult, Result, RunEvent, dump
from crawler.model.settings import Config
from ingest.apply import MapUpdater
from ingest.writing import domain_sums as sums
from ingest.writing.domain_sums import DomainSums
from ingest.writing.store import Store
from tests.ingest.terrains import AT, read_database
from tests.ingest.test_loop import begun, drain, start, write

QA = "https://qa.test/0"


def visit(key: str, *targets: str, run: int = 1) -> PageResult:
    domain = key.split("/")[2]
    return PageResult(run, key, key, domain, AT, "processed", status=200, base=key, hrefs=targets)


def waiting(path: Path) -> int:
    """How many links are not in domain_links yet."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        (noted,) = db.execute("SELECT coalesce(sum(links), 0) FROM unsummed_visits").fetchone()
        (meant,) = db.execute("SELECT count(*) FROM unsummed_links").fetchone()
    db.close()
    assert noted == meant
    return int(noted)


def summed(path: Path) -> dict[tuple[str, str], int]:
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        rows = db.execute(
            "SELECT a.domain, b.domain, links FROM domain_links JOIN domain_states a ON a.id = from_domain_id"
            " JOIN domain_states b ON b.id = to_domain_id"
        ).fetchall()
    db.close()
    return {(source, target): links for source, target, links in rows}


class Crawl:
    """A map that takes in one batch after the other."""

    def __init__(self, rules: Config) -> None:
        self.rules = rules
        self.path = rules.output.database_path
        self.open()

    def open(self) -> None:
        self.store = Store(self.path, self.rules)
        self.updater = MapUpdater(self.rules, self.store)

    def apply(self, *results: Result) -> None:
        self.updater.apply_batch([(result, dump(result)) for result in results])
        self.updater.commit()

    def kill(self) -> None:
        """And begin anew."""
        self.store.engine.close()
        self.open()


def test_what_waits_is_read_with_the_sums_and_written_when_the_map_is_closed(rules: Config) -> None:
    crawl = Crawl(rules)
    crawl.apply(*begun(), visit(QA, "/1", "/2", "https://one.test/a", "https://one.test/b"))
    assert waiting(crawl.path) == 4
    assert summed(crawl.path) == {}
    read_database(crawl.path)  # which compares the sums with the links
    assert crawl.store.counts["links"] == 4
    crawl.store.close()
    assert waiting(crawl.path) == 0
    assert summed(crawl.path) == {("qa.test", "qa.test"): 2, ("qa.test", "one.test"): 2}


def test_enough_links_of_one_domain_are_added_up_and_the_others_wait(
    rules: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sums, "ENOUGH", 4)
    crawl = Crawl(rules)
    crawl.apply(*begun(), visit(QA, "/1", "https://one.test/a", "https://one.test/b"))
    assert waiting(crawl.path) == 3
    crawl.apply(visit("https://one.test/a", "/x"), visit("https://qa.test/1", "https://one.test/a"))
    assert waiting(crawl.path) == 1
    assert summed(crawl.path) == {("qa.test", "qa.test"): 1, ("qa.test", "one.test"): 3}
    crawl.store.close()
    read_database(crawl.path)


def test_of_very_many_links_those_that_waited_longest_are_added_up(
    rules: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sums, "MOST", 8)
    crawl = Crawl(rules)
    crawl.apply(*begun(), visit(QA, "https://one.test/a", "https://two.test/a", "https://one.test/b"))
    crawl.apply(visit("https://one.test/a", "/1", "/2", "/3"), visit("https://two.test/a", "/1", "/2", "/3"))
    assert waiting(crawl.path) == 6
    assert set(summed(crawl.path)) == {("qa.test", "one.test"), ("qa.test", "two.test")}
    crawl.store.close()
    read_database(crawl.path)


def test_after_a_kill_the_map_says_what_waits(rules: Config) -> None:
    crawl = Crawl(rules)
    crawl.apply(*begun(), visit(QA, "/1", "https://one.test/a"))
    crawl.kill()
    assert crawl.store.counts["links"] == 2
    crawl.apply(visit("https://one.test/a", QA))
    assert waiting(crawl.path) == 3
    crawl.store.close()
    assert summed(crawl.path) == {
        ("qa.test", "qa.test"): 1,
        ("qa.test", "one.test"): 1,
        ("one.test", "qa.test"): 1,
    }


def test_to_find_what_waits_only_its_own_links_are_read(rules: Config) -> None:
    """Left to itself, SQLite made an index over all links first, which took for ever on a large map."""
    crawl = Crawl(rules)
    crawl.store.close()
    with sqlite3.connect(crawl.path) as db:
        plan = [row[3] for row in db.execute("EXPLAIN QUERY PLAN SELECT * FROM unsummed_links")]
    db.close()
    assert plan[:2] == ["SCAN visit", "SEARCH links USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]
    assert not any("AUTOMATIC" in step for step in plan)


@pytest.mark.parametrize("is_killed", [False, True])
def test_the_end_of_a_run_adds_up_even_if_it_is_all_that_a_process_takes_in(rules: Config, is_killed: bool) -> None:
    crawl = Crawl(rules)
    crawl.apply(*begun(), visit(QA, "/1", "https://one.test/a"))
    if is_killed:
        crawl.kill()
    crawl.apply(RunEvent(1, AT, "finished"))
    assert waiting(crawl.path) == 0
    assert summed(crawl.path) == {("qa.test", "qa.test"): 1, ("qa.test", "one.test"): 1}
    crawl.store.close()


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_new_run_begins_by_adding_up_and_counts_only_what_it_finds_first(rules: Config, is_killed: bool) -> None:
    crawl = Crawl(rules)
    crawl.apply(*begun(), visit(QA, "/1", "https://one.test/a"))
    if is_killed:
        crawl.kill()
    crawl.apply(*begun(2), visit(QA, "/1", "https://one.test/a", "https://one.test/b", run=2))
    assert waiting(crawl.path) == 1
    assert summed(crawl.path) == {("qa.test", "qa.test"): 1, ("qa.test", "one.test"): 1}
    crawl.store.close()
    assert summed(crawl.path) == {("qa.test", "qa.test"): 1, ("qa.test", "one.test"): 2}
    read_database(crawl.path)


def test_a_batch_that_fails_adds_nothing(rules: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither when it is written, nor when the map is closed, nor when the same lines are applied again."""
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", [visit(QA, "/1", "https://one.test/a")])
    drain(rules)
    before = summed(rules.output.database_path)
    write(rules, "fetcher-01", [visit("https://one.test/a", QA), visit("https://qa.test/1", QA)])
    ingest = start(rules)
    with monkeypatch.context() as patch:
        patch.setattr(
            DomainSums, "_write", lambda *_: ingest.store.db.execute("INSERT INTO meta VALUES ('map_hash', '')")
        )
        with pytest.raises(StoreError, match="UNIQUE constraint"):
            ingest.step()
    ingest.shutdown()
    assert waiting(rules.output.database_path) == 0
    assert summed(rules.output.database_path) == before
    drain(rules)
    assert summed(rules.output.database_path) == before | {("one.test", "qa.test"): 1, ("qa.test", "qa.test"): 2}


def test_a_batch_that_was_given_up_halfway_is_not_committed_by_closing(rules: Config) -> None:
    crawl = Crawl(rules)
    crawl.apply(*begun(), visit(QA, "/1", "https://one.test/a"))
    crawl.store.begin_run(2, AT, "")  # in a transaction that nothing ends
    crawl.store.close()
    assert waiting(crawl.path) == 2
    assert len(read_database(crawl.path).frontier) == 3


@given(st.data())
def test_memory_and_map_agree_whatever_is_due_when(data: st.DataObject) -> None:
    """Visits of a few domains, in batches, with kills between them, against a plain sum."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.executescript(
        "CREATE TABLE domain_links (id INTEGER PRIMARY KEY, from_domain_id, to_domain_id, links);"
        "CREATE TABLE unsummed_visits (id INTEGER PRIMARY KEY, links);"
        "CREATE TABLE known (page, target);"
        "CREATE VIEW unsummed_links AS SELECT id >> 32 AS from_domain_id, target AS to_domain_id"
        " FROM unsummed_visits JOIN known ON page = id & 0xffffffff;"
    )
    domains = st.integers(1, 4)
    expected: dict[tuple[int, int], int] = {}
    page = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "ENOUGH", data.draw(st.integers(1, 12)))
        patch.setattr(sums, "MOST", data.draw(st.integers(1, 30)))
        adding = DomainSums(db)
        for _ in range(data.draw(st.integers(1, 8))):
            batch = []
            for source, targets in data.draw(st.lists(st.tuples(domains, st.lists(domains, max_size=6)), max_size=4)):
                page += 1
                batch.append((source, page, tuple(targets)))
                db.executemany("INSERT INTO known VALUES (?, ?)", [(page, target) for target in targets])
                for target in targets:
                    expected[source, target] = expected.get((source, target), 0) + 1
            adding.add_visits(batch)
            assert len(adding) == db.execute("SELECT coalesce(sum(links), 0) FROM unsummed_visits").fetchone()[0]
            assert len(adding) <= sums.MOST
            if data.draw(st.booleans()):
                adding = DomainSums(db)
        found = dict.fromkeys(expected, 0)
        for source, target, links in db.execute(
            "SELECT from_domain_id, to_domain_id, links FROM domain_links"
            " UNION ALL SELECT from_domain_id, to_domain_id, 1 FROM unsummed_links"
        ):
            found[source, target] += links
        assert found == expected
        adding.write_all()
    assert db.execute("SELECT count(*) FROM unsummed_visits").fetchone() == (0,)
    rows = db.execute("SELECT from_domain_id, to_domain_id, links FROM domain_links").fetchall()
    assert {(source, target): links for source, target, links in rows} == expected
    db.close()
