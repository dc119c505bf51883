"""Sample pages of domains: crawled ones first, then by depth, and not more than asked for."""

from __future__ import annotations

from pathlib import Path

from crawler.database.reader import open_map
from reporter.queries.sample_pages import sample_pages
from tests.reporter.terrain import MapBuilder


def test_crawled_pages_with_a_title_come_first_and_the_rest_is_left_out(tmp_path: Path) -> None:
    b = MapBuilder(tmp_path / "map.db")
    b.page("https://q.test/dead", "dead_link")
    b.page("https://q.test/untitled")
    b.page("https://q.test/titled", title="A title")
    b.page("https://other.test/", "stubbed", "stubbed")
    b.page("https://old.test/", seen_run=0)
    with open_map(b.save()) as reader:
        numbers = [b.domains[name] for name in ("q.test", "other.test", "old.test")]
        found = sample_pages(reader, numbers, 1, 2)
        assert found == {
            numbers[0]: [
                ("https://q.test/titled", "A title", "processed"),
                ("https://q.test/untitled", None, "processed"),
            ],
            numbers[1]: [("https://other.test/", None, "stubbed")],
        }
        assert sample_pages(reader, [], 1, 2) == {}
