"""Candidates: ranked by different quality domains, with reasons and referrers that a plain count confirms."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from reporter.candidate_views import as_csv, as_json, as_text
from reporter.candidates import candidates
from tests.reporter.terrain import NOT_FOLLOWED, MapBuilder


def small_map(path: Path, *, reverse_index: bool = False) -> Path:
    b = MapBuilder(path, ("one.test", "two.test", "three.test"))
    for name in ("one", "two", "three"):
        b.page(f"https://{name}.test/")
        b.page(f"https://{name}.test/more")
        b.link(f"https://{name}.test/", f"https://{name}.test/more")
    b.page("https://busy.test/", title="Busy", status_code=200)
    b.page("https://busy.test/a")
    b.page("https://busy.test/b", "depth_exceeded")
    for number in range(9):  # many links of one domain count less than two domains
        b.page(f"https://loud.test/{number}", "depth_exceeded")
        b.link("https://one.test/", f"https://loud.test/{number}")
    b.link("https://one.test/more", "https://busy.test/a")
    b.link("https://two.test/", "https://busy.test/a")
    b.link("https://busy.test/a", "https://busy.test/b")
    b.link("https://busy.test/a", "https://busy.test/")
    b.page("https://xn--bltterwald-r5a.test/", "failed", error_message="tls: certificate expired")
    b.link("https://three.test/", "https://xn--bltterwald-r5a.test/")
    b.page("https://whisper.test/", "discovered")
    b.link("https://three.test/", "https://whisper.test/", NOT_FOLLOWED)
    b.page("https://ads.test/", "blacklisted", "blacklisted")
    for name in ("one", "two", "three"):
        b.link(f"https://{name}.test/", "https://ads.test/")
    b.page("https://unlinked.test/")
    return b.save(reverse_index=reverse_index)


@pytest.mark.parametrize("reverse_index", [False, True])
def test_different_quality_domains_count_more_than_links(tmp_path: Path, reverse_index: bool) -> None:
    found = candidates(small_map(tmp_path / "map.db", reverse_index=reverse_index), 10)
    ranking = [(row.domain, row.quality_domains, row.links, row.depth) for row in found.rows]
    assert ranking == [
        ("busy.test", 2, 2, 1),
        ("loud.test", 1, 9, 1),
        ("xn--bltterwald-r5a.test", 1, 1, 1),
        ("whisper.test", 1, 1, None),
    ]
    assert found.total == 4 and found.run == 1
    busy = found.rows[0]
    assert busy.title == "Busy" and (busy.crawled, busy.known) == (2, 3)
    assert busy.why == ("1 page beyond the depth limit",)
    assert [(each.page, each.target) for each in busy.referrers] == [
        ("https://one.test/more", "https://busy.test/a"),
        ("https://two.test/", "https://busy.test/a"),
    ]
    assert found.rows[2].why == ("1 page failed (tls)",)


def test_listed_and_quality_domains_are_no_candidates(database: Path) -> None:
    found = candidates(database, 1000)
    assert found.total == len(found.rows) > 0
    db = sqlite3.connect(database)
    classes = dict(db.execute("SELECT domain, class FROM domain_states").fetchall())
    assert {classes[row.domain] for row in found.rows} == {"discovered"}
    counted = db.execute(
        "SELECT t.domain, count(DISTINCT f.domain), count(*) FROM links l JOIN pages f ON f.id = l.from_page_id"
        " JOIN pages t ON t.id = l.to_page_id JOIN domain_states a ON a.id = f.domain_id"
        " JOIN domain_states z ON z.id = t.domain_id WHERE a.class = 'quality' AND z.class = 'discovered' GROUP BY 1"
    ).fetchall()
    db.close()
    assert sorted((row.domain, row.quality_domains, row.links) for row in found.rows) == sorted(counted)


def test_the_text_ends_with_the_commands_that_come_next(tmp_path: Path) -> None:
    text = as_text(candidates(small_map(tmp_path / "map.db"), 3), "my.toml")
    assert "blätterwald.test (xn--bltterwald-r5a.test): 1 quality domain, 1 link, depth 1" in text
    assert "... and 1 more candidate: sumi-ripple candidates my.toml --limit 4" in text
    assert text.endswith("To decide: sumi-ripple accept|reject|stub busy.test my.toml\n")


def test_the_text_says_that_the_figures_are_of_all_runs_once_there_are_several(tmp_path: Path) -> None:
    found = candidates(small_map(tmp_path / "map.db"), 3)
    assert "all runs" not in as_text(found, "my.toml")
    assert "Figures are of all runs up to run 2;" in as_text(replace(found, run=2), "my.toml")


def test_json_and_csv_hold_the_same_candidates(tmp_path: Path) -> None:
    found = candidates(small_map(tmp_path / "map.db"), 10)
    shape = json.loads(as_json(found))
    table = list(csv.DictReader(io.StringIO(as_csv(found))))
    assert [row["domain"] for row in shape["candidates"]] == [row["domain"] for row in table]
    assert [row["class"] for row in shape["candidates"]] == ["discovered"] * 4
    assert table[2]["unicode"] == shape["candidates"][2]["unicode"] == "blätterwald.test"
    assert table[3]["depth"] == "" and shape["candidates"][3]["depth"] is None


def test_a_map_without_candidates_says_so(tmp_path: Path) -> None:
    b = MapBuilder(tmp_path / "map.db")
    b.page("https://q.test/")
    assert "no discovered domain is linked to" in as_text(candidates(b.save(), 10), "my.toml")
