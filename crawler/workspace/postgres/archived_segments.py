"""Segments of results that left the engine: each is a file, in the format of a workspace of files.

    ARCHIVE/<crawl>/<writer>/000000000001.jsonl

A segment is written to its file first, durably. Then one durable transaction notes in the engine that it is archived,
and where, and removes its rows. So a kill leaves the rows or the note, never both and never neither; what is left of a
file that was not noted is written again. The file is found below the archive of the machine that asks, or where the
machine that wrote it had it.
"""

from __future__ import annotations

import logging
import platform
import secrets
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from crawler.pace.gate_record import GateRecord
from crawler.workspace.atomic import OWNER_ONLY_FOLDER, sync_folder, write_atomically
from crawler.workspace.bookmarks import parse_bookmark
from crawler.workspace.door import ArchiveAway, WorkspaceError
from crawler.workspace.files.spool import is_whole, segment_lines, segment_path
from crawler.workspace.log import Cursor, Line, LogError, OnDamage
from crawler.workspace.postgres.engine_session import Connection, EngineSession

_ROWS_AT_ONCE = 400

log = logging.getLogger("sumi.engine")

_decode_gate = msgspec.json.Decoder(GateRecord).decode


@dataclass(frozen=True, slots=True)
class ArchivedSegment:
    """A segment that left the engine. `machine` wrote it to `folder`, which has the name of the crawl."""

    writer: str
    number: int
    size: int
    machine: str
    folder: str


