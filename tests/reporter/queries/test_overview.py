"""Counts over all pages."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from crawler.database.reader import open_map
from crawler.model.states import PageState
from reporter.queries import overview
from tests.reporter.terrain import MapBuilder


@pytest.mark.parametrize("is_deep", [False, True])
def test_pages_are_counted_by_domain_state_depth_and_slug(tmp_path: Path, is_deep: bool) -> None:
    """Packed into one number while they are counted: every state, no depth, and a great one."""
    builder = MapBuilder(tmp_path / "map.db")
    expected: Counter[tuple[int, str, int | None, str | None]] = Counter()
    for number, state in enumerate(PageState):
        url = f"https://d{number % 3}.test/{state}"
        depth = None if number % 4 == 0 else (1 << 23) + number if is_deep else number
        error = f"slug-{number % 2}: text {number}" if number % 5 == 0 else None
        error = "request-limit: spent" if number % 5 == 1 else "breaker-open" if number % 5 == 2 else error
        builder.page(url, str(state), error_message=error)
        builder.db.execute("UPDATE pages SET depth = ? WHERE url = ?", (depth, url))
        expected[builder.domains[f"d{number % 3}.test"], str(state), depth, error and error.partition(":")[0]] += 1
    builder.db.execute("INSERT INTO runs VALUES (1, '', NULL, '', 'running')")
    builder.db.commit()
    builder.db.close()
    with open_map(tmp_path / "map.db") as reader:
        assert overview.page_counts(reader, 1) == expected
        assert not overview.page_counts(reader, 2)
        assert overview.pages_in_all(reader) == len(PageState)


def test_references_of_pages_that_a_run_has_not_seen_are_left_out(tmp_path: Path) -> None:
    builder = MapBuilder(tmp_path / "map.db", run=2)
    for name, seen in (("old", 1), ("new", 2)):
        number = builder.page(f"https://{name}.test/", "blacklisted", "blacklisted", seen_run=seen)
        builder.db.execute("UPDATE blacklisted_urls SET reference_count = 3 WHERE id = ?", (number,))
    path = builder.save()
    with open_map(path) as reader:
        seen_now = overview.most_referenced(reader, "blacklisted_urls", 2, False, 9)
        ever = overview.most_referenced(reader, "blacklisted_urls", 2, True, 9)
    assert [url for url, _ in seen_now] == ["https://new.test/"]
    assert {url for url, _ in ever} == {"https://new.test/", "https://old.test/"}
