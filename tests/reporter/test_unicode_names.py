"""Internationalised domains: people read them in Unicode with the punycode beside, machines in punycode alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crawler.config.describe import describe
from crawler.model.settings import Config, QualityEntry
from crawler.observe.audit_report import AuditReport, Violation
from reporter.candidate_views import as_json, as_text
from reporter.candidates import candidates
from reporter.explain.explanation import explain
from reporter.map.map_data import map_data
from reporter.summary.write import render
from tests.reporter.terrain import MapBuilder, config_for

CODE = "xn--bltterwald-r5a.test"
NAME = "blätterwald.test"
BOTH = f"{NAME} ({CODE})"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    b = MapBuilder(tmp_path / "map.db")
    b.page("https://q.test/")
    b.page(f"https://{CODE}/")
    b.page(f"https://{CODE}/gone", "dead_link", status_code=404, error_message="http-404")
    for path in ("", "gone"):
        b.link("https://q.test/", f"https://{CODE}/{path}")
    return b.save()


def test_people_read_unicode_and_punycode(database: Path) -> None:
    config = Config(quality=(QualityEntry(CODE, (f"https://{CODE}/",)),))
    report = AuditReport(busiest=(3, CODE, 1), closest=(5, CODE))
    report.add(Violation("spacing", CODE, 1, 0, f"https://{CODE}/x came too soon"))
    texts = {
        "explain": explain(config_for(), database, f"https://{NAME}/gone").text(),
        "candidates": as_text(candidates(database, 5), "my.toml"),
        "summary": render(database),
        "dry run": describe(config),
        "audit": "\n".join(report.lines()),
        "map": json.dumps(map_data(database).content["nodes"], ensure_ascii=False),
    }
    for place, text in texts.items():
        assert f"https://{NAME}/" in text or BOTH in text, place
        assert CODE in text, place
    assert f"https://{NAME}/gone ({CODE})" in texts["explain"]
    assert f"({BOTH})" in texts["audit"]


def test_machines_read_punycode(database: Path) -> None:
    found = json.loads(as_json(candidates(database, 5)))["candidates"][0]
    assert (found["domain"], found["unicode"]) == (CODE, NAME)
    assert found["referrers"][0]["target"] == f"https://{CODE}/"
    explained = json.loads(explain(config_for(), database, f"https://{NAME}/gone").json())
    assert explained["key"] == f"https://{CODE}/gone" and NAME not in explained["domain"]
