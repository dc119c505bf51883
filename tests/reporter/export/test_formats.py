"""Each format keeps its rules, whatever strangers write."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from reporter.export.graph import FORMATS, export
from tests.reporter.export.test_graph import read
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
