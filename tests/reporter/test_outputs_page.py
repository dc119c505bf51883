"""docs/outputs.md describes every member of every machine-readable output, with its version."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from reporter import candidate_views, figures, runs_list, stats
from reporter.candidates import candidates
from reporter.diff import diff_views
from reporter.diff.run_changes import Change, Changes, ComparedRun, Kind
from reporter.explain import explanation as explain
from reporter.explain import facts
from reporter.explain.domain_explanation import explain_domain
from reporter.export import formats
from reporter.export.levels import DomainGraph, PageGraph
from reporter.map import map_data
from tests.reporter.terrain import config_for

PAGE = Path(__file__).parents[2] / "docs" / "outputs.md"


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def part(page: str, title: str) -> str:
    match = re.search(rf"^## {title}\n(.*?)(?=^## [A-Z]|\Z)", re.sub(r"(?s)````.*?````", "", page), re.M | re.S)
    assert match
    return match[1]


def names(value: object) -> set[str]:
    """Every fixed member name in a shape; names that are data (states, slugs, origins) are left out."""
    free = {"states", "error_slugs", "dead_links", "unreachable_links"}
    if isinstance(value, dict):
        inner = [names(each) for name, each in value.items() if name not in free]
        return set(value).union(*inner)
    if isinstance(value, list):
        return set().union(*(names(each) for each in value))
    return set()


def test_every_member_of_stats_is_described(page: str, database: Path) -> None:
    text = part(page, "Stats")
    for by in (None, *stats.BY):
        for name in names(json.loads(stats.stats(database, by, as_json=True))):
            assert f"`{name}`" in text, name
    assert f"version {stats.VERSION}" in text


def test_every_member_of_the_runs_is_described(page: str, database: Path) -> None:
    text = part(page, "Runs")
    for name in names(json.loads(runs_list.as_json(runs_list.list_runs(database)))):
        assert f"`{name}`" in text, name
    assert f"version {runs_list.VERSION}" in text


def test_every_member_of_a_diff_is_described(page: str) -> None:
    text = part(page, "Diff")
    run = ComparedRun(1, "", None, "")
    changes = Changes(run, run)
    changes.add(Change(Kind.LINK_NEW, "a", "b"))
    for name in names(json.loads(diff_views.as_json(changes))):
        assert f"`{name}`" in text, name
    for name in diff_views.as_csv(changes).partition("\n")[0].split(","):
        assert f"`{name}`" in text, name
    assert f"version {diff_views.VERSION}" in text


def test_every_member_of_the_candidates_is_described(page: str, database: Path) -> None:
    text = part(page, "Candidates")
    found = candidates(database, 50)
    for name in names(json.loads(candidate_views.as_json(found))):
        assert f"`{name}`" in text, name
    for name in candidate_views.as_csv(found).partition("\n")[0].split(","):
        assert f"`{name}`" in text, name
    assert f"version {candidate_views.VERSION}" in text


def test_every_member_of_an_explanation_is_described(page: str, database: Path) -> None:
    text = part(page, "Explain")
    for url in ("https://friend.test/", "https://q.test/old"):
        for name in names(json.loads(explain.explain(config_for(), database, url).json())):
            assert f"`{name}`" in text, name
    assert f"version {facts.VERSION}" in text


def test_every_member_of_a_domain_explanation_is_described(page: str, database: Path) -> None:
    text = part(page, "Explain")
    for name in names(json.loads(explain_domain(config_for(), database, "friend.test").json())):
        assert f"`{name}`" in text, name


def test_every_attribute_of_an_export_is_described(page: str) -> None:
    text = part(page, "Export")
    for schema in (PageGraph.schema, DomainGraph.schema):
        for name, _ in (*schema.node, *schema.edge):
            assert f"`{name}`" in text or name.startswith("pages_"), name
    assert all(name in text.lower() for name in ("gexf", "graphml", "csv", "json lines"))
    assert f'"v":{formats.VERSION},"kind":"graph"' in text


def test_every_member_of_the_map_pages_data_is_described(page: str, database: Path) -> None:
    text, content = part(page, "Map"), map_data.map_data(database).content
    for name in {*content, *content["nodes"]}:
        assert f"`{name}`" in text, name
    assert f"version {map_data.VERSION}" in text


def test_the_overall_figures_are_all_named(page: str) -> None:
    for field in dataclasses.fields(figures.Overall):
        assert f"`{field.name}`" in page
