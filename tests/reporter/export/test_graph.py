"""`sumi-ripple export`: every format is opened back by a reader of its own and holds the same graph."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import tracemalloc
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import pytest

from crawler.database.errors import NoDatabase, NotAMap
from reporter.export import formats
from reporter.export.graph import FORMATS, LEVELS, ExportError, Filters, NotWritten, export
from tests.reporter.terrain import FOLLOWED, MapBuilder, rich_map

Graph = tuple[dict[str, dict[str, Any]], dict[tuple[str, str], dict[str, Any]]]
HOSTILE = "=cmd|' /C calc'!A0 \x00\x0b\x1b[31m <b>&\"'\u202e\ufffe\n\r end 🎈"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rich_map(tmp_path_factory.mktemp("rich") / "map.db")


def read(path: Path, format: str) -> Graph:
    """Nodes by label, edges by the labels of their ends, from a file of any format."""
    if format in ("gexf", "graphml"):
        graph = nx.read_gexf(path) if format == "gexf" else nx.read_graphml(path)
        nodes = dict(graph.nodes(data=True))
        edges = [(source, target, data) for source, target, data in graph.edges(data=True)]
    elif format == "csv":
        with path.with_name(path.name + ".nodes.csv").open(newline="", encoding="utf-8") as file:
            nodes = {row["Id"]: {"label": row["Label"], **row} for row in csv.DictReader(file)}
        with path.with_name(path.name + ".edges.csv").open(newline="", encoding="utf-8") as file:
            edges = [(row["Source"], row["Target"], {**row, "weight": row["Weight"]}) for row in csv.DictReader(file)]
    else:
        lines = [json.loads(line) for line in path.read_bytes().splitlines()]
        assert lines[0]["kind"] == "graph"
        nodes = {line["id"]: line for line in lines if line["kind"] == "node"}
        edges = [(line["source"], line["target"], line) for line in lines if line["kind"] == "edge"]
    labels = {number: data["label"] for number, data in nodes.items()}
    return (
        {labels[number]: data for number, data in nodes.items()},
        {(labels[source], labels[target]): data for source, target, data in edges},
    )


def ask(database: Path, sql: str) -> list[Any]:
    with sqlite3.connect(database) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.parametrize("format", FORMATS)
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


@pytest.mark.parametrize("format", FORMATS)
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


FILTERS = [
    (Filters(depth=1), "p.depth <= 1"),
    (Filters(classes=("quality", "stubbed")), "d.class IN ('quality', 'stubbed')"),
    (Filters(states=("processed",)), "p.state = 'processed'"),
    (Filters(domain="q.test"), "p.domain = 'q.test'"),
    (Filters(domain="*.wild.test"), "p.domain IN ('wild.test', 'blog.wild.test')"),
    (Filters(run=1), "1"),
    (Filters(run=2), "0"),
    (Filters(depth=2, classes=("discovered",), states=("processed", "failed")), None),
]


@pytest.mark.parametrize(("filters", "condition"), FILTERS)
@pytest.mark.parametrize("level", LEVELS)
def test_filters_keep_what_passes_and_the_edges_between(
    database: Path, tmp_path: Path, level: str, filters: Filters, condition: str | None
) -> None:
    condition = condition or "p.depth <= 2 AND d.class = 'discovered' AND p.state IN ('processed', 'failed')"
    export(database, tmp_path / "map", format="jsonl", level=level, filters=filters)
    nodes, edges = read(tmp_path / "map", "jsonl")
    column = "p.url" if level == "page" else "p.domain"
    passing = {
        name
        for (name,) in ask(
            database, f"SELECT {column} FROM pages p JOIN domain_states d ON d.id = p.domain_id WHERE {condition}"
        )
    }
    assert set(nodes) == passing
    column = "url" if level == "page" else "domain"
    links = ask(
        database,
        f"SELECT DISTINCT f.{column}, t.{column} FROM links l JOIN pages f ON f.id = l.from_page_id"
        " JOIN pages t ON t.id = l.to_page_id",
    )
    assert set(edges) == {(source, target) for source, target in links if source in passing and target in passing}


def test_gexf_keeps_gephis_rules(database: Path, tmp_path: Path) -> None:
    """Version and namespace of 1.3; attributes declared before use; ids unique; ends of edges exist."""
    export(database, tmp_path / "map.gexf", format="gexf")
    root = ElementTree.parse(tmp_path / "map.gexf").getroot()
    space = {"g": "http://gexf.net/1.3"}
    assert (root.tag, root.get("version")) == ("{http://gexf.net/1.3}gexf", "1.3")
    graph = root.find("g:graph", space)
    assert graph is not None
    assert graph.get("defaultedgetype") == "directed"
    for kind, path in (("node", "g:nodes/g:node"), ("edge", "g:edges/g:edge")):
        declared = {
            attribute.get("id"): attribute.get("type")
            for attribute in graph.findall(f"g:attributes[@class='{kind}']/g:attribute", space)
        }
        items = graph.findall(path, space)
        assert len({item.get("id") for item in items}) == len(items) > 0
        for value in (value for item in items for value in item.findall("g:attvalues/g:attvalue", space)):
            assert declared[value.get("for")] in ("string", "integer")
            if declared[value.get("for")] == "integer":
                int(value.get("value") or "")
    ids = {node.get("id") for node in graph.findall("g:nodes/g:node", space)}
    for edge in graph.findall("g:edges/g:edge", space):
        assert {edge.get("source"), edge.get("target")} <= ids
        assert float(edge.get("weight") or 0) >= 1


@pytest.mark.parametrize("format", FORMATS)
def test_hostile_titles_stay_inside_their_attribute(tmp_path: Path, format: str) -> None:
    b = MapBuilder(tmp_path / "map.db")
    b.page("https://q.test/", title=HOSTILE)
    b.page("https://q.test/2", title="]]></title><node id='x'/>")
    b.link("https://q.test/", "https://q.test/2", FOLLOWED)
    export(b.save(), tmp_path / "map", format=format)
    nodes, edges = read(tmp_path / "map", format)
    assert (len(nodes), len(edges)) == (2, 1)
    title = nodes["https://q.test/"]["title"]
    if format == "jsonl":
        assert title == HOSTILE
    elif format == "csv":
        assert title == "'=cmd|' /C calc'!A0  [31m <b>&\"' end 🎈"
    else:
        assert title.startswith("=cmd|' /C calc'!A0 [31m <b>&\"'\u202e") and title.endswith("end 🎈")


def test_a_file_is_replaced_only_when_the_export_is_whole(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "map.jsonl"
    target.write_text("old")

    def broken(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(formats, "write_jsonl", broken)
    with pytest.raises(NotWritten, match=r"cannot write .*map\.jsonl: no space"):
        export(database, target, format="jsonl")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["map.jsonl"]


def test_a_place_that_cannot_be_written_is_named_as_it_was_given(database: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for target in (tmp_path / "file" / "map.gexf", Path("/proc/map.gexf")):
        with pytest.raises(NotWritten, match=f"^cannot write {target}: "):
            export(database, target, format="gexf")


def test_csv_names_its_two_files_after_the_target(database: Path, tmp_path: Path) -> None:
    made = export(database, tmp_path / "new" / "graph.csv", format="csv")
    assert [path.name for path in made.files] == ["graph.nodes.csv", "graph.edges.csv"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["graph.edges.csv", "graph.nodes.csv"]


def test_a_stream_gets_the_same_bytes_as_a_file(database: Path, tmp_path: Path) -> None:
    for format in ("gexf", "graphml", "jsonl"):
        stream = io.BytesIO()
        made = export(database, stream, format=format)
        export(database, tmp_path / "file", format=format)
        assert stream.getvalue() == (tmp_path / "file").read_bytes()
        assert made.files == ()


def test_what_cannot_be_exported_is_refused_in_a_sentence(database: Path, tmp_path: Path) -> None:
    target = tmp_path / "x"
    with pytest.raises(ExportError, match="csv makes two files"):
        export(database, io.BytesIO(), format="csv")
    with pytest.raises(ExportError, match="'dot' is no format"):
        export(database, target, format="dot")
    with pytest.raises(ExportError, match="'site' is no level"):
        export(database, target, format="csv", level="site")
    with pytest.raises(ExportError, match="'good' is no class"):
        export(database, target, format="csv", filters=Filters(classes=("good",)))
    with pytest.raises(ExportError, match="'done' is no state"):
        export(database, target, format="csv", filters=Filters(states=("done",)))
    with pytest.raises(NoDatabase):
        export(tmp_path / "none.db", target, format="csv")
    (tmp_path / "bad.db").write_text("no")
    with pytest.raises(NotAMap):
        export(tmp_path / "bad.db", target, format="csv")
    assert not target.exists()


@pytest.mark.parametrize("format", FORMATS)
def test_an_empty_map_is_an_empty_graph(tmp_path: Path, format: str) -> None:
    path = MapBuilder(tmp_path / "map.db").save()
    for level in LEVELS:
        export(path, tmp_path / "map", format=format, level=level)
        assert read(tmp_path / "map", format) == ({}, {})


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
