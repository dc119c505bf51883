"""Rejected pages in every output: figures, summary, stats, explain, exports; maps of older formats have none."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from reporter.explain.explanation import explain
from reporter.export.graph import export
from reporter.stats import stats
from reporter.summary.ending import figures_line
from reporter.summary.markdown import summary
from reporter.survey import survey
from tests.older_maps import TO_FORMAT_4
from tests.reporter.terrain import MapBuilder, config_for

SHELL, WALL, LOST = "https://a.test/app", "https://a.test/wall", "https://b.test/lost"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    b = MapBuilder(tmp_path / "map.db")
    b.add_run(1)
    b.page("https://q.test/", validation="ok")
    b.page(SHELL, validation="soft", rejection_reason="needs-rendering: nothing but scripts")
    b.page(WALL, "failed", error_message="http-403", validation="hard", rejection_reason="block-page: status 403")
    b.page(LOST, validation="soft", rejection_reason="soft-404: the title")
    b.page("https://old.test/", validation="soft", rejection_reason="empty: x", visited_run=0)
    for url in (SHELL, WALL, LOST):
        b.link("https://q.test/", url)
    return b.save()


def test_figures_and_stats_count_them_by_reason(database: Path) -> None:
    figures = survey(database)
    assert [(row.word, row.reason, row.pages) for row in figures.rejections] == [
        ("hard", "block-page", 1),
        ("soft", "needs-rendering", 1),
        ("soft", "soft-404", 1),
    ]
    assert [page.url for page in figures.rejected] == [WALL, SHELL, LOST]
    text = stats(database, "rejection")
    assert "block-page       hard      1" in text
    assert f"{SHELL}  soft: needs-rendering: nothing but scripts" in text
    assert text.endswith("3 pages in all\n")


def test_the_summary_lists_them(database: Path) -> None:
    text = summary(survey(database), "1.0", "my.toml")
    assert "3 answers that were no page" in text and "A browser would show more" in text
    assert f"| `{SHELL}` | soft | `needs-rendering: nothing but scripts` |" in text
    assert "| `https://b.test/lost` | soft |" in text


def test_pages_that_count_as_crawled_and_are_none_are_counted_beside_them(database: Path) -> None:
    figures = survey(database)
    assert (figures.overall.pages_crawled, figures.overall.rejected) == (4, 2)
    assert "| Pages Crawled | 4 |\n| Of Them Rejected | 2 |" in summary(figures, "1.0", "my.toml")
    assert "Of them rejected" in stats(database)
    assert figures_line(figures).startswith("4 pages crawled (2 of them rejected), 1 failed")


def test_explain_says_why_and_what_would_help(database: Path) -> None:
    config = config_for()
    assert "rejected      soft, needs-rendering: nothing but scripts" in explain(config, database, SHELL).text()
    assert "which are not run here" in explain(config, database, SHELL).text()
    assert 'ignore = ["soft-404"]' in explain(config, database, LOST).text()
    assert json.loads(explain(config, database, WALL).json())["validation"] == "hard"
    assert "rejected" not in explain(config, database, "https://q.test/").text()


def test_exports_have_the_columns(database: Path, tmp_path: Path) -> None:
    export(database, tmp_path / "map.csv", format="csv")
    with (tmp_path / "map.nodes.csv").open(newline="") as file:
        rows = {row["url"]: row for row in csv.DictReader(file)}
    assert (rows[WALL]["validation"], rows[WALL]["rejection_reason"]) == ("hard", "block-page: status 403")


def test_a_map_of_an_older_format_has_none(database: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(database)) as db:
        db.executescript(TO_FORMAT_4)
    figures = survey(database)
    assert (figures.rejections, figures.rejected) == ([], [])
    assert "Rejected" not in summary(figures, "1.0", "my.toml")
    assert "No page was rejected." in stats(database, "rejection")
    assert "rejected" not in explain(config_for(), database, SHELL).text()
    export(database, tmp_path / "map.jsonl", format="jsonl")
    assert '"validation":null' in (tmp_path / "map.jsonl").read_text()
