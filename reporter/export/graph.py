"""The map as a file for other tools.

    export(database: Path, target: Path | BinaryIO, *, format: str, level: str = "page",
           filters: Filters = Filters()) -> Exported
    Filters(depth=None, classes=(), states=(), domain=None, run=None)

`format` is one of `FORMATS` (gexf, graphml, csv, jsonl), `level` one of `LEVELS` (page, domain). `target` is a file,
which is replaced as a whole, or a binary stream (`sys.stdout.buffer`). CSV makes two files out of `NAME` (or
`NAME.csv`): `NAME.nodes.csv` and `NAME.edges.csv`, and so cannot go to a stream. An edge is exported if both its ends
are.

Raises `ExportError` (a UsageError: an unknown format, level, class or state; CSV to a stream), `NotWritten`, and
`reporter.queries.NoDatabase` and `NotAMap`. Nothing is held in memory but one row at a time.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from crawler.config.checks import Bad, domain_pattern
from crawler.model.errors import SumiError, UsageError
from crawler.model.states import PageState
from crawler.rules.lists import DomainClass
from crawler.workspace.atomic import sync_folder
from reporter import queries
from reporter.export import formats
from reporter.export.formats import Edge, Node

FORMATS = ("gexf", "graphml", "csv", "jsonl")
LEVELS = ("page", "domain")
_LOW = 0xFFFFFFFF


class ExportError(UsageError):
    """The export cannot be made as asked; the message is one sentence."""


class NotWritten(SumiError):
    """The file cannot be written; what was there before is still there."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Which pages (or domains) are exported: those that pass all of these.

    depth    their least depth is this or less
    classes  they are in one of these classes (quality, blacklisted, stubbed, discovered)
    states   they are in one of these states; a domain passes if one of its pages does
    domain   their domain matches this pattern: `example.com`, or `*.example.com` for its subdomains too
    run      they were known in this run: first seen in it or before, last seen in it or later
    """

    depth: int | None = None
    classes: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    domain: str | None = None
    run: int | None = None


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written, and where to (nothing for a stream)."""

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
    with queries.open_map(database) as connection, ExitStack() as files:
        graph = _Pages(connection, filters) if level == "page" else _Domains(connection, filters)
        if not isinstance(target, Path):
            return Exported(*_write(format, graph, [target]), ())
        paths = _csv_paths(target) if format == "csv" else (target,)
        streams = [files.enter_context(_replaced(path)) for path in paths]
        return Exported(*_write(format, graph, streams), paths)


def _check(format: str, level: str, filters: Filters) -> Filters:
    """The filters as the map writes things. Raises ExportError."""
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
    """A stream whose content takes the file's place once it is whole; if it does not get whole, nothing happens."""
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


def _write(format: str, graph: _Pages | _Domains, streams: list[BinaryIO]) -> tuple[int, int]:
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
    """An iterable that remembers how many it has handed out."""

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = items
        self.count = 0

    def __iter__(self) -> Iterator[Any]:
        for item in self.items:
            self.count += 1
            yield item


# -- what passes ------------------------------------------------------------------------------------------------


def _domains_that_pass(connection: sqlite3.Connection, filters: Filters) -> bool:
    """Set aside the ids of domains by class and pattern. False if all pass, and nothing was set aside."""
    if not filters.classes and filters.domain is None:
        return False
    conditions, values = ["1"], list[object]()
    if filters.classes:
        conditions.append(f"class IN ({','.join('?' * len(filters.classes))})")
        values += filters.classes
    if filters.domain is not None:
        base = filters.domain.lower().removeprefix("*.")
        if filters.domain.startswith("*."):
            conditions.append("(domain = ? OR substr(domain, -length(?)) = ?)")
            values += [base, f".{base}", f".{base}"]
        else:
            conditions.append("domain = ?")
            values.append(base)
    connection.execute("CREATE TEMP TABLE passing (id INTEGER PRIMARY KEY)")
    connection.execute(
        f"INSERT INTO temp.passing SELECT id FROM domain_states WHERE {' AND '.join(conditions)}", values
    )
    return True


def _page_conditions(connection: sqlite3.Connection, filters: Filters) -> Callable[[str], tuple[str, list[object]]]:
    """A function from a table's alias to the SQL that a page of it passes, with its values; "" if all pass."""
    by_domain = _domains_that_pass(connection, filters)

    def conditions(alias: str) -> tuple[str, list[object]]:
        parts, values = list[str](), list[object]()
        if by_domain:
            parts.append(f"{alias}.domain_id IN (SELECT id FROM temp.passing)")
        if filters.depth is not None:
            parts.append(f"{alias}.depth <= ?")
            values.append(filters.depth)
        if filters.states:
            parts.append(f"{alias}.state IN ({','.join('?' * len(filters.states))})")
            values += filters.states
        if filters.run is not None:
            parts.append(f"{alias}.discovered_run <= ? AND {alias}.seen_run >= ?")
            values += [filters.run, filters.run]
        return " AND ".join(parts), values

    return conditions


