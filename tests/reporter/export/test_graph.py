"""`sumi-ripple export`: every format is opened back by a reader of its own and holds the same graph."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from crawler.database.map_errors import NoDatabase, NotAMap
from reporter.export import formats
from reporter.export.graph import FORMATS, LEVELS, ExportError, Filters, NoSuchDomain, NotWritten, export
from tests.reporter.terrain import REDIRECT, MapBuilder

NO_PYARROW = pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed: no Parquet here")
EACH_FORMAT = [pytest.param(name, marks=NO_PYARROW if name == "parquet" else ()) for name in FORMATS]

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
    elif format == "parquet":
        nodes = {row["id"]: row for row in parquet_rows(path.with_name(path.name + ".nodes.parquet"))}
        edges = [
            (row["source"], row["target"], row) for row in parquet_rows(path.with_name(path.name + ".edges.parquet"))
        ]
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


def parquet_rows(path: Path) -> list[dict[str, Any]]:
    from pyarrow import parquet

    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


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


@pytest.mark.parametrize("format", EACH_FORMAT)
def test_an_empty_map_is_an_empty_graph(tmp_path: Path, format: str) -> None:
    path = MapBuilder(tmp_path / "map.db").save()
    for level in LEVELS:
        export(path, tmp_path / "map", format=format, level=level)
        assert read(tmp_path / "map", format) == ({}, {})


# -- the neighbourhood of a domain --------------------------------------------------------------------------------


def domains_near(database: Path, start: str, steps: int) -> set[str]:
    """Breadth first over the links between domains, in either direction."""
    pairs = ask(
        database,
        "SELECT DISTINCT f.domain, t.domain FROM links l JOIN pages f ON f.id = l.from_page_id"
        " JOIN pages t ON t.id = l.to_page_id",
    )
    graph = nx.Graph(pairs)
    return set(nx.single_source_shortest_path_length(graph, start, cutoff=steps))


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
@pytest.mark.parametrize("domain", ["friend.test", "hub.test"])
def test_around_a_domain_are_the_domains_so_many_steps_away(
    database: Path, tmp_path: Path, domain: str, steps: int
) -> None:
    near = domains_near(database, domain, steps)
    for level in LEVELS:
        filters = Filters(around=domain.upper(), steps=steps)
        export(database, tmp_path / "map", format="jsonl", level=level, filters=filters)
        nodes, edges = read(tmp_path / "map", "jsonl")
        assert {data["label"] if level == "domain" else data["domain"] for data in nodes.values()} == near
        assert all(source in nodes and target in nodes for source, target in edges)


def test_links_that_are_not_summed_up_yet_count_for_the_neighbourhood_too(tmp_path: Path) -> None:
    b = MapBuilder(tmp_path / "map.db")
    for url in ("https://q.test/", "https://new.test/", "https://far.test/"):
        b.page(url)
    b.link("https://q.test/", "https://new.test/")
    b.save(unsummed=["https://q.test/"])
    export(tmp_path / "map.db", tmp_path / "x", format="jsonl", level="domain", filters=Filters(around="new.test"))
    assert set(read(tmp_path / "x", "jsonl")[0]) == {"q.test", "new.test"}


def test_a_domain_that_is_not_there_is_named_with_similar_ones_and_nothing_is_written(
    database: Path, tmp_path: Path
) -> None:
    target = tmp_path / "map.gexf"
    target.write_text("old")
    with pytest.raises(NoSuchDomain, match=r"^the map has no domain freind\.test; similar: .*friend\.test"):
        export(database, target, format="gexf", filters=Filters(around="freind.test"))
    with pytest.raises(NoSuchDomain, match=r"^the map has no domain zzzzzz\.qqqqqqqqqq$"):
        export(database, target, format="gexf", filters=Filters(around="zzzzzz.qqqqqqqqqq"))
    with pytest.raises(ExportError, match=r"give one domain, without \*\."):
        export(database, target, format="gexf", filters=Filters(around="*.q.test"))
    with pytest.raises(ExportError, match="give 0 or more"):
        export(database, target, format="gexf", filters=Filters(around="q.test", steps=-1))
    assert target.read_text() == "old"
    assert NoSuchDomain("").exit_code == 1


# -- self-loops, names of ends, Parquet ---------------------------------------------------------------------------


def loops(edges: Iterable[tuple[str, str]]) -> list[str]:
    return sorted(source for source, target in edges if source == target)


@pytest.mark.parametrize("more", [Filters(), Filters(depth=9), Filters(run=1)])
def test_self_loops_are_left_out_if_asked_and_nothing_else(tmp_path: Path, more: Filters) -> None:
    b = MapBuilder(tmp_path / "map.db")
    for url in ("https://q.test/", "https://q.test/2", "https://other.test/"):
        b.page(url)
    b.link("https://q.test/", "https://q.test/")
    b.link("https://q.test/", "https://q.test/2")
    b.link("https://q.test/", "https://other.test/")
    b.save()
    for level, expected in (("page", "https://q.test/"), ("domain", "q.test")):
        found = []
        for self_loops in (True, False):
            filters = Filters(depth=more.depth, run=more.run, self_loops=self_loops)
            export(tmp_path / "map.db", tmp_path / "x", format="jsonl", level=level, filters=filters)
            found.append(set(read(tmp_path / "x", "jsonl")[1]))
        assert (loops(found[0]), loops(found[1])) == ([expected], [])
        assert found[0] - found[1] == {(expected, expected)}


@pytest.mark.parametrize("filters", [Filters(), Filters(depth=1)])
@pytest.mark.parametrize("level", LEVELS)
def test_edges_in_a_table_name_their_ends(database: Path, tmp_path: Path, level: str, filters: Filters) -> None:
    export(database, tmp_path / "map", format="csv", level=level, filters=filters)
    edges = read(tmp_path / "map", "csv")[1]
    assert edges
    for (source, target), row in edges.items():
        assert (row["source_label"], row["target_label"]) == (source, target)


def test_parquet_without_pyarrow_is_one_sentence(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ExportError, match=r"^parquet needs the package pyarrow; install it with: pip install pyarrow$"):
        export(database, tmp_path / "map.parquet", format="parquet")
    assert list(tmp_path.iterdir()) == []


@NO_PYARROW
def test_parquet_keeps_numbers_as_numbers_and_writes_in_batches(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import parquet as reader

    monkeypatch.setattr("reporter.export.parquet._BATCH", 10)
    made = export(database, tmp_path / "map.parquet", format="parquet")
    assert [path.name for path in made.files] == ["map.nodes.parquet", "map.edges.parquet"]
    table = reader.read_table(made.files[0])
    assert str(table.schema.field("in_degree").type) == "int64"
    assert reader.ParquetFile(made.files[0]).num_row_groups == -(-made.nodes // 10)
    assert table.schema.metadata[b"level"] == b"page"


# -- degrees and the other facts of a page --------------------------------------------------------------------------


@pytest.mark.parametrize("is_indexed", [True, False])
def test_pages_have_their_error_redirect_type_time_and_degrees(tmp_path: Path, is_indexed: bool) -> None:
    b = MapBuilder(tmp_path / "map.db")
    b.page("https://q.test/", content_type="text/html")
    b.page("https://q.test/old", status_code=301)
    b.page("https://q.test/gone", "dead_link", error_message="http-404: Not Found")
    b.page("https://q.test/alone", "queued")
    b.link("https://q.test/", "https://q.test/old")
    b.link("https://q.test/", "https://q.test/gone")
    b.link("https://q.test/old", "https://q.test/", REDIRECT)
    b.save(reverse_index=is_indexed)
    export(tmp_path / "map.db", tmp_path / "map", format="jsonl", filters=Filters(domain="q.test"))
    nodes = read(tmp_path / "map", "jsonl")[0]
    home, old, gone, alone = (nodes[f"https://q.test/{name}"] for name in ("", "old", "gone", "alone"))
    assert (home["content_type"], home["visited_at"]) == ("text/html", "2025-01-15T10:32:00Z")
    assert (old["redirect_to"], home["redirect_to"]) == ("https://q.test/", None)
    assert (gone["error"], home["error"]) == ("http-404: Not Found", None)
    degrees = [(node["in_degree"], node["out_degree"]) for node in (home, old, gone, alone)]
    assert degrees == [(1, 2), (1, 1), (1, 0), (0, 0)]
    assert alone["visited_at"] is None


def test_domains_have_the_degrees_of_the_whole_map(database: Path, tmp_path: Path) -> None:
    export(database, tmp_path / "map", format="jsonl", level="domain", filters=Filters(domain="friend.test"))
    friend = read(tmp_path / "map", "jsonl")[0]["friend.test"]
    pairs = set(
        ask(
            database,
            "SELECT f.domain, t.domain FROM links l JOIN pages f ON f.id = l.from_page_id"
            " JOIN pages t ON t.id = l.to_page_id WHERE f.domain <> t.domain",
        )
    )
    assert friend["in_degree"] == len([1 for _, target in pairs if target == "friend.test"])
    assert friend["out_degree"] == len([1 for source, _ in pairs if source == "friend.test"])
    assert friend["quality_domains"] == 2
