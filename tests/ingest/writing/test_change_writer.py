"""How a batch is written: what SQLite does beside writing it, and what happens where the tables say something else."""

from __future__ import annotations

import sqlite3

import pytest

from crawler.model.records import RunEvent
from crawler.model.settings import Config
from tests.ingest.terrains import AT
from tests.ingest.test_loop import begun
from tests.ingest.writing.test_domain_sums import QA, Crawl, visit

QB = "https://qb.test/0"
PAGES = [f"https://one.test/{number}" for number in range(8)]
LISTED = ["https://bad.test/0", "https://x.stub.test/0"]
ABORT = 2  # sqliteInt.h: OE_Abort


def crawl_twice(crawl: Crawl) -> None:
    """Two runs in which pages are found, brought nearer to what they had a way from, and reached from elsewhere."""
    for run in (1, 2):
        crawl.apply(*begun(run))
        crawl.apply(visit(QA, PAGES[0], *LISTED, run=run))
        crawl.apply(visit(PAGES[0], *PAGES[1:], run=run))
        crawl.apply(visit(QB, *PAGES, *LISTED, run=run))
        crawl.apply(visit(PAGES[1], *PAGES[2:], QA, run=run))


def depths(crawl: Crawl) -> list[tuple[str, str, int]]:
    return crawl.store.db.execute(
        "SELECT url, quality_origin, page_depths.depth FROM page_depths JOIN pages ON pages.id = page_id ORDER BY 1, 2"
    ).fetchall()


def takes_copies(db: sqlite3.Connection, sql: str) -> bool:
    """Does SQLite keep the pages that this statement changes, in case that it has to be taken back alone?

    It does where a constraint can end a statement that writes several rows.
    """
    program = db.execute(f"EXPLAIN {sql}").fetchall()
    return any(step[1] in ("Halt", "HaltIfNull") and step[2] and step[3] == ABORT for step in program)


def test_no_page_is_copied_before_it_is_written(rules: Config) -> None:
    crawl = Crawl(rules)
    traced: list[str] = []
    crawl.store.db.set_trace_callback(traced.append)
    crawl_twice(crawl)
    crawl.store.db.set_trace_callback(None)
    lists = {sql for sql in traced if "json_each" in sql and not sql.startswith("SELECT")}
    upserts = {sql for sql in lists if "ON CONFLICT" in sql}  # of few rows: a page's links, a domain's sums
    assert upserts and all(takes_copies(crawl.store.db, sql) for sql in upserts), "or else this test sees nothing"
    assert {sql for sql in lists - upserts if takes_copies(crawl.store.db, sql)} == set()
    for table in ("pages", "page_depths", "links", "frontier"):
        assert any(f" {table} " in sql for sql in lists)
    crawl.store.close()


def test_the_domain_links_of_a_finished_run_are_all_in_its_view(rules: Config) -> None:
    crawl = Crawl(rules)
    crawl.apply(*begun(1))
    crawl.apply(visit(QA, *PAGES, *LISTED))
    crawl.apply(visit(PAGES[0], QA, PAGES[1]))
    db = crawl.store.db
    assert db.execute("SELECT count(*) FROM unsummed_links").fetchone() != (0,), "or else this test sees nothing"
    crawl.apply(RunEvent(1, AT, "finished"))
    assert db.execute("SELECT * FROM v_domain_links").fetchall(), "there is such a view now"
    seen = db.execute("SELECT from_domain, to_domain, links FROM v_domain_links").fetchall()
    counted = db.execute("SELECT from_domain, to_domain, count(*) FROM v_links GROUP BY 1, 2").fetchall()
    assert sorted(seen) == sorted(counted)
    crawl.store.close()


@pytest.mark.parametrize(
    "by_hand",
    [
        "DELETE FROM page_depths WHERE page_id > 3",
        "INSERT INTO page_depths SELECT page_id << 16 | 1, page_id, '*.qb.test', 7 FROM page_depths WHERE page_id > 3",
    ],
)
def test_rows_that_somebody_took_away_or_put_there_are_written_all_the_same(rules: Config, by_hand: str) -> None:
    crawl = Crawl(rules)
    crawl.apply(*begun())
    crawl.apply(visit(QA, PAGES[0], "/1"), visit(PAGES[0], *PAGES[1:]))
    before = depths(crawl)
    assert (PAGES[7], "qa.test", 2) in before
    crawl.store.db.execute(by_hand)
    assert depths(crawl) != before
    crawl.apply(visit("https://qa.test/1", *PAGES))
    crawl.apply(visit(QB, *PAGES))
    assert [row for row in depths(crawl) if row[0] in PAGES] == [
        (page, origin, 1) for page in PAGES for origin in ("*.qb.test", "qa.test")
    ]
    crawl.store.close()
