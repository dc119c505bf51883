"""PURE. A stream of nodes and edges → GEXF 1.3, GraphML, CSV or JSON lines, row by row.

Every writer takes binary streams (one; CSV two), a Schema, the nodes and then the edges. Characters that a
format forbids are left out, characters with a meaning in it are escaped (see `reporter.escape`); JSON lines keep every
text as it is.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import orjson

from reporter.escape import cell, xml

VERSION = 1
_GENERATOR = "Sumi-Ripple"
_GRAPHML_TYPES = {"string": "string", "integer": "int"}
END_NAMES = ("source_label", "target_label")
_BATCH = 1000  # rows between two writes


class Schema(NamedTuple):
    """The attributes of nodes and edges, in order: (name, string | integer)."""

    level: str
    node: tuple[tuple[str, str], ...]
    edge: tuple[tuple[str, str], ...]


class Look(NamedTuple):
    """Colour and size of a node, in formats that have them."""

    red: int
    green: int
    blue: int
    size: float


class Node(NamedTuple):
    id: str
    label: str
    values: tuple[
        Any, ...
    ]  # as Schema.node has them; None: none; dicts are shown as `name=number …`, tuples as `one, two`
    look: Look


class Edge(NamedTuple):
    source: str
    target: str
    weight: int
    values: tuple[Any, ...]
    ends: tuple[str, str] | None = None  # the labels of both nodes, for formats that are tables


def flat(value: Any) -> str:
    """A value as the text of an attribute."""
    if isinstance(value, dict):
        return " ".join(
            f"{name}={flat(tuple(each) if isinstance(each, list) else each)}" for name, each in value.items()
        )
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value)


def _write(stream: BinaryIO, lines: Iterable[str]) -> None:
    batch: list[str] = []
    for line in lines:
        batch.append(line)
        if len(batch) >= _BATCH:
            stream.write("".join(batch).encode())
            batch.clear()
    stream.write("".join(batch).encode())


# -- GEXF -------------------------------------------------------------------------------------------------------


def write_gexf(streams: Sequence[BinaryIO], schema: Schema, nodes: Iterable[Node], edges: Iterable[Edge]) -> None:
    """GEXF 1.3 as Gephi reads it: attributes declared before use, ids as texts, a weight on every edge.

    Colours and sizes of nodes are those of its `viz` module, so that Gephi shows them without further ado.
    """
    _write(streams[0], _gexf(schema, nodes, edges))


def _gexf(schema: Schema, nodes: Iterable[Node], edges: Iterable[Edge]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield '<gexf xmlns="http://gexf.net/1.3" xmlns:viz="http://gexf.net/1.3/viz" version="1.3">\n'
    yield f"  <meta>\n    <creator>{_GENERATOR}</creator>\n"
    yield f"    <description>{schema.level}s and the links between them, v{VERSION}</description>\n  </meta>\n"
    yield '  <graph mode="static" defaultedgetype="directed" idtype="string">\n'
    for kind, attributes in (("node", schema.node), ("edge", schema.edge)):
        if attributes:
            yield f'    <attributes class="{kind}" mode="static">\n'
            for name, type_ in attributes:
                yield f'      <attribute id="{name}" title="{name}" type="{type_}"/>\n'
            yield "    </attributes>\n"
    yield "    <nodes>\n"
    for node in nodes:
        values = _attvalues(schema.node, node.values)
        red, green, blue, size = node.look
        look = f'<viz:color r="{red}" g="{green}" b="{blue}"/><viz:size value="{size:.1f}"/>'
        yield f'      <node id="{node.id}" label="{xml(node.label)}">{values}{look}</node>\n'
    yield "    </nodes>\n    <edges>\n"
    for number, edge in enumerate(edges):
        values = _attvalues(schema.edge, edge.values)
        head = f'<edge id="{number}" source="{edge.source}" target="{edge.target}" weight="{edge.weight}"'
        yield f"      {head}>{values}</edge>\n" if values else f"      {head}/>\n"
    yield "    </edges>\n  </graph>\n</gexf>\n"


def _attvalues(attributes: Sequence[tuple[str, str]], values: Sequence[Any]) -> str:
    cells = [
        f'<attvalue for="{name}" value="{xml(flat(value))}"/>'
        for (name, _), value in zip(attributes, values, strict=True)
        if value is not None
    ]
    return f"<attvalues>{''.join(cells)}</attvalues>" if cells else ""


# -- GraphML ----------------------------------------------------------------------------------------------------


def write_graphml(streams: Sequence[BinaryIO], schema: Schema, nodes: Iterable[Node], edges: Iterable[Edge]) -> None:
    _write(streams[0], _graphml(schema, nodes, edges))


def _graphml(schema: Schema, nodes: Iterable[Node], edges: Iterable[Edge]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    yield f"  <desc>{_GENERATOR}: {schema.level}s and the links between them, v{VERSION}</desc>\n"
    node_keys = (("label", "string"), *schema.node)
    edge_keys = (("weight", "integer"), *schema.edge)
    for kind, keys in (("node", node_keys), ("edge", edge_keys)):
        for name, type_ in keys:
            declared = f'attr.name="{name}" attr.type="{_GRAPHML_TYPES[type_]}"'
            yield f'  <key id="{kind[0]}_{name}" for="{kind}" {declared}/>\n'
    yield '  <graph edgedefault="directed">\n'
    for node in nodes:
        yield f'    <node id="{node.id}">{_data("n", node_keys, (node.label, *node.values))}</node>\n'
    for edge in edges:
        data = _data("e", edge_keys, (edge.weight, *edge.values))
        yield f'    <edge source="{edge.source}" target="{edge.target}">{data}</edge>\n'
    yield "  </graph>\n</graphml>\n"


def _data(kind: str, keys: Sequence[tuple[str, str]], values: Sequence[Any]) -> str:
    return "".join(
        [
            f'<data key="{kind}_{name}">{xml(flat(value))}</data>'
            for (name, _), value in zip(keys, values, strict=True)
            if value is not None
        ]
    )


# -- CSV --------------------------------------------------------------------------------------------------------


def write_csv(streams: Sequence[BinaryIO], schema: Schema, nodes: Iterable[Node], edges: Iterable[Edge]) -> None:
    """Two tables with the column names that Gephi looks for, the ends of edges by name too; no cell is a formula."""
    node_file, edge_file = streams
    head = ["Id", "Label", *(name for name, _ in schema.node)]
    _write_rows(node_file, head, ((node.id, node.label, *node.values) for node in nodes))
    head = ["Source", "Target", "Type", "Weight", *END_NAMES, *(name for name, _ in schema.edge)]
    rows = (
        (edge.source, edge.target, "Directed", edge.weight, *(edge.ends or (None, None)), *edge.values)
        for edge in edges
    )
    _write_rows(edge_file, head, rows)


def _write_rows(stream: BinaryIO, head: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=False)
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow(
            ["" if value is None else value if isinstance(value, int) else cell(flat(value)) for value in row]
        )
    text.detach()


# -- JSON lines -------------------------------------------------------------------------------------------------


def write_jsonl(streams: Sequence[BinaryIO], schema: Schema, nodes: Iterable[Node], edges: Iterable[Edge]) -> None:
    """A first line that describes the graph, then a line for each node, then a line for each edge."""
    stream = streams[0]
    first = {"v": VERSION, "kind": "graph", "level": schema.level, "directed": True, "generator": _GENERATOR}
    stream.write(orjson.dumps(first) + b"\n")
    node_names = [name for name, _ in schema.node]
    for node in nodes:
        fields = dict(zip(node_names, node.values, strict=True))
        line = {"kind": "node", "id": node.id, "label": node.label, **fields}
        stream.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    edge_names = [name for name, _ in schema.edge]
    for edge in edges:
        fields = dict(zip(edge_names, edge.values, strict=True))
        line = {"kind": "edge", "source": edge.source, "target": edge.target, "weight": edge.weight, **fields}
        stream.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
