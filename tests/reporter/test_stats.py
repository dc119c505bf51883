"""`sumi-ripple stats`: the summary's figures, for people and for machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crawler.database.map_errors import NoDatabase
from reporter.stats import BY, stats
from reporter.survey import survey
from tests.reporter.terrain import MapBuilder


def test_the_json_holds_the_summarys_figures(database: Path) -> None:
    shape = json.loads(stats(database, as_json=True))
    figures = survey(database)
    assert (shape["v"], shape["kind"], shape["by"]) == (1, "stats", None)
    assert shape["run"] == {
        "id": 1,
        "started": "2025-01-15T10:30:00Z",
        "finished": "2025-01-15T14:45:23Z",
        "status": "completed",
        "seconds": 15323,
    }
    assert shape["overall"]["pages_crawled"] == figures.overall.pages_crawled
    assert shape["states"] == figures.states
    assert sum(row["crawled"] for row in shape["depths"]) == figures.overall.pages_crawled
    assert sum(row["count"] for row in shape["errors"]) == figures.overall.errors
    assert shape["dead_links"] == {"q.test": 2, "blog.wild.test": 1}
    assert shape["top_linked"][0]["class"] == "discovered"


@pytest.mark.parametrize("by", BY)
def test_each_view_has_its_list_and_the_overall_figures(database: Path, by: str) -> None:
    shape = json.loads(stats(database, by=by, as_json=True))
    assert shape["by"] == by
    assert shape["overall"]["errors"] == 17
    assert (
        set(shape)
        == {"v", "kind", "by", "run", "overall"}
        | {
            "domain": {"domains"},
            "state": {"states"},
            "depth": {"depths"},
            "error": {"errors", "error_slugs"},
            "seed": {"seeds"},
            "link": {"links"},
            "cut": {"cut_pages"},
            "rejection": {"rejections", "rejected"},
            "type": {"page_types"},
            "scope": {"scope"},
            "cap": {"caps"},
        }[by]
    )


def test_domains_come_whole_in_json_and_cut_on_the_terminal(database: Path) -> None:
    domains = json.loads(stats(database, by="domain", as_json=True))["domains"]
    assert domains[0] == {
        "domain": "q.test",
        "class": "quality",
        "crawled": 6,
        "known": 8,
        "waiting": 0,
        "errors": 2,
        "requests": 0,
        "depth_low": 0,
        "depth_high": 0,
        "closed": None,
        "left": 0,
        "why": None,
    }
    assert len(domains) > 40
    lines = stats(database, by="domain").splitlines()
    assert any(line.startswith("... and ") for line in lines)
    assert len(lines) < 30


@pytest.mark.parametrize("by", [None, *BY])
def test_the_text_fits_a_screen(database: Path, by: str | None) -> None:
    text = stats(database, by=by, name="map.db")
    assert text.endswith("\n")
    lines = text.splitlines()
    assert len(lines) <= 50
    assert max(len(line) for line in lines) <= 100


def test_the_overview_says_what_the_summary_says(database: Path) -> None:
    text = stats(database)
    figures = survey(database)
    assert "Run 1 · completed · started 2025-01-15T10:30:00Z" in text
    assert f"{'Pages crawled':<26}" in text
    assert f"{figures.overall.links:,}" in text
    assert "Rate-limited: slow.test" in text


def test_an_unknown_view_is_refused(database: Path) -> None:
    with pytest.raises(ValueError, match="domain, state, depth, error"):
        stats(database, by="colour")


def test_a_missing_database_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoDatabase, match=r"none\.db"):
        stats(tmp_path / "none.db")


def test_escapes_in_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    b = MapBuilder(tmp_path / "map.db")
    b.page("https://q.test/", "failed", error_message="\x1b[31mred: \x07")
    b.domain("q.test", domain="q.test\x1b[2J")
    path = b.save()
    for by in (None, *BY):
        assert "\x1b" not in stats(path, by=by)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table_of_domains_has_as_many_columns_as_fit(database: Path, width: int) -> None:
    text = stats(database, by="domain", is_uncut=True, width=width)
    head = next(line for line in text.splitlines() if line.startswith("domain "))
    table = text[text.index(head) :].split("\n\n")[0].splitlines()
    assert all(len(line) <= width for line in table if not line.startswith("    ")), table
    assert ("waiting" in head, "class" in head) == ((False, True) if width == 60 else (True, True))
    reasons = {row["why"] for row in json.loads(stats(database, by="domain", as_json=True))["domains"] if row["why"]}
    whole = stats(database, by="domain", is_uncut=True)
    assert any(why in whole for why in reasons), "there is something to be cut"
    assert all((why in text) is (why in whole) for why in reasons), "no reason is cut"
