"""Texts and rels of links, wherever people and programs read them; nothing where a map has none."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reporter.candidate_views import as_csv, as_json, as_text
from reporter.candidates import candidates
from reporter.explain.domain_explanation import explain_domain
from reporter.explain.explanation import explain
from reporter.export.graph import export
from tests.reporter.terrain import MapBuilder, config_for

Q, FOUND = "https://q.test/", "https://found.test/"
TEXT = 'A "fine" page\u202e\x1b[31m | [x](y)'


@pytest.fixture
def database(tmp_path: Path) -> Path:
    b = MapBuilder(tmp_path / "map.db")
    b.page(Q)
    b.page(FOUND)
    b.link(Q, FOUND)
    b.link_text(Q, FOUND, TEXT, "nofollow me")
    return b.save()


def test_explanations_quote_them(database: Path) -> None:
    page = explain(config_for(), database, FOUND)
    assert [(link.text, link.rel) for link in page.linked_from] == [(TEXT, "nofollow me")]
    domain = explain_domain(config_for(), database, "found.test")
    for text in (page.text(), domain.text()):
        assert '"A "fine" page' in text and "rel nofollow me" in text
        assert "\u202e" not in text and "\x1b" not in text


def test_candidates_quote_them(database: Path) -> None:
    found = candidates(database, 5)
    assert f"{Q} -> {FOUND}  " in as_text(found, "my.toml") and "rel nofollow me" in as_text(found, "my.toml")
    assert json.loads(as_json(found))["candidates"][0]["referrers"] == [
        {"page": Q, "target": FOUND, "text": TEXT, "rel": "nofollow me"}
    ]
    assert "fine" in next(iter(csv.DictReader(io.StringIO(as_csv(found)))))["link_texts"]


def test_exports_by_page_have_them_on_their_edges(database: Path, tmp_path: Path) -> None:
    export(database, tmp_path / "map.csv", format="csv")
    row = next(csv.DictReader((tmp_path / "map.edges.csv").open(newline="")))
    assert row["text"].startswith('A "fine" page') and row["rel"] == "nofollow me"
    export(database, tmp_path / "map.jsonl", format="jsonl")
    edge = json.loads((tmp_path / "map.jsonl").read_text().splitlines()[-1])
    assert (edge["text"], edge["rel"]) == (TEXT, "nofollow me")
    for name in ("gexf", "graphml"):
        export(database, tmp_path / f"map.{name}", format=name)
        written = ElementTree.parse(tmp_path / f"map.{name}").getroot()
        assert any("fine" in (each.get("value") or each.text or "") for each in written.iter())


def test_a_map_of_an_older_format_has_none(database: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(database)) as db:
        db.executescript("DROP TABLE link_texts; UPDATE meta SET value = '4' WHERE name = 'schema_version';")
    assert explain(config_for(), database, FOUND).linked_from[0].text == ""
    assert '"' not in as_text(candidates(database, 5), "my.toml")
    export(database, tmp_path / "map.jsonl", format="jsonl")
    assert json.loads((tmp_path / "map.jsonl").read_text().splitlines()[-1])["text"] is None
