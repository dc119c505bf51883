"""Each format keeps its rules, whatever strangers write."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import pytest

from reporter.export.graph import LEVELS, export
from tests.places import ROOT
from tests.reporter.export.test_graph import EACH_FORMAT, read
from tests.reporter.terrain import FOLLOWED, MapBuilder

HOSTILE = "=cmd|' /C calc'!A0 \x00\x0b\x1b[31m <b>&\"'\u202e\ufffe\n\r end 🎈"


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


@pytest.mark.parametrize("level", LEVELS)
def test_gexf_colours_nodes_by_class_as_the_map_page_does_and_sizes_them(
    database: Path, tmp_path: Path, level: str
) -> None:
    style = (ROOT / "reporter" / "map" / "map_page.css").read_text().partition("@media")[0]
    colours = dict(re.findall(r"--(\w+): #([0-9a-f]{6})", style))
    export(database, tmp_path / "map.gexf", format="gexf", level=level)
    nodes = nx.read_gexf(tmp_path / "map.gexf").nodes(data=True)
    for _, data in nodes:
        colour = data["viz"]["color"]
        assert f"{colour['r']:02x}{colour['g']:02x}{colour['b']:02x}" == colours[data["class"]]
    ranked = sorted(nodes, key=lambda node: node[1]["in_degree" if level == "page" else "quality_domains"])
    sizes = [data["viz"]["size"] for _, data in ranked]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]


@pytest.mark.parametrize("format", EACH_FORMAT)
def test_hostile_titles_stay_inside_their_attribute(tmp_path: Path, format: str) -> None:
    b = MapBuilder(tmp_path / "map.db")
    b.page("https://q.test/", title=HOSTILE)
    b.page("https://q.test/2", title="]]></title><node id='x'/>")
    b.link("https://q.test/", "https://q.test/2", FOLLOWED)
    export(b.save(), tmp_path / "map", format=format)
    nodes, edges = read(tmp_path / "map", format)
    assert (len(nodes), len(edges)) == (2, 1)
    title = nodes["https://q.test/"]["title"]
    if format in ("jsonl", "parquet"):
        assert title == HOSTILE
    elif format == "csv":
        assert title == "'=cmd|' /C calc'!A0  [31m <b>&\"' end 🎈"
    else:
        assert title.startswith("=cmd|' /C calc'!A0 [31m <b>&\"'\u202e") and title.endswith("end 🎈")
