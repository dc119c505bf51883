"""Nodes and edges, by page and by domain, in every format."""

from __future__ import annotations

import csv
import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.model.settings import EntryNote
from crawler.rules.lists import EntryNotes
from reporter.export.graph import export
from tests.reporter.export.test_graph import EACH_FORMAT, ask, read
from tests.reporter.terrain import MapBuilder, config_for


@pytest.mark.parametrize("format", EACH_FORMAT)
def test_pages_and_links_come_back_whole(database: Path, tmp_path: Path, format: str) -> None:
    made = export(database, tmp_path / "map", format=format)
    nodes, edges = read(tmp_path / "map", format)
    assert set(nodes) == {url for (url,) in ask(database, "SELECT url FROM pages")}
    expected = ask(
        database,
        "SELECT f.url, t.url FROM links l JOIN pages f ON f.id = l.from_page_id JOIN pages t ON t.id = l.to_page_id",
    )
    assert set(edges) == set(expected)
    assert (made.nodes, made.edges) == (len(nodes), len(edges))
    friend = nodes["https://friend.test/"]
    assert friend["title"] == "A friend"
    assert (friend["state"], friend["class"], friend["domain"]) == ("processed", "discovered", "friend.test")
    numbers = [friend[name] for name in ("depth", "status", "first_run", "last_run")]
    assert [int(number) if format == "csv" else number for number in numbers] == [1, 200, 1, 1]
    depths = friend["depths"] if format == "jsonl" else dict(part.split("=") for part in friend["depths"].split(" "))
    assert {name: int(depth) for name, depth in depths.items()} == {"q.test": 1, "*.wild.test": 1}
    moved = edges["https://q.test/old", "https://q.test/new"]
    assert (moved["link"], int(moved["weight"])) == ("redirect", 1)


@pytest.mark.parametrize("format", EACH_FORMAT)
def test_domains_come_back_with_pages_by_state_and_link_counts(database: Path, tmp_path: Path, format: str) -> None:
    export(database, tmp_path / "map", format=format, level="domain")
    nodes, edges = read(tmp_path / "map", format)
    assert set(nodes) == {name for (name,) in ask(database, "SELECT DISTINCT domain FROM pages")}
    assert (nodes["q.test"]["class"], int(nodes["q.test"]["pages"])) == ("quality", 8)
    assert [int(nodes["q.test"][f"pages_{state}"]) for state in ("processed", "dead_link", "queued")] == [6, 2, 0]
    for source, target, links in ask(
        database,
        "SELECT f.domain, t.domain, count(*) FROM links l JOIN pages f ON f.id = l.from_page_id"
        " JOIN pages t ON t.id = l.to_page_id GROUP BY 1, 2",
    ):
        assert int(float(edges[source, target]["weight"])) == links


def test_memory_does_not_grow_with_the_graph(tmp_path: Path) -> None:
    b = MapBuilder(tmp_path / "map.db")
    urls = [f"https://q.test/{number}" for number in range(150)]
    for url in urls:
        b.page(url)
    numbers = list(b.pages.values())
    b.db.executemany(
        "INSERT INTO links VALUES (?, ?, ?, 1, 1, 0)",
        ((a << 32 | c, a, c) for a in numbers for c in numbers),
    )
    path = b.save()
    peaks = []
    for format in ("gexf", "csv"):
        tracemalloc.start()
        export(path, tmp_path / "map", format=format)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < 2.5 * 2**20, "22,500 edges, and no more than a few buffers"


NOTED = (
    EntryNote("quality", "q.test", "=why", ("garden", "first choice")),
    EntryNote("stub", "q.test", "of another list", ()),
)


@pytest.mark.parametrize("level", ["page", "domain"])
def test_notes_and_tags_of_the_lists_stand_beside_what_they_are_about(tmp_path: Path, level: str) -> None:
    b = MapBuilder(tmp_path / "map.db")
    b.page("https://q.test/")
    b.page("https://other.test/")
    b.save()
    notes = EntryNotes(replace(config_for(), entry_notes=NOTED))
    export(tmp_path / "map.db", tmp_path / "map.jsonl", format="jsonl", level=level, notes=notes)
    nodes = [json.loads(line) for line in (tmp_path / "map.jsonl").read_text().splitlines()[1:]]
    assert [(node["note"], node["tags"]) for node in nodes] == [("=why", ["garden", "first choice"]), (None, None)]
    export(tmp_path / "map.db", tmp_path / "map.csv", format="csv", level=level, notes=notes)
    rows = list(csv.DictReader((tmp_path / "map.nodes.csv").open(newline="")))
    assert [(row["note"], row["tags"]) for row in rows] == [("'=why", "garden, first choice"), ("", "")]
