"""From files into the engine and back: `sumi-ripple engine import` and `engine export`.

Result logs keep their segments and offsets, so that the places in them that a map remembers mean the same on both
sides. Jobs, releases and hints are not taken along: they are made again from the map. Every domain that was ever asked
counts as asked just now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

from msgspec.structs import replace

from crawler.pace.gate_record import GateRecord
from crawler.workspace.atomic import OWNER_ONLY_FOLDER, write_atomically
from crawler.workspace.clock import read_clock
from crawler.workspace.door import STAGES, Gate, Workspace, WorkspaceError
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.gate_file import GateFile
from crawler.workspace.files.layout import domain_of
from crawler.workspace.files.spool import segment_path
from crawler.workspace.log import Line
from crawler.workspace.postgres.engine_session import Connection
from crawler.workspace.postgres.engine_workspace import EngineWorkspace

_COPY = "COPY records (log, segment, start, body) FROM STDIN (FORMAT BINARY)"


@dataclass(frozen=True, slots=True)
class Transferred:
    """What was taken along."""

    lines: int
    logs: int
    domains: int
    documents: int


def import_files(source: FileWorkspace, target: EngineWorkspace) -> Transferred:
    """Take the workspace of a folder into an engine that has none yet. The folder stays as it is."""
    target.prepare()
    with _alone(source), _alone(target):
        if target.results.writers() or target.session.execute("SELECT FROM documents LIMIT 1"):
            raise WorkspaceError("the engine holds a crawl already; move it aside first with: sumi-ripple reset CONFIG")
        lines = 0
        writers = source.results.writers()
        for writer in writers:
            found = (
                line
                for number in source.results.segments(writer)
                for line in source.results.segment_lines(writer, number)
            )
            lines += _put_log(target, f"results/{writer}", found)
            for number in source.results.segments(writer):  # a torn end counts, too
                _note_size(target, f"results/{writer}", number, source.results.segment_bytes(writer, number))
        lines += _put_log(target, "orders", iter(source.orders.whole_reader()))
        names = _names(source)
        for name in names:
            target.write_document(name, source.document(name) or b"")
        domains = 0
        for path in sorted(source.layout.gates.glob("*")):
            domain = domain_of(path.name)
            if domain is not None:
                gate = GateFile(path)
                domains += _settle(target.gate(domain, read_clock), gate.read())
                gate.close()
        for path in sorted(source.layout.robots.glob("*")):
            host = domain_of(path.stem if path.suffix == ".json" else path.name)
            if host is not None and (content := source.robots(host)) is not None:
                target.keep_robots(host, content)
    return Transferred(lines, len(writers), domains, len(names))


def export_files(source: EngineWorkspace, target: FileWorkspace) -> Transferred:
    """Bring the workspace of an engine into a folder that has none yet. The engine stays as it is."""
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
            target.write_document(name, source.document(name) or b"")
        domains = [domain for (domain,) in source.session.execute("SELECT domain FROM gates ORDER BY domain")]
        for domain in domains:
            gate = target.gate(domain, read_clock)
            _settle(gate, source.gate(domain, read_clock).read())
            gate.close()
        for (host,) in source.session.execute("SELECT host FROM robots"):
            target.keep_robots(host, source.robots(host) or b"")
    return Transferred(lines, len(writers), len(domains), len(names))


@contextmanager
def _alone(workspace: Workspace) -> Iterator[None]:
    """While no crawl is at work there, and none can begin."""
    role = workspace.take_role("supervisor")
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


def _put_log(target: EngineWorkspace, name: str, lines: Iterator[Line]) -> int:
    """Lines of a log, segment after segment, each in a transaction of its own."""
    count = 0
    for number, some in groupby(lines, key=lambda line: line.end.segment):
        batch = list(some)
        target.session.run(_writing(name, number, batch))
        count += len(batch)
    return count


def _writing(name: str, number: int, lines: list[Line]) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        with connection.transaction():
            connection.execute("SET LOCAL synchronous_commit TO on")
            log = _log_of(connection, name, number, lines[-1].end.offset)
            with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
                copy.set_types(["int4", "int8", "int8", "bytea"])
                for line in lines:
                    copy.write_row((log, number, line.end.offset - len(line.body) - 1, line.body))

    return work


def _note_size(target: EngineWorkspace, name: str, number: int, size: int) -> None:
    target.session.run(lambda connection: _log_of(connection, name, number, size))


def _log_of(connection: Connection, name: str, number: int, size: int) -> int:
    """The number of a log whose newest segment is this one or a later one, and the segment is so long at least."""
    found = connection.execute(
        "INSERT INTO logs (name, segment) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE"
        " SET segment = greatest(logs.segment, excluded.segment) RETURNING id",
        (name, number),
    ).fetchone()
    assert found is not None
    connection.execute(
        "INSERT INTO segments VALUES (%s, %s, %s)"
        " ON CONFLICT (log, number) DO UPDATE SET bytes = greatest(segments.bytes, excluded.bytes)",
        (found[0], number, size),
    )
    return int(found[0])


def _as_file(lines: list[Line], size: int) -> bytes:
    """A segment's file: every line where it was. What was damaged between them is damage again: empty lines."""
    content = bytearray()
    for line in lines:
        start = line.end.offset - len(line.body) - 1
        content += b"\n" * (start - len(content)) + line.body + b"\n"
    return bytes(content + b"\n" * (size - len(content)))
