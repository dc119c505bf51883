"""The map as a file for other tools.

    export(database: MapPlace, target: Path | BinaryIO, *, format: str, level: str = "page",
           filters: Filters = Filters(), notes: EntryNotes | None = None) -> Exported
    Filters(depth=None, classes=(), states=(), domain=None, run=None, around=None, steps=1, self_loops=True)

`format` is one of `FORMATS`, `level` one of `LEVELS` (page, domain). `target` is a file, which is replaced as a whole,
or a binary stream (`sys.stdout.buffer`). Tables (CSV, Parquet) are two files made out of `NAME` (or `NAME.csv`):
`NAME.nodes.csv` and `NAME.edges.csv`, and so cannot go to a stream. An edge is exported if both its ends are.

Raises `ExportError` (a UsageError: an unknown format, level, class or state; a table to a stream; Parquet without
pyarrow), `NoSuchDomain`, `NotWritten`, and NoDatabase and NotAMap (`crawler.database.map_errors`). One row is held in
memory at a time (Parquet: one batch of them).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

from crawler.config.checks import Bad, domain_pattern
from crawler.database.reader import open_map
from crawler.model.errors import SumiError, UsageError
from crawler.model.map_place import MapPlace
from crawler.model.shown_text import plain
from crawler.model.states import PageState
from crawler.rules.lists import DomainClass, EntryNotes
from crawler.workspace.atomic import sync_folder
from crawler.workspace.door import Unreachable
from reporter.export import formats, parquet
from reporter.export.levels import DomainGraph, PageGraph
from reporter.queries.domain_links import domain_names
from reporter.queries.export_rows import Filters

FORMATS = ("gexf", "graphml", "csv", "jsonl", "parquet")
TABLES = ("csv", "parquet")  # a file of nodes and a file of edges, whose ends are named
LEVELS = ("page", "domain")


class ExportError(UsageError):
    """The export cannot be made as asked; the message is one sentence."""


class NoSuchDomain(SumiError):
    """The map has no domain of this name."""


class NotWritten(SumiError):
    """The file cannot be written; the old one is still there."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The numbers of nodes and edges, and the files written (none for a stream)."""

    nodes: int
    edges: int
    files: tuple[Path, ...]


def export(
    database: MapPlace,
    target: Path | BinaryIO,
    *,
    format: str,
    level: str = "page",
    filters: Filters = Filters(),  # noqa: B008  it is frozen
    notes: EntryNotes | None = None,
) -> Exported:
    """Write the part of the map that passes the filters to `target`, with the notes and tags of the config's lists."""
    filters = _check(format, level, filters)
    if format in TABLES and not isinstance(target, Path):
        raise ExportError(f"{format} makes two files, of nodes and of edges: give it a file name")
    if format == "parquet" and not parquet.is_available():
        raise ExportError("parquet needs the package pyarrow; install it with: pip install pyarrow")
    with open_map(database) as reader, ExitStack() as files:
        if filters.around is not None:
            _check_domain(filters.around, domain_names(reader))
        kind = PageGraph if level == "page" else DomainGraph
        graph = kind(reader, filters, notes)
        if not isinstance(target, Path):
            return Exported(*_write(format, graph, [target]), ())
        paths = _table_paths(target, format) if format in TABLES else (target,)
        streams = [files.enter_context(replaced(path)) for path in paths]
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
    if filters.around is not None and filters.around.startswith("*."):
        raise ExportError(f"--around {filters.around}: give one domain, without *.")
    if filters.steps < 0:
        raise ExportError(f"--steps {filters.steps}: give 0 or more")
    domain, around = (_pattern(text) if text is not None else None for text in (filters.domain, filters.around))
    return replace(filters, domain=domain, around=around)


def _pattern(text: str) -> str:
    try:
        return domain_pattern(text)
    except Bad as problem:
        raise ExportError(f"{text!r} is no domain that can be exported; allowed: {problem}") from None


def _check_domain(domain: str, names: Iterator[str]) -> None:
    """Raises NoSuchDomain, with similar names, if this is none of the names."""
    known = set(names)
    if domain not in known:
        similar = [plain(name) for name in get_close_matches(domain, sorted(known), n=3, cutoff=0.75)]
        hint = f"; similar: {', '.join(similar)}" if similar else ""
        raise NoSuchDomain(f"the map has no domain {domain}{hint}")


def _table_paths(target: Path, format: str) -> tuple[Path, Path]:
    name = target.name.removesuffix(f".{format}")
    return target.with_name(f"{name}.nodes.{format}"), target.with_name(f"{name}.edges.{format}")


@contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content replaces the file once it is complete; if it is never complete, nothing happens."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with scratch.open("wb", buffering=1 << 20) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(path)
    except Unreachable:  # of the engine, not of the file
        raise
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
        "parquet": parquet.write_parquet,
    }
    nodes, edges = _Counted(graph.nodes()), _Counted(graph.edges(is_named=format in TABLES))
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


__all__ = ["FORMATS", "LEVELS", "ExportError", "Exported", "Filters", "NoSuchDomain", "NotWritten", "export"]
