"""Pages that were found or tried without a link, in the summary and in stats."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from reporter.figures import GuessedForm, UnlinkedPages
from reporter.stats import stats
from reporter.summary.markdown import summary
from reporter.survey import survey
from tests.older_maps import TO_FORMAT_4
from tests.reporter.terrain import MapBuilder

LIST, YEAR = "https://q.test/news/page/{n}", "https://q.test/{year}"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    b = MapBuilder(tmp_path / "map.db")
    b.add_run(1)
    b.page("https://q.test/")
    orphan = b.page("https://q.test/orphan", origin="sitemap", validation="ok")
    found = b.page("https://q.test/linked", origin="linked")
    tried = [b.page(f"https://q.test/news/page/{n}", origin="speculated") for n in (4, 5)]
    wall = b.page("https://q.test/news/page/6", origin="speculated", validation="soft", rejection_reason="soft-404: x")
    gone = b.page("https://q.test/2019", "dead_link", origin="archive", error_message="http-404")
    path = b.save()
    with closing(sqlite3.connect(path)) as db, db:
        db.executemany("INSERT INTO sitemap_entries (id, sitemap_id, run) VALUES (?, 1, 1)", [(orphan,), (found,)])
        db.execute(
            "INSERT INTO pagination_rules (id, form, domain_id, last_number, first_run, last_run, ended_by, ended_run)"
            " VALUES (7, ?, 1, 3, 1, 1, 'soft-404', 1)",
            (LIST,),
        )
        db.execute(
            "INSERT INTO archive_rules (id, form, domain_id, first_run, last_run, ended_by, ended_run)"
            " VALUES (8, ?, 1, 1, 1, 'dead-link', 1)",
            (YEAR,),
        )
        rows = [*((page, 1, "speculated", 7, 3) for page in (*tried, wall)), (gone, 1, "archive", 8, None)]
        db.executemany("INSERT INTO guesses (id, run, way, rule_id, found) VALUES (?, ?, ?, ?, ?)", rows)
    return path


def test_what_was_found_and_what_was_tried_is_counted(database: Path) -> None:
    figures = survey(database)
    assert figures.unlinked == [
        UnlinkedPages("sitemap", 1, 1, None),
        UnlinkedPages("archive", 1, 0, 0),
        UnlinkedPages("speculated", 3, 2, 9),
    ]
    assert figures.guessed == [
        GuessedForm("speculated", LIST, 3, "soft-404"),
        GuessedForm("archive", YEAR, 1, "dead-link"),
    ]
    shape = json.loads(stats(database, as_json=True))
    assert [row["way"] for row in shape["unlinked"]] == ["sitemap", "archive", "speculated"]
    assert shape["guessed"][0]["ended_by"] == "soft-404"


def test_the_summary_says_what_was_tried_and_why_no_more_was(database: Path) -> None:
    text = summary(survey(database), "1.0", "my.toml")
    assert "| guess: the next page of a list | 3 | 2 | 9 |" in text
    assert "| `https://q.test/news/page/{n}` | 3 | one said that it was not there |" in text
    assert "| `https://q.test/{year}` | 1 | one was not there |" in text


def test_a_map_of_an_older_format_has_none(database: Path) -> None:
    with closing(sqlite3.connect(database)) as db, db:
        db.executescript(TO_FORMAT_4)
    figures = survey(database)
    assert (figures.unlinked, figures.guessed) == ([], [])
    assert "Without a Link" not in summary(figures, "1.0", "my.toml")