class _Pages:
    """Pages and the links between them."""

    schema = formats.Schema(
        level="page",
        node=(
            ("url", "string"),
            ("domain", "string"),
            ("title", "string"),
            ("state", "string"),
            ("class", "string"),
            ("depth", "integer"),
            ("depths", "string"),
            ("status", "integer"),
            ("first_run", "integer"),
            ("last_run", "integer"),
        ),
        edge=(("link", "string"), ("first_run", "integer"), ("last_run", "integer")),
    )
    _LINKS = ("followed", "nofollow", "redirect")

    def __init__(self, connection: sqlite3.Connection, filters: Filters) -> None:
        self._connection = connection
        self._run = filters.run
        self._conditions = _page_conditions(connection, filters)

    def nodes(self) -> Iterator[Node]:
        where, values = self._conditions("p")
        rows = self._connection.execute(
            "SELECT p.id, p.url, p.domain, p.title, p.state, d.class, p.depth, p.status_code, p.discovered_run,"
            " p.seen_run FROM pages p CROSS JOIN domain_states d ON d.id = p.domain_id"
            f" {'WHERE ' + where if where else ''} ORDER BY p.id",
            values,
        )
        depths = _Depths(self._connection)
        for number, url, domain, title, state, klass, depth, status, first, last in rows:
            yield Node(
                f"p{number}", url, (url, domain, title, state, klass, depth, depths.of(number), status, first, last)
            )

    def edges(self) -> Iterator[Edge]:
        near, values = self._conditions("f")
        far, more = self._conditions("t")
        seen, run = "", list[object]()
        if self._run is not None:
            seen, run = " AND l.discovered_run <= ? AND l.last_run >= ?", [self._run, self._run]
        if near:
            sql = (
                "FROM pages f CROSS JOIN links l ON l.id BETWEEN f.id << 32 AND (f.id << 32) +"
                f" {_LOW} CROSS JOIN pages t ON t.id = l.to_page_id WHERE {near} AND {far}{seen} ORDER BY f.id, l.id"
            )
        else:
            sql = "FROM links l ORDER BY l.id"
        rows = self._connection.execute(
            f"SELECT l.from_page_id, l.to_page_id, l.kind, l.discovered_run, l.last_run {sql}", [*values, *more, *run]
        )
        for source, target, kind, first, last in rows:
            yield Edge(f"p{source}", f"p{target}", 1, (self._LINKS[kind], first, last))


class _Depths:
    """The depths of pages asked for in ascending order: one pass over `page_depths` beside the one over pages."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._rows: Iterator[tuple[int, str, int]] = iter(
            connection.execute("SELECT id >> 16, quality_origin, depth FROM page_depths ORDER BY id")
        )
        self._next = next(self._rows, None)

    def of(self, page: int) -> dict[str, int]:
        found: dict[str, int] = {}
        while self._next is not None and self._next[0] <= page:
            if self._next[0] == page:
                found[self._next[1]] = self._next[2]
            self._next = next(self._rows, None)
        return found


class _Domains:
    """Domains and how many links lead from one to another."""

    _STATES = tuple(PageState)
    schema = formats.Schema(
        level="domain",
        node=(
            ("class", "string"),
            ("depth", "integer"),
            ("pages", "integer"),
            ("first_run", "integer"),
            ("last_run", "integer"),
            *((f"pages_{state}", "integer") for state in tuple(PageState)),
        ),
        edge=(),
    )

    def __init__(self, connection: sqlite3.Connection, filters: Filters) -> None:
        self._connection = connection
        conditions = _page_conditions(connection, filters)
        where, values = conditions("p")
        # By domain and state: small, and all that is held.
        self._by_state: dict[int, dict[str, int]] = {}
        self._facts: dict[int, tuple[int | None, int, int]] = {}
        rows = connection.execute(
            "SELECT p.domain_id, p.state, p.depth, p.discovered_run, p.seen_run FROM pages p"
            f" {'WHERE ' + where if where else ''}",
            values,
        )
        for domain, state, depth, first, last in rows:
            counts = self._by_state.setdefault(domain, {})
            counts[state] = counts.get(state, 0) + 1
            known = self._facts.get(domain)
            if known is not None:
                low, first, last = known[0], min(first, known[1]), max(last, known[2])
                depth = low if depth is None or (low is not None and low < depth) else depth
            if known != (depth, first, last):
                self._facts[domain] = (depth, first, last)

    def nodes(self) -> Iterator[Node]:
        for number, domain, klass in self._connection.execute(
            "SELECT id, domain, class FROM domain_states ORDER BY id"
        ):
            if number in self._facts:
                depth, first, last = self._facts[number]
                states = self._by_state[number]
                counts = [states.get(state, 0) for state in self._STATES]
                yield Node(f"d{number}", domain, (klass, depth, sum(counts), first, last, *counts))

    def edges(self) -> Iterator[Edge]:
        known = self._facts
        for source, target, links in queries.domain_links(self._connection):
            if source in known and target in known:
                yield Edge(f"d{source}", f"d{target}", links, ())


__all__ = ["FORMATS", "LEVELS", "ExportError", "Exported", "Filters", "export"]