class Archive:
    """The archived segments of this crawl's results. `root` is the archive of this machine."""

    def __init__(self, session: EngineSession, root: Path) -> None:
        self._session = session
        self._root = root

    # -- reading -------------------------------------------------------------------------------------------

    def first(self, writer: str, start: Cursor, last: int) -> ArchivedSegment | None:
        """The first archived segment up to `last` that has something after `start`."""
        rows = self._session.execute(
            "SELECT s.number, s.bytes, a.machine, a.folder FROM segments s JOIN archives a ON a.id = s.archive"
            " WHERE s.log = (SELECT id FROM logs WHERE name = %s) AND s.number BETWEEN %s AND %s"
            " AND NOT (s.number = %s AND s.bytes <= %s) ORDER BY s.number LIMIT 1",
            (f"results/{writer}", start.segment, last, start.segment, start.offset),
        )
        return ArchivedSegment(writer, *rows[0]) if rows else None

    def lines(self, segment: ArchivedSegment, offset: int, on_damage: OnDamage | None) -> Generator[Line, None, None]:
        """Its lines from an offset on. Raises ArchiveAway."""
        folder = self._found(segment)
        if folder is None:
            raise ArchiveAway(self._words(segment))
        return segment_lines(folder, segment.number, on_damage, offset)

    def _found(self, segment: ArchivedSegment) -> Path | None:
        """The folder with the whole segment; None: it is not on this machine."""
        for folder in self._folders(segment):
            with suppress(OSError):
                if segment_path(folder, segment.number).stat().st_size == segment.size:
                    return folder
        return None

    def _folders(self, segment: ArchivedSegment) -> list[Path]:
        recorded = Path(segment.folder)
        return [self._root / recorded.name / segment.writer, recorded / segment.writer]

    def _words(self, segment: ArchivedSegment) -> str:
        here = self._root / Path(segment.folder).name
        return (
            f"segment {segment.number} of the results of {segment.writer} left the engine for the archive "
            f"{segment.folder} on {segment.machine}, and is not there (whole) on this machine; do this on that one, or "
            f"bring the folder to {here}"
        )

    # -- archiving -----------------------------------------------------------------------------------------

    def keep(self, segments: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
        """See `crawler.workspace.door.ResultLogs.archive`."""
        needed: dict[str, int] | None = None
        for writer, number in segments:
            if self._is_sealed_and_live(writer, number):
                if needed is None:
                    needed = self._session.run(_needed)
                if number < needed.get(writer, number + 1) and self._keep(writer, number):
                    yield writer, number

    def _is_sealed_and_live(self, writer: str, number: int) -> bool:
        rows = self._session.execute(
            "SELECT FROM segments s JOIN logs l ON l.id = s.log"
            " WHERE l.name = %s AND s.number = %s AND s.number < l.segment AND s.archive IS NULL",
            (f"results/{writer}", number),
        )
        return bool(rows)

    def _keep(self, writer: str, number: int) -> bool:
        """Move one segment. False: somebody else has."""
        rows = self._session.execute(
            "SELECT s.bytes FROM segments s JOIN logs l ON l.id = s.log WHERE l.name = %s AND s.number = %s",
            (f"results/{writer}", number),
        )
        if not rows:
            return False
        size = int(rows[0][0])
        folder = self._root / self._crawl()
        path = segment_path(folder / writer, number)
        copy = _Copy(self._session, writer, number, size)
        try:
            _make_folder(path.parent)
            for left in path.parent.glob(f".{path.name}.*.tmp"):  # of a process that was killed
                left.unlink(missing_ok=True)
            write_atomically(path, copy.pieces())
        except WorkspaceError:
            raise
        except OSError as problem:
            raise LogError(
                problem.errno,
                f"the archive {path.parent} cannot be written: {problem.strerror}; the results stay in the engine",
            ) from problem
        return self._session.run(lambda connection: _note(connection, writer, number, folder, copy))

    def _crawl(self) -> str:
        """The name of this crawl's folder in archives, chosen when the first segment goes there."""
        while not (rows := self._session.execute("SELECT name FROM archive_name")):
            chosen = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"
            statement = "INSERT INTO archive_name (name) VALUES (%s) ON CONFLICT DO NOTHING"
            self._session.execute(statement, (chosen,), is_durable=True)
        return str(rows[0][0])

    def remove_file(self, writer: str, number: int) -> None:
        """Delete the file of an archived segment. Raises LogError."""
        segment = self.first(writer, Cursor(number, 0), number)
        if segment is None:
            return
        is_found = False
        for folder in self._folders(segment):
            try:
                segment_path(folder, number).unlink()
                sync_folder(folder)
                is_found = True
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as problem:
                words = f"{segment_path(folder, number)} cannot be deleted: {problem.strerror}"
                raise LogError(problem.errno, words) from problem
        if not is_found and segment.machine != platform.node():
            log.warning(
                "Segment %d of %s is forgotten; its file is in the archive %s on %s: delete it there",
                *(number, writer, segment.folder, segment.machine),
            )


class _Copy:
    """The content of a live segment as a file; what it held is known once `pieces` has ended."""

    def __init__(self, session: EngineSession, writer: str, number: int, size: int) -> None:
        self._session = session
        self._values = (f"results/{writer}", number)
        self._size = size
        self.rows = 0
        self.last_line: bytes | None = None

    def pieces(self) -> Iterator[bytes]:
        """Every line at its place. What is damaged takes no more than its own place, and a torn end is empty lines."""
        start, body = 0, b""
        for following, next_body in self._lines():
            yield _in_place(body, following - start)
            start, body = following, next_body
        yield _in_place(body, self._size - start)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        at = -1
        while rows := self._session.execute(
            "SELECT start, body FROM records WHERE log = (SELECT id FROM logs WHERE name = %s) AND segment = %s"
            " AND start > %s ORDER BY start LIMIT %s",
            (*self._values, at, _ROWS_AT_ONCE),
        ):
            for at, body in rows:
                self.rows += 1
                if is_whole(body):
                    self.last_line = body
                yield at, body


def _in_place(body: bytes, size: int) -> bytes:
    """A line that takes this many bytes."""
    return body[: max(0, size - 1)].ljust(size, b"\n")


def _note(connection: Connection, writer: str, number: int, folder: Path, copy: _Copy) -> bool:
    """The segment is in its file: say so, and remove its rows. False: it is archived already."""
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit TO on")
        found = connection.execute(
            "SELECT s.log FROM segments s JOIN logs l ON l.id = s.log"
            " WHERE l.name = %s AND s.number = %s AND s.archive IS NULL FOR UPDATE OF s",
            (f"results/{writer}", number),
        ).fetchone()
        if found is None:
            return False
        archive = connection.execute(
            "INSERT INTO archives (machine, folder) VALUES (%s, %s) ON CONFLICT (machine, folder)"
            " DO UPDATE SET folder = excluded.folder RETURNING id",
            (platform.node(), str(folder)),
        ).fetchone()
        assert archive is not None
        connection.execute(
            "UPDATE segments SET archive = %s, last_line = %s WHERE log = %s AND number = %s",
            (archive[0], copy.last_line, found[0], number),
        )
        gone = connection.execute("DELETE FROM records WHERE log = %s AND segment = %s", (found[0], number)).rowcount
        if gone != copy.rows:
            raise WorkspaceError(f"segment {number} of {writer} changed while it was archived; it stays in the engine")
    return True


def _needed(connection: Connection) -> dict[str, int]:
    """The least segment of each log that a fetcher may ask for when it takes over a domain: whose ledgers are unknown.

    Such a domain's fetcher died, and no other has come since.
    """
    least: dict[str, int] = {}

    def note(writer: str, segment: int) -> None:
        least[writer] = min(segment, least.get(writer, segment))

    with connection.transaction(), connection.cursor(name="gates") as cursor:
        cursor.execute(
            "SELECT g.record, j.bookmark FROM gates g LEFT JOIN job_domains j ON j.domain = g.domain"
            " WHERE g.record <> ''"
        )
        for content, bookmark in cursor:
            with suppress(msgspec.MsgspecError):
                record = _decode_gate(content)
                if record.sent > record.ledgered or record.unreported:
                    note(f"fetcher-{record.mark.writer:02d}", record.mark.segment)
                    left = parse_bookmark(bookmark) if bookmark else None
                    if left is not None and left.holder is not None:
                        note(left.holder, left.results.segment)
    return least


def _make_folder(folder: Path) -> None:
    """Make a folder, and those above it, as durable as what will be in it."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(OWNER_ONLY_FOLDER, exist_ok=True)
        sync_folder(each.parent)
