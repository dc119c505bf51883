"""The map between runs: the specification's own indexes, and views with names, for plain SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reporter.terrain import REDIRECT, MapBuilder


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    b = MapBuilder(tmp_path / "map.db")
    b.page("https://q.test/", title="Home")
    b.page("https://q.test/old", status_code=301)
    b.page("https://ads.test/", "blacklisted", "blacklisted")
    b.link("https://q.test/", "https://q.test/old")
    b.link("https://q.test/", "https://ads.test/")
    b.link("https://q.test/old", "https://q.test/", REDIRECT)
    made = sqlite3.connect(b.save(reverse_index=True))
    yield made
    made.close()


def test_views_show_names_instead_of_numbers(db: sqlite3.Connection) -> None:
    pages = "SELECT url, domain, class, state, title, status_code, redirect_to FROM v_pages ORDER BY url"
    assert db.execute(pages).fetchall() == [
        ("https://ads.test/", "ads.test", "blacklisted", "blacklisted", None, None, None),
        ("https://q.test/", "q.test", "quality", "processed", "Home", 200, None),
        ("https://q.test/old", "q.test", "quality", "processed", None, 301, "https://q.test/"),
    ]
    assert db.execute("SELECT from_url, to_url, link FROM v_links ORDER BY 1, 2").fetchall() == [
        ("https://q.test/", "https://ads.test/", "followed"),
        ("https://q.test/", "https://q.test/old", "followed"),
        ("https://q.test/old", "https://q.test/", "redirect"),
    ]
    links = "SELECT from_domain, to_domain, from_class, to_class, links FROM v_domain_links ORDER BY 2"
    assert db.execute(links).fetchall() == [
        ("q.test", "ads.test", "quality", "blacklisted", 1),
        ("q.test", "q.test", "quality", "quality", 2),
    ]


@pytest.mark.parametrize(
    ("sql", "index"),
    [
        ("SELECT * FROM v_pages WHERE url = 'https://q.test/'", "idx_pages_url"),
        ("SELECT * FROM v_pages WHERE domain = 'q.test'", "idx_pages_domain"),
        ("SELECT * FROM v_pages WHERE state = 'dead_link'", "idx_pages_state"),
        ("SELECT * FROM v_links WHERE from_url = 'https://q.test/'", "idx_links_from"),
        ("SELECT * FROM v_links WHERE to_url = 'https://q.test/'", "idx_links_to"),
        ("SELECT * FROM pages JOIN page_depths ON page_id = pages.id WHERE url = 'x'", "idx_page_depths_page"),
    ],
)
def test_questions_in_plain_sql_use_an_index(db: sqlite3.Connection, sql: str, index: str) -> None:
    plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert any(f"INDEX {index} " in step for step in plan), plan
    assert not any(step.startswith("SCAN") for step in plan), plan


def test_a_url_is_in_the_map_once(db: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=r"UNIQUE constraint failed: pages\.url"):
        db.execute(
            "INSERT INTO pages (url, domain, state, discovered_at, discovered_run, url_hash, domain_id, seen_run)"
            " VALUES ('https://q.test/', 'q.test', 'queued', '', 1, 1, 1, 1)"
        )


def test_every_index_of_the_specification_exists_between_runs(db: sqlite3.Connection) -> None:
    """Its own names and columns; where it says UNIQUE in a table, an index of ours says so."""
    found = {
        name: (table, [row[2] for row in db.execute(f"PRAGMA index_info({name})")])
        for name, table in db.execute("SELECT name, tbl_name FROM sqlite_master WHERE type = 'index' AND sql NOT NULL")
    }
    for name, table, *columns in (
        ("idx_runs_status", "runs", "status"),
        ("idx_pages_domain", "pages", "domain"),
        ("idx_pages_state", "pages", "state"),
        ("idx_pages_discovered_run", "pages", "discovered_run"),
        ("idx_page_depths_origin", "page_depths", "quality_origin"),
        ("idx_page_depths_depth", "page_depths", "depth"),
        ("idx_links_from", "links", "from_page_id"),
        ("idx_links_to", "links", "to_page_id"),
        ("idx_blacklisted_domain", "blacklisted_urls", "domain"),
        ("idx_blacklisted_refs", "blacklisted_urls", "reference_count"),
        ("idx_stubbed_domain", "stubbed_urls", "domain"),
        ("idx_stubbed_refs", "stubbed_urls", "reference_count"),
        ("idx_frontier_priority", "frontier", "priority", "added_at"),
    ):
        assert found[name] == (table, columns)
    unique = {
        name
        for table in ("pages", "page_depths", "blacklisted_urls", "stubbed_urls")
        for _, name, is_unique, *_ in db.execute(f"PRAGMA index_list({table})")
        if is_unique
    }
    assert unique >= {"idx_pages_url", "idx_page_depths_page", "idx_blacklisted_url", "idx_stubbed_url"}
