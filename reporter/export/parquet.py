"""Nodes and edges as two Parquet files, where the optional package pyarrow is installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from typing import Any, BinaryIO

from reporter.export.formats import END_NAMES, VERSION, Edge, Node, Schema, flat

_BATCH = 10_000  # rows of a row group, which is all that is held in memory


def is_available() -> bool:
    try:
        return find_spec("pyarrow") is not None
    except ValueError:  # a module that was put aside
        return False


def write_parquet(streams: Sequence[BinaryIO], schema: Schema, nodes: Iterable[Node], edges: Iterable[Edge]) -> None:
    """One file of nodes and one of edges, with the columns of the CSV export in lower case."""
    columns = (("id", "string"), ("label", "string"), *schema.node)
    _write_table(streams[0], schema, columns, ((node.id, node.label, *node.values) for node in nodes))
    ends = tuple((name, "string") for name in END_NAMES)
    columns = (("source", "string"), ("target", "string"), ("weight", "integer"), *ends, *schema.edge)
    rows = ((edge.source, edge.target, edge.weight, *(edge.ends or (None, None)), *edge.values) for edge in edges)
    _write_table(streams[1], schema, columns, rows)


def _write_table(
    stream: BinaryIO, schema: Schema, columns: Sequence[tuple[str, str]], rows: Iterator[tuple[Any, ...]]
) -> None:
    import pyarrow
    from pyarrow import parquet

    fields = [(name, pyarrow.int64() if type_ == "integer" else pyarrow.string()) for name, type_ in columns]
    facts = {"generator": "Sumi-Ripple", "level": schema.level, "v": str(VERSION)}
    described = pyarrow.schema(fields, metadata=facts)
    with parquet.ParquetWriter(stream, described) as writer:
        while batch := list(islice(rows, _BATCH)):
            values = [
                [_value(value, type_) for value in column]
                for column, (_, type_) in zip(zip(*batch, strict=True), columns, strict=True)
            ]
            arrays = [pyarrow.array(each, field.type) for each, field in zip(values, described, strict=True)]
            writer.write_batch(pyarrow.RecordBatch.from_arrays(arrays, schema=described))


def _value(value: Any, type_: str) -> Any:
    return value if value is None or type_ == "integer" else flat(value)
