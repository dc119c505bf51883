"""A diff as text, JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json

import pytest

from crawler.model.records import Closure, DomainEvent, RunEvent
from crawler.model.settings import Config
from ingest.run_maps import map_of_run
from reporter.diff import diff_views
from reporter.diff.compare import compare
from reporter.diff.run_changes import Change, Changes, ComparedRun, Kind
from tests.ingest.terrains import AT
from tests.ingest.test_loop import begun, drain, write


@pytest.fixture
def found(rules_with_two_runs: Config) -> Changes:
    first, second = ((ComparedRun(n, AT, AT, "completed"), map_of_run(rules_with_two_runs, n)) for n in (1, 2))
    live = rules_with_two_runs.output.database_path
    return compare(first, second, live, ("crawler.max-depth: 1 → 2",))


def test_the_text_has_counts_and_the_changes_of_each_kind(found: Changes) -> None:
    text = diff_views.as_text(found, 10)
    assert text.startswith("Run 1 (completed, 2026-01-01T00:00:00Z) -> Run 2 (completed, ")
    assert "  crawler.max-depth: 1 → 2\n" in text
    assert "pages              2         0         0\n" in text
    assert "Pages that died (1)\n  https://one.test/0: test\n" in text
    assert "Pages that came back (1)\n  https://two.test/0: test\n" in text
    assert "Pages that moved (1)\n  https://qa.test/1: https://qa.test/2\n" in text
    assert "Pages with another title (1)\n  https://qb.test/0: Title 1 -> Title 2\n" in text
    assert "New domains (1)\n  blätterwald.test (xn--bltterwald-r5a.test): discovered\n" in text
    assert "Vanished links (1)\n  https://qa.test/0 -> https://qb.test/0\n" in text
    assert "New links (2)\n" in text


def test_a_long_list_ends_with_the_option_that_shows_the_rest(found: Changes) -> None:
    assert "... and 1 more: --limit 2" in diff_views.as_text(found, 1)


def test_json_and_csv_list_every_change(found: Changes) -> None:
    shape = json.loads(diff_views.as_json(found))
    rows = list(csv.DictReader(io.StringIO(diff_views.as_csv(found))))
    assert [row["change"] for row in shape["changes"]] == [row["change"] for row in rows]
    assert sum(shape["counts"].values()) == len(rows) == sum(found.counts.values())
    assert {"change": "page-died", "name": "https://one.test/0", "target": None, "was": None, "is": "test"} in shape[
        "changes"
    ]


def test_the_section_names_what_a_curator_acts_on(found: Changes) -> None:
    text = diff_views.as_section(found)
    assert text.startswith("## Changes Since Run 1\n")
    assert "| Pages | 2 | 0 | 0 |" in text
    assert "### Pages that moved (1)\n- `https://qa.test/1`: `https://qa.test/2`" in text
    assert "New links" not in text


def test_a_hostile_title_stays_in_its_line() -> None:
    found = Changes(ComparedRun(1, AT, AT, "completed"), ComparedRun(2, AT, AT, "completed"))
    found.add(Change(Kind.PAGE_TITLE, "https://q.test/`|", before="[x](javascript:1)\n# head", after="\x1b[31m"))
    section = diff_views.as_section(found)
    assert "\x1b" not in section and "\n# head" not in section and "[x](" not in section
    assert "\x1b" not in diff_views.as_text(found, 5)


def test_no_change_says_so() -> None:
    run = ComparedRun(1, AT, AT, "completed")
    assert "Nothing changed." in diff_views.as_text(Changes(run, run), 5)


def test_a_diff_says_where_a_budget_ran_out(rules_with_two_runs: Config) -> None:
    rules = rules_with_two_runs
    write(rules, "scheduler", begun(3))
    write(rules, "fetcher-01", [DomainEvent(3, "qa.test", AT, "closed", closes=Closure("request-limit", 5, 500))])
    write(rules, "scheduler", [RunEvent(3, AT, "finished")])
    drain(rules)
    second, third = ((ComparedRun(n, AT, AT, "completed"), map_of_run(rules, n)) for n in (2, 3))
    found = compare(second, third, rules.output.database_path)
    words = "The request budget of 1 domain ran out in one of these runs (qa.test): what is new or vanished there"
    assert words in diff_views.as_text(found, 10) and words in diff_views.as_section(found)
    assert json.loads(diff_views.as_json(found))["cut_short"] == ["qa.test"]
