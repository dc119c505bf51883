"""Pages in parts: the same list with and without the indexes that exist between runs, and every part is bounded."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from benchmarks.web_load import make_map
from crawler.database.reader import MapReader, open_map
from reporter.queries import page_list
from reporter.queries.page_list import PageFilters, list_pages

FILTERS = {
    "all": PageFilters(),
    "state": PageFilters(state="processed"),
    "errors": PageFilters(state="errors"),
    "domain": PageFilters(domain_id=3),
    "domain and state": PageFilters(state="dead_link", domain_id=3),
    "status": PageFilters(status=404),
    "domain, depth and class": PageFilters(domain_id=3, depth=2, klass="quality"),
}


@pytest.fixture(scope="module")
def completed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("list") / "map.db"
    make_map(path, 1200, 11)
    return path


@pytest.fixture(scope="module")
def live(completed: Path) -> Path:
    """The same map as it is while its first run is under way."""
    path = completed.with_name("live.db")
    source, db = sqlite3.connect(completed), sqlite3.connect(path)
    source.backup(db)
    source.close()
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE name LIKE 'idx_pages_%'").fetchall():
        db.execute(f"DROP INDEX {name}")
    db.commit()
    db.close()
    return path


def listed(path: Path, filters: PageFilters, limit: int) -> list[int]:
    found, after = [], 0
    with open_map(path) as reader:
        for _ in range(2000):
            part, following = list_pages(reader, 1, filters, after, limit)
            assert len(part) <= limit
            found += [page.id for page in part]
            if following is None:
                return found
            after = following
    raise AssertionError("the list has no end")


def expected(path: Path, filters: PageFilters) -> list[int]:
    errors = ", ".join(f"'{state}'" for state in page_list.ERRORS)
    wanted = {
        "": "1",
        "errors": f"state IN ({errors})",
    }.get(filters.state, f"state = '{filters.state}'")
    wanted += f" AND domain_id = {filters.domain_id}" if filters.domain_id is not None else ""
    wanted += f" AND status_code = {filters.status}" if filters.status is not None else ""
    wanted += f" AND depth = {filters.depth}" if filters.depth is not None else ""
    db = sqlite3.connect(path)
    try:
        return [number for (number,) in db.execute(f"SELECT id FROM pages WHERE {wanted} ORDER BY id")]
    finally:
        db.close()


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("looked", [70, 50_000])
def test_a_list_is_whole_and_in_order_with_and_without_indexes(
    completed: Path, live: Path, monkeypatch: pytest.MonkeyPatch, name: str, looked: int
) -> None:
    monkeypatch.setattr(page_list, "LOOKED", looked)
    whole = expected(completed, FILTERS[name])
    assert whole
    assert listed(completed, FILTERS[name], 25) == whole == listed(live, FILTERS[name], 25)


@pytest.mark.parametrize("name", FILTERS)
def test_no_part_reads_on_and_on_for_pages_that_pass(
    completed: Path, live: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Each question walks an index that the filters are the first column of, or the table, for LOOKED rows at most."""
    plans: list[str] = []
    old = MapReader.all

    def noted(self: MapReader, sql: str, parameters: object = ()) -> object:
        window = re.search(r"FROM \((.*?)\) looked", sql)
        assert window is not None
        found = [row[3] for row in old(self, f"EXPLAIN QUERY PLAN {window[1]}", parameters)]  # type: ignore[arg-type]
        if found == ["SEARCH pages USING INTEGER PRIMARY KEY (rowid>?)"]:
            assert "state" not in window[1] and "domain_id" not in window[1], "else it reads on for rows that pass"
        plans.extend(found)
        return old(self, sql, parameters)  # type: ignore[arg-type]

    monkeypatch.setattr(MapReader, "all", noted)
    for path in (completed, live):
        listed(path, FILTERS[name], 25)
    walks = {plan for plan in plans if plan.startswith(("SEARCH pages", "SCAN pages"))}
    allowed = {
        "SEARCH pages USING INTEGER PRIMARY KEY (rowid>?)",
        "SEARCH pages USING COVERING INDEX idx_pages_domain_id (domain_id=? AND rowid>?)",
        "SEARCH pages USING COVERING INDEX idx_pages_state (state=? AND rowid>?)",
    }
    assert walks and walks <= allowed
