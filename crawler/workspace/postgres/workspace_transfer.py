"""From files into the engine and back: `sumi-ripple engine import` and `engine export`.

Result logs keep their segments and offsets, so that the places in them that a map remembers mean the same on both
sides. Jobs, releases and hints are not taken along: they are made again from the map. Every domain that was ever asked
counts as asked just now. Whatever kills either of the two, it may be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import groupby

from msgspec.structs import replace

from crawler.pace.gate_record import GateRecord, resolve_unknowns
from crawler.workspace.atomic import OWNER_ONLY_FOLDER, write_atomically
from crawler.workspace.clock import read_clock
from crawler.workspace.door import STAGES, Gate, RoleTaken, Workspace, WorkspaceError
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.gate_file import GateFile
from crawler.workspace.files.layout import domain_of
from crawler.workspace.files.spool import segment_path
from crawler.workspace.log import Line
from crawler.workspace.postgres.engine_session import Connection
from crawler.workspace.postgres.engine_workspace import EngineWorkspace, holds_crawl
from crawler.workspace.postgres.gate_rows import put_settled
from crawler.workspace.seals import sealed
from crawler.workspace.unfinished import NOTE, note_of, require_no_unfinished_import

_COPY = "COPY records (log, segment, start, body) FROM STDIN (FORMAT BINARY)"
_LOG = (
    "INSERT INTO logs (name, segment) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE"
    " SET segment = greatest(logs.segment, excluded.segment) RETURNING id"
)
_ROBOTS = (
    "INSERT INTO robots VALUES (%s, %s, clock_us()) ON CONFLICT (host) DO UPDATE"
    " SET content = excluded.content, at_us = excluded.at_us"
)
Last = Callable[[Connection], None]
Change = Callable[[str, bytes], bytes]  # (name of a document, content) → its content where it is brought to


@dataclass(frozen=True, slots=True)
class Transferred:
    """What was taken along."""

    lines: int
    logs: int
    domains: int
    documents: int


def _nothing(connection: Connection) -> None:
    """Nothing comes along with the workspace."""


def _unchanged(name: str, content: bytes) -> bytes:
    return content


def import_files(
    source: FileWorkspace,
    target: EngineWorkspace,
    making: AbstractContextManager[Last] = nullcontext(_nothing),  # noqa: B008
    change: Change = _unchanged,
) -> Transferred:
    """Take the workspace of a folder into an engine that has none yet. The folder stays as it is.

    It takes effect as a whole, in one transaction, or not at all. Until then there is the note of
    `crawler.workspace.unfinished`. `making` is entered while nobody else is at work in either; what it gives is the
    transaction's last step. Raises WorkspaceError.
    """
    target.prepare()
    with _alone(target), _alone(source):
        if target.holds_crawl():
            raise WorkspaceError(held_words(target))
        with _noted(source, target), making as last, target.session.transaction_beside("import") as connection:
            if holds_crawl(connection):
                raise WorkspaceError(held_words(target))
            moved = _put_all(connection, source, target, change)
            connection.execute("DELETE FROM documents WHERE name = %s", (NOTE,))
            connection.execute("LOCK TABLE roles IN SHARE ROW EXCLUSIVE MODE")
            taken = connection.execute("SELECT role FROM roles WHERE holder IS NOT NULL ORDER BY role").fetchall()
            for (role,) in taken:
                if role.startswith(STAGES):
                    raise WorkspaceError(f"{role} has begun to work in {target.name}; stop it first")
            last(connection)
    return moved


def held_words(target: EngineWorkspace) -> str:
    """Why nothing can be imported here, and what to do."""
    return (
        f"the engine {target.session.place} holds a crawl already, and nothing was changed; move that crawl aside, "
        "in the engine alone, with: sumi-ripple reset CONFIG"
    )


def is_same_crawl(source: FileWorkspace, target: EngineWorkspace) -> bool:
    """Has the engine the results of this folder, no more and no less?"""
    writers = source.results.writers()
    return target.results.writers() == writers and all(
        source.results.end(writer) == target.results.end(writer) for writer in writers
    )


@contextmanager
def _noted(source: FileWorkspace, target: EngineWorkspace) -> Iterator[None]:
    """While an import is under way, the engine says so. A killed one leaves its note; one that fails does not."""
    target.write_document(NOTE, note_of(source.name, str(target.session.place)))
    try:
        yield
    except BaseException:
        with suppress(WorkspaceError):
            target.session.execute("DELETE FROM documents WHERE name = %s", (NOTE,), is_durable=True)
        raise


def _put_all(connection: Connection, source: FileWorkspace, target: EngineWorkspace, change: Change) -> Transferred:
    """Everything that is taken along, into the open transaction."""
    lines = 0
    writers = source.results.writers()
    for writer in writers:
        for number in source.results.segments(writer):
            size = source.results.segment_bytes(writer, number)  # a torn end counts, too
            found = source.results.segment_lines(writer, number)
            lines += _put_segment(connection, f"results/{writer}", number, found, size)
    for number, some in groupby(source.orders.whole_reader(), key=lambda line: line.end.segment):
        lines += _put_segment(connection, "orders", number, some)
    names = _names(source)
    for name in names:
        content = change(name, source.document(name) or b"")
        connection.execute("INSERT INTO documents VALUES (%s, %s)", (name, sealed(content)))
    domains = 0
    for path in sorted(source.layout.gates.glob("*")):
        domain = domain_of(path.name)
        if domain is not None:
            gate = GateFile(path)
            record = resolve_unknowns(gate.read(), read_clock())
            put_settled(connection, target.session.clock, domain, record)
            gate.close()
            domains += 1
    for path in sorted(source.layout.robots.glob("*")):
        host = domain_of(path.stem if path.suffix == ".json" else path.name)
        if host is not None and (content_of := source.robots(host)) is not None:
            connection.execute(_ROBOTS, (host, sealed(content_of)))
    return Transferred(lines, len(writers), domains, len(names))


def export_files(
    source: EngineWorkspace,
    target: FileWorkspace,
    beside: Callable[[], None] = lambda: None,
    change: Change = _unchanged,
) -> Transferred:
    """Bring the workspace of an engine into a folder that has none yet. The engine stays as it is.

    `beside` is called while nobody else is at work in either. Raises WorkspaceError.
    """
    require_no_unfinished_import(source)
    target.prepare()
    with _alone(source), _alone(target):
        if target.results.writers() or _names(target):
            raise WorkspaceError(f"{target.name} holds a crawl already; name another folder")
        lines = 0
        writers = source.results.writers()
        for writer in writers:
            for number in source.results.segments(writer):
                found = list(source.results.segment_lines(writer, number))
                lines += len(found)
                size = source.results.segment_bytes(writer, number)
                folder = target.layout.results_of(writer)
                folder.mkdir(OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
                write_atomically(segment_path(folder, number), _as_file(found, size))
        orders = target.orders.writer(segment_bytes=1 << 24, durable=True)
        orders.append_all(line.body[: line.body.rindex(b',"crc":"')] + b"}" for line in source.orders.whole_reader())
        orders.close()
        names = [name for (name,) in source.session.execute("SELECT name FROM documents ORDER BY name")]
        for name in names:
            target.write_document(name, change(name, source.document(name) or b""))
        domains = [domain for (domain,) in source.session.execute("SELECT domain FROM gates ORDER BY domain")]
        for domain in domains:
            gate = target.gate(domain, read_clock)
            _settle(gate, source.gate(domain, read_clock).read())
            gate.close()
        for (host,) in source.session.execute("SELECT host FROM robots"):
            target.keep_robots(host, source.robots(host) or b"")
        beside()
    return Transferred(lines, len(writers), len(domains), len(names))


@contextmanager
def _alone(workspace: Workspace) -> Iterator[None]:
    """While no crawl is at work there, and none can begin."""
    try:
        role = workspace.take_role("supervisor")
    except RoleTaken:
        require_no_unfinished_import(workspace)
        raise WorkspaceError(f"a crawl is at work in {workspace.name}; stop it first") from None
    try:
        busy = [name for name in workspace.roles() if name.startswith(STAGES) and workspace.is_role_taken(name)]
        if busy:
            raise WorkspaceError(f"{busy[0]} is at work in {workspace.name}; stop it first")
        yield
    finally:
        role.release()


def _names(workspace: FileWorkspace) -> list[str]:
    """Names of the documents of a folder."""
    folder = workspace.layout.document("run").parent
    found = sorted(path.stem for path in folder.glob("*.json") if path != workspace.layout.scheduler_file)
    return [name for name in found if workspace.document(name) is not None]


def _settle(gate: Gate, record: GateRecord) -> bool:
    """Give a gate this record. Its last request, if there was one, counts as ended now."""

    def take(_: GateRecord) -> GateRecord:
        return replace(record, is_in_flight=False, ended=None if record.ended is None else read_clock())

    return gate.update(record.run, take)


def _put_segment(connection: Connection, name: str, number: int, lines: Iterable[Line], size: int | None = None) -> int:
    """A segment of a log; returns the number of its lines. `size`: its bytes, where they are more than the lines."""
    row = connection.execute(_LOG, (name, number)).fetchone()
    assert row is not None
    count = end = 0
    with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.set_types(["int4", "int8", "int8", "bytea"])
        for line in lines:
            end = line.end.offset
            copy.write_row((row[0], number, end - len(line.body) - 1, line.body))
            count += 1
    connection.execute("INSERT INTO segments VALUES (%s, %s, %s)", (row[0], number, max(end, size or 0)))
    return count


def _as_file(lines: list[Line], size: int) -> bytes:
    """A segment's file: every line where it was. What was damaged between them is damage again: empty lines."""
    content = bytearray()
    for line in lines:
        start = line.end.offset - len(line.body) - 1
        content += b"\n" * (start - len(content)) + line.body + b"\n"
    return bytes(content + b"\n" * (size - len(content)))
