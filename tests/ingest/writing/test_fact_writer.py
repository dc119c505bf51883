"""`page_facts` and `page_fields`: those of the last accepted visit, over runs, in exports, the summary and explain."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from crawler.database.digest import parts
from crawler.model.records import PageResult, RunEvent, changed, dump
from crawler.model.settings import Config, OutputSettings, QualityEntry
from ingest.apply import MapUpdater
from ingest.writing.store import Store
from reporter.explain.explanation import explain
from reporter.export.levels import PageGraph
from reporter.queries.export_rows import Filters
from reporter.summary.markdown import summary
from reporter.survey import survey

TEXT = {"text_hash": "a" * 32, "simhash": "00000000000000ff"}


def page(path: str, run: int = 1, **members: object) -> PageResult:
    url = f"https://a.test{path}"
    return changed(PageResult(run, url, url, "a.test", "2026-01-01T00:00:00.000Z", "processed", status=200), **members)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    output = OutputSettings(tmp_path / "map.db", tmp_path / "summary.md")
    return Config(output=output, quality=(QualityEntry("a.test", ("https://a.test/",)),), workspace=tmp_path / "w")


def apply(config: Config, *results: PageResult | RunEvent) -> None:
    store = Store(config.output.database_path, config)
    updater = MapUpdater(config, store)
    for result in results:
        updater.apply_batch([(result, dump(result))])
        updater.commit()
    store.close()


def run_event(run: int, event: str) -> RunEvent:
    return RunEvent(run, "2026-01-01T00:00:00.000Z", event)


def rows(config: Config, sql: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(config.output.database_path) as db:
        return db.execute(sql).fetchall()


FIRST = (
    run_event(1, "started"),
    page("/", hrefs=("/b", "/c", "/d"), content_hash="1" * 64, stored=True, etag='W/"x-gzip"', language="en", **TEXT),
    page("/b", content_hash="2" * 64, fields={"author": ("Jo", "Ann"), "date": ("2024",)}, **TEXT),
    page("/c", content_hash="3" * 64, text_hash="b" * 32, simhash="00000000000000f8"),
    page("/d", content_hash="4" * 64, text_hash="c" * 32, simhash="ffff0000ffff0000"),
    run_event(1, "finished"),
)


def test_facts_are_kept_over_a_visit_that_is_not_accepted(config: Config) -> None:
    failed = changed(page("/", 2), state="failed", status=500, error="http-500")
    apply(config, *FIRST, run_event(2, "started"), failed, run_event(2, "finished"))
    found = rows(config, "SELECT run, content_hash, stored, etag, link_count FROM page_facts ORDER BY id LIMIT 1")
    assert found == [(1, "1" * 64, 1, 'W/"x-gzip"', 3)]
    assert rows(config, "SELECT content_hash FROM v_pages WHERE url = 'https://a.test/'") == [(None,)]


def test_a_later_visit_replaces_fields_and_one_without_rules_does_not(config: Config) -> None:
    home = page("/", 2, hrefs=("/b", "/c", "/d"), content_hash="1" * 64)
    second = page("/b", 2, content_hash="5" * 64, fields={"author": ("Bo",)})
    apply(config, *FIRST, run_event(2, "started"), home, second, page("/c", 2), run_event(2, "finished"))
    assert rows(config, "SELECT name, position, value FROM page_fields") == [("author", 0, "Bo")]


def test_fields_are_exported_explained_and_part_of_the_digest(config: Config) -> None:
    from crawler.database.reader import open_map

    apply(config, *FIRST)
    with open_map(config.output.database_path) as reader:
        graph = PageGraph(reader, Filters())
        names = [name for name, _ in graph.schema.node]
        found = {node.label: dict(zip(names, node.values, strict=True)) for node in graph.nodes()}
    assert found["https://a.test/b"]["fields"] == {"author": ["Jo", "Ann"], "date": ["2024"]}
    assert found["https://a.test/"]["language"] == "en" and found["https://a.test/"]["fields"] is None
    explained = explain(config, config.output.database_path, "https://a.test/b")
    assert explained.facts is not None and explained.facts.fields["author"] == ("Jo", "Ann")
    assert "author        Jo · Ann" in explained.text()
    assert "field" in parts(config.output.database_path)


def test_pages_that_show_the_same_or_nearly_the_same_are_groups(config: Config) -> None:
    apply(config, *FIRST)
    figures = survey(config.output.database_path)
    assert [(group.pages, group.examples) for group in figures.same_texts] == [
        (2, ["https://a.test/", "https://a.test/b"])
    ]
    assert [(group.pages, group.examples) for group in figures.near_texts] == [
        (2, ["https://a.test/", "https://a.test/c"])
    ]
    text = summary(figures, "1", "my.toml")
    assert "## Pages That Show the Same" in text and "## Pages That Show Nearly the Same" in text
    facts = explain(config, config.output.database_path, "https://a.test/b").facts
    assert facts is not None
    assert (facts.same_text, facts.near_text) == (("https://a.test/",), ("https://a.test/c",))
