"""The map as a file for other tools.

    export(database: Path, target: Path | BinaryIO, *, format: str, level: str = "page",
           filters: Filters = Filters()) -> Exported
    Filters(depth=None, classes=(), states=(), domain=None, run=None)

`format` is one of `FORMATS` (gexf, graphml, csv, jsonl), `level` one of `LEVELS` (page, domain). `target` is a file,
which is replaced as a whole, or a binary stream (`sys.stdout.buffer`). CSV makes two files out of `NAME` (or
`NAME.csv`): `NAME.nodes.csv` and `NAME.edges.csv`, and so cannot go to a stream. An edge is exported if both its ends
are.

Raises `ExportError` (a UsageError: an unknown format, level, class or state; CSV to a stream), `NotWritten`, and
NoDatabase and NotAMap (`crawler.database.map_errors`). One row is held in memory at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from crawler.config.checks import Bad, domain_pattern
from crawler.database.reader import open_map
from crawler.model.errors import SumiError, UsageError
from crawler.model.states import PageState
from crawler.rules.lists import DomainClass
from crawler.workspace.atomic import sync_folder
from reporter.export import formats
from reporter.export.levels import DomainGraph, PageGraph
from reporter.queries.export_rows import Filters

FORMATS = ("gexf", "graphml", "csv", "jsonl")
LEVELS = ("page", "domain")


class ExportError(UsageError):
    """The export cannot be made as asked; the message is one sentence."""


class NotWritten(SumiError):
    """The file cannot be written; the old one is still there."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The numbers of nodes and edges, and the files written (none for a stream)."""

    nodes: int
    edges: int
    files: tuple[Path, ...]


def export(
    database: Path,
    target: Path | BinaryIO,
    *,
    format: str,
    level: str = "page",
    filters: Filters = Filters(),  # noqa: B008  it is frozen
) -> Exported:
    """Write the part of the map that passes the filters to `target`."""
    filters = _check(format, level, filters)
    if format == "csv" and not isinstance(target, Path):
        raise ExportError("csv makes two files, of nodes and of edges: give it a file name")
    with open_map(database) as reader, ExitStack() as files:
        graph = PageGraph(reader, filters) if level == "page" else DomainGraph(reader, filters)
        if not isinstance(target, Path):
            return Exported(*_write(format, graph, [target]), ())
        paths = _csv_paths(target) if format == "csv" else (target,)
        streams = [files.enter_context(_replaced(path)) for path in paths]
        return Exported(*_write(format, graph, streams), paths)


def _check(format: str, level: str, filters: Filters) -> Filters:
    """The filters in the spelling of the map. Raises ExportError."""
    for what, value, known in (
        ("format", (format,), FORMATS),
        ("level", (level,), LEVELS),
        ("class", filters.classes, tuple(DomainClass)),
        ("state", filters.states, tuple(PageState)),
    ):
        for each in value:
            if each not in known:
                raise ExportError(f"{each!r} is no {what} that can be exported; there are: {', '.join(known)}")
    if filters.domain is None:
        return filters
    try:
        return replace(filters, domain=domain_pattern(filters.domain))
    except Bad as problem:
        raise ExportError(f"{filters.domain!r} is no domain that can be exported; allowed: {problem}") from None


def _csv_paths(target: Path) -> tuple[Path, Path]:
    name = target.name.removesuffix(".csv")
    return target.with_name(f"{name}.nodes.csv"), target.with_name(f"{name}.edges.csv")


@contextmanager
def _replaced(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content replaces the file once it is complete; if it is never complete, nothing happens."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with scratch.open("wb", buffering=1 << 20) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(path)
    except OSError as problem:
        raise NotWritten(f"cannot write {path}: {problem.strerror or problem}") from None
    finally:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)
    sync_folder(path.parent)


def _write(format: str, graph: PageGraph | DomainGraph, streams: list[BinaryIO]) -> tuple[int, int]:
    writers: dict[str, Callable[..., None]] = {
        "gexf": formats.write_gexf,
        "graphml": formats.write_graphml,
        "csv": formats.write_csv,
        "jsonl": formats.write_jsonl,
    }
    nodes, edges = _Counted(graph.nodes()), _Counted(graph.edges())
    writers[format](streams, graph.schema, nodes, edges)
    return nodes.count, edges.count


class _Counted:
    """An iterable that counts its items as it hands them out."""

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = items
        self.count = 0

    def __iter__(self) -> Iterator[Any]:
        for item in self.items:
            self.count += 1
            yield item


__all__ = ["FORMATS", "LEVELS", "ExportError", "Exported", "Filters", "export"]
