"""A map before its first batch: made in one transaction, upgraded, or refused with a sentence."""

from __future__ import annotations

import sqlite3

import pytest

from crawler.database.digest import digest
from crawler.database.format import SCHEMA_VERSION
from crawler.database.map_errors import StoreError
from crawler.model.records import Closure, DomainEvent, RunEvent
from crawler.model.settings import Config
from ingest.writing import setup
from ingest.writing.store import Store
from tests.ingest.terrains import read_database, read_plainly
from tests.ingest.test_loop import LATER, QA, QB, begun, drain, results, web, write
from tests.older_maps import TO_FORMAT_2, TO_FORMAT_3, TO_FORMAT_4, TO_FORMAT_5, TO_FORMAT_6, TO_FORMAT_7


def test_a_damaged_database_is_refused_and_replay_named(rules: Config) -> None:
    rules.output.database_path.parent.mkdir(parents=True, exist_ok=True)
    rules.output.database_path.write_bytes(b"this is not a database, it is a text of some length" * 100)
    with pytest.raises(StoreError, match="replay"):
        Store(rules.output.database_path, rules)


def test_a_death_while_the_tables_are_made_leaves_a_database_that_can_be_made(
    rules: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill -9 takes the transaction with it; so does a connection that nobody commits on."""
    whole = setup.set_meta

    def die(db: sqlite3.Connection, name: str, value: str) -> None:
        whole(db, name, value)
        db.close()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(setup, "set_meta", die)
        Store(rules.output.database_path, rules)
    store = Store(rules.output.database_path, rules)
    assert store.is_fresh
    store.close()


CUT = Closure("request-limit", 7, 500)


@pytest.mark.parametrize("older", [TO_FORMAT_7, TO_FORMAT_6, TO_FORMAT_5, TO_FORMAT_4, TO_FORMAT_3, TO_FORMAT_2])
def test_a_map_of_an_older_format_is_brought_up_to_date(rules: Config, older: str) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results()[:2])
    drain(rules)
    with sqlite3.connect(rules.output.database_path) as db:
        db.executescript(older)
    db.close()
    write(rules, "fetcher-01", results()[2:])
    drain(rules)
    assert read_database(rules.output.database_path) == read_plainly(web(), 2)
    store = Store(rules.output.database_path, rules)
    assert store.meta("schema_version") == str(SCHEMA_VERSION)
    store.close()


def test_a_map_of_format_3_keeps_the_figures_of_its_last_run(rules: Config) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results())
    write(rules, "scheduler", [RunEvent(1, LATER, "finished")])
    drain(rules)
    with sqlite3.connect(rules.output.database_path) as db:
        counted = db.execute("SELECT * FROM run_figures").fetchall()
        db.executescript(TO_FORMAT_3)
    db.close()
    assert len(counted) == 1
    drain(rules)
    with sqlite3.connect(rules.output.database_path) as db:
        assert db.execute("SELECT * FROM run_figures").fetchall() == counted
    db.close()


def test_a_map_of_format_4_keeps_its_frontier_in_the_order_of_format_5(rules: Config) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", [*results(), DomainEvent(1, "two.test", LATER, "closed", closes=CUT)])
    write(rules, "scheduler", [RunEvent(1, LATER, "finished"), *begun(2, LATER)])
    write(rules, "fetcher-01", results(2)[:1])
    drain(rules)
    asked = "SELECT page_id, turn FROM frontier ORDER BY page_id"
    cut = "SELECT domain, cut_run FROM domain_states WHERE cut_run IS NOT NULL"
    with sqlite3.connect(rules.output.database_path) as db:
        waiting, cut_short = db.execute(asked).fetchall(), db.execute(cut).fetchall()
        db.executescript(TO_FORMAT_4)
    db.close()
    drain(rules)
    with sqlite3.connect(rules.output.database_path) as db:
        assert db.execute(asked).fetchall() == waiting and {turn for _, turn in waiting} == {2}
        assert cut_short == [("two.test", 1)]
    db.close()


def test_a_foreign_or_newer_database_is_refused(rules: Config) -> None:
    path = rules.output.database_path
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE recipes (name)")
    db.commit()
    db.close()
    with pytest.raises(StoreError, match="another program"):
        Store(path, rules)
    path.unlink()
    store = Store(path, rules)
    store.set_meta("schema_version", "99")
    store.close()
    with pytest.raises(StoreError, match="format 99"):
        Store(path, rules)


def test_the_pages_of_a_map_of_format_4_are_seeds_or_linked(rules: Config) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results())
    drain(rules)
    before = digest(rules.output.database_path)
    with sqlite3.connect(rules.output.database_path) as db:
        db.executescript(TO_FORMAT_4)
    db.close()
    assert digest(rules.output.database_path) == before
    drain(rules)
    assert digest(rules.output.database_path) == before
    with sqlite3.connect(rules.output.database_path) as db:
        seeds = {url for (url,) in db.execute("SELECT url FROM pages WHERE origin = 'seed'")}
        others = {origin for (origin,) in db.execute("SELECT DISTINCT origin FROM pages")} - {"seed"}
    db.close()
    assert seeds == {QA, QB}
    assert others == {"linked"}
