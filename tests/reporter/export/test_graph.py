"""`sumi-ripple export`: every format is opened back by a reader of its own and holds the same graph."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from crawler.database.map_errors import NoDatabase, NotAMap
from reporter.export import formats
from reporter.export.graph import FORMATS, LEVELS, ExportError, Filters, NotWritten, export
from tests.reporter.terrain import MapBuilder

Graph = tuple[dict[str, dict[str, Any]], dict[tuple[str, str], dict[str, Any]]]


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
