"""Pages that wait go in the order that the config asks for, whatever order they were found under."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.model.records import PageResult
from crawler.model.settings import Config
from ingest.writing.store import Store
from tests.ingest.terrains import AT, config, ingest_all

QA = "https://qa.test/0"
NEAR_LIST, FAR_FRONT, LIST, CONTENT = (
    "https://one.test/news?page=2",
    "https://two.test/",
    "https://qa.test/blog/page/2",
    "https://qa.test/blog/frost",
)


@pytest.fixture
def rules(tmp_path: Path) -> Config:
    return config(tmp_path, max_depth=3)


def waiting(rules: Config) -> list[str]:
    """The keys of waiting pages, those that go first in front; seeds aside."""
    with sqlite3.connect(rules.output.database_path) as db:
        rows = db.execute("SELECT url FROM frontier JOIN pages USING (id) WHERE url NOT LIKE '%/0' ORDER BY priority")
        return [url for (url,) in rows]


def crawl(rules: Config) -> Config:
    """Two visits: they find pages at the depths 0, 1 and 2."""
    one = "https://one.test/1"
    visits = [
        PageResult(1, QA, QA, "qa.test", AT, "processed", status=200, hrefs=(CONTENT, LIST, one, NEAR_LIST)),
        PageResult(1, one, one, "one.test", AT, "processed", status=200, hrefs=(FAR_FRONT,)),
    ]
    ingest_all(rules, visits)
    return rules


def by_priority(rules: Config) -> Config:
    return replace(rules, crawler=replace(rules.crawler, order="priority"))


def test_by_default_the_level_decides_only_among_pages_of_one_depth(rules: Config) -> None:
    assert waiting(crawl(rules)) == [CONTENT, LIST, NEAR_LIST, FAR_FRONT]


def test_with_order_priority_a_list_waits_for_better_pages_that_lie_deeper(rules: Config) -> None:
    assert waiting(crawl(by_priority(rules))) == [CONTENT, FAR_FRONT, LIST, NEAR_LIST]


def test_another_order_holds_for_pages_that_wait_already(rules: Config) -> None:
    crawl(rules)
    Store(rules.output.database_path, by_priority(rules)).close()
    assert waiting(rules) == [CONTENT, FAR_FRONT, LIST, NEAR_LIST]
    Store(rules.output.database_path, rules).close()
    assert waiting(rules) == [CONTENT, LIST, NEAR_LIST, FAR_FRONT]


def test_waiting_pages_of_a_map_that_is_older_than_these_ranks_are_ranked(rules: Config) -> None:
    crawl(rules)
    with sqlite3.connect(rules.output.database_path) as db:
        db.execute("DELETE FROM meta WHERE name = 'waiting_order'")
        db.execute("UPDATE frontier SET priority = 0 WHERE id > 0")
    Store(rules.output.database_path, rules).close()
    assert waiting(rules) == [CONTENT, LIST, NEAR_LIST, FAR_FRONT]


def test_a_page_that_comes_nearer_keeps_its_kind(rules: Config) -> None:
    """FAR_FRONT comes from depth 2 to depth 1 without being loaded: only its depths change."""
    crawl(rules)
    qb = "https://qb.test/0"
    visit = PageResult(1, qb, qb, "qb.test", AT, "processed", status=200, hrefs=(FAR_FRONT,))
    for each in (rules, by_priority(rules)):
        again = replace(each, output=replace(each.output, database_path=each.output.database_path.with_suffix(".2")))
        again.output.database_path.unlink(missing_ok=True)
        crawl(again)
        ingest_all(again, [visit], started=False)
        order = [CONTENT, LIST, FAR_FRONT, NEAR_LIST] if each is rules else [CONTENT, FAR_FRONT, LIST, NEAR_LIST]
        assert waiting(again) == order
