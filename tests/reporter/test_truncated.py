"""Pages whose compressed body ended early are told from whole ones in everything that is read."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from reporter.explain.explanation import explain
from reporter.export.graph import export
from reporter.stats import stats
from reporter.summary.write import render
from tests.reporter.terrain import MapBuilder, config_for

WHOLE, HALF = "https://q.test/", "https://q.test/half"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    builder = MapBuilder(tmp_path / "map.db")
    builder.page(WHOLE)
    builder.page(HALF, truncated=1)
    return builder.save(reverse_index=True)


def test_a_page_that_was_cut_short_is_marked_wherever_it_is_shown(database: Path, tmp_path: Path) -> None:
    assert [explain(config_for(), database, url).truncated for url in (WHOLE, HALF)] == [False, True]
    assert "ended early" in explain(config_for(), database, HALF).text()
    assert "ended early" not in explain(config_for(), database, WHOLE).text()
    export(database, tmp_path / "pages.jsonl", format="jsonl")
    nodes = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    assert {node["url"]: node["truncated"] for node in nodes if node["kind"] == "node"} == {WHOLE: 0, HALF: 1}
    assert json.loads(stats(database, as_json=True))["truncated"] == {"pages": 1, "urls": [HALF]}
    text = render(database)
    assert "## Pages Cut Short" in text and HALF in text.partition("## Pages Cut Short")[2]
    with sqlite3.connect(database) as db:
        assert db.execute("SELECT url FROM v_pages WHERE truncated").fetchall() == [(HALF,)]
    db.close()


def test_a_map_of_the_format_before_is_read_without_the_mark(database: Path, tmp_path: Path) -> None:
    with sqlite3.connect(database) as db:
        db.executescript(
            "DROP VIEW v_pages; ALTER TABLE pages DROP COLUMN truncated; DROP TABLE breakers;"
            "UPDATE meta SET value = '4' WHERE name = 'schema_version';"
        )
    db.close()
    assert not explain(config_for(), database, HALF).truncated
    export(database, tmp_path / "pages.csv", format="csv")
    assert "Pages Cut Short" not in render(database)
