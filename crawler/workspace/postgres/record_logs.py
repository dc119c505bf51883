"""Logs as rows: a line is a row, by the log, the segment and its place in it, with the checksum that it has in files.

Lines are numbered by their writer (segment and offset), never by the engine: transactions become visible in another
order than they began, and who reads by one number for all skips what comes late. A segment has one writer, whose
transactions come one after the other; a new writer begins a new segment, and from then on nothing is added to an older
one. So a reader that goes by (segment, offset) misses nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from crawler.engine.packed_arrays import int8s, texts
from crawler.workspace.atomic import write_atomically
from crawler.workspace.files.layout import Layout, safe_name
from crawler.workspace.files.spool import is_whole, seal_line
from crawler.workspace.log import BEGINNING, Cursor, Damage, Line, LogError, OnDamage
from crawler.workspace.postgres.archived_segments import Archive
from crawler.workspace.postgres.engine_session import Connection, EngineSession, Fenced, Gone

_ROWS_AT_ONCE = 400
_MOST_AT_ONCE = 8 << 20  # bytes of lines that one call of `read` returns, about

_LINES = (
    "SELECT segment, start, body FROM records WHERE log = (SELECT id FROM logs WHERE name = %s)"
    " AND (segment, start) >= (%s, %s) AND segment <= %s ORDER BY segment, start LIMIT %s"
)
_COPY = "COPY records (log, segment, start, body) FROM STDIN (FORMAT BINARY)"
# Nobody may have fenced this process, and nobody can until this transaction ends: then there is no row. A tool that has
# joined nothing has no lease to lose.
_LEASE = "SELECT FROM holders WHERE id = %(me)s::bigint AND NOT is_fenced FOR SHARE"
_DURABLE = "CASE WHEN %(durable)s THEN set_config('synchronous_commit', 'on', true) END"
_REQUIRE_LEASE = (
    f"WITH mine AS MATERIALIZED ({_LEASE}) SELECT {_DURABLE} WHERE %(me)s::bigint IS NULL OR EXISTS (SELECT FROM mine)"
)
_BEGIN_LINES = (
    f"WITH mine AS MATERIALIZED ({_LEASE}), log AS (INSERT INTO logs (name, segment) SELECT %(name)s, %(segment)s"
    " WHERE %(me)s::bigint IS NULL OR EXISTS (SELECT FROM mine) ON CONFLICT (name) DO UPDATE"
    " SET segment = greatest(logs.segment, excluded.segment) RETURNING id, segment)"
    " SELECT id, segment, (SELECT bytes FROM segments s WHERE s.log = log.id AND s.number = %(segment)s),"
    f" {_DURABLE} FROM log"
)
_UNREAD = (
    "SELECT coalesce(sum(greatest(0, s.bytes - CASE WHEN s.number = p.segment THEN p.start ELSE 0 END)), 0)::bigint"
    " FROM logs l LEFT JOIN unnest(%s::text[], %s::bigint[], %s::bigint[]) AS p(name, segment, start) USING (name)"
    " JOIN segments s ON s.log = l.id AND s.number >= coalesce(p.segment, 0) WHERE l.name LIKE 'results/%%'"
)
_LAST = 2**62
Also = Callable[[Connection], None]


class RecordWriter:
    """See `crawler.workspace.log.LogWriter`. With `gathers`, lines wait in memory until `sync`."""

    def __init__(
        self,
        session: EngineSession,
        name: str,
        *,
        segment_bytes: int,
        gathers: bool = False,
        is_durable: bool = True,
        before_sync: Callable[[], None] = lambda: None,
    ) -> None:
        self._session = session
        self._name = name
        self._segment_bytes = segment_bytes
        self._gathers = gathers
        self._is_durable = is_durable
        self._before_sync = before_sync
        self._lock = threading.Lock()
        self._lines: list[tuple[int, int, bytes]] = []  # not in the engine yet: segment, start, line
        rows = session.execute("SELECT coalesce(max(segment), 0) FROM logs WHERE name = %s", (name,))
        self._number = int(rows[0][0])
        self._size = 0
        self._is_begun = False
        self._is_unsynced = False
        self._broken: Exception | None = None
        self.flushed = Cursor(self._number + 1, 0)  # everything before is in the engine

    @property
    def end(self) -> Cursor:
        return Cursor(self._number, self._size) if self._is_begun else Cursor(self._number + 1, 0)

    @property
    def is_ahead(self) -> bool:
        return bool(self._lines)

    def append(self, body: bytes) -> Cursor:
        return self.append_all([body])

    def append_all(self, bodies: Iterable[bytes]) -> Cursor:
        self._require_sound()
        lines = [seal_line(body)[:-1] for body in bodies]
        if not lines:
            return self.end
        with self._lock:
            if not self._is_begun or self._size >= self._segment_bytes:
                self._number, self._size, self._is_begun = self._number + 1, 0, True
            for line in lines:
                self._lines.append((self._number, self._size, line))
                self._size += len(line) + 1
            self._is_unsynced = True
            end = Cursor(self._number, self._size)
        if not self._gathers:
            self.flush()
        return end

    def sync(self) -> None:
        self.begin_sync()()

    def begin_sync(self) -> RecordSync:
        self._require_sound()
        with self._lock:
            is_needed, self._is_unsynced = self._is_unsynced, False
        return RecordSync(self, is_needed=is_needed)

    def sync_with(self, also: Also | None = None) -> None:
        """Sync; `also` is done in the same transaction."""
        self._before_sync()
        self.flush(is_durable=True, also=also)

    def flush(self, *, is_durable: bool = False, also: Also | None = None) -> None:
        """Bring what gathered into the engine. Raises LogError."""
        try:
            self._session.run(lambda connection: self._flush(connection, is_durable=is_durable, also=also))
        except (Fenced, Gone) as problem:
            self._broken = problem
            raise
        except Exception as problem:
            self._broken = problem
            raise LogError(0, f"the log {self._name} cannot be written: {problem}") from problem

    def close(self) -> None:
        if self._broken is None and self._is_unsynced:
            self.begin_sync()() if self._is_durable else self.flush()

    def _require_sound(self) -> None:
        if isinstance(self._broken, OSError):
            raise self._broken
        if self._broken is not None:
            raise LogError(0, f"the log {self._name} cannot be written: {self._broken}")

    def _flush(self, connection: Connection, *, is_durable: bool, also: Also | None) -> None:
        """Called under the session's lock, so that lines come in their order. Made again, it writes nothing twice."""
        with self._lock:
            lines, end = list(self._lines), self.end
        if lines:
            # An engine that crashes loses the last commits that it did not wait for. Lines that are in no memory any
            # more must not be among them.
            self._insert(connection, lines, end, is_durable=is_durable or self._is_durable, also=also)
            with self._lock:
                del self._lines[: len(lines)]
            self.flushed = end
        elif also is not None:
            in_one(connection, self._session, also)
        elif is_durable and not self._is_durable:  # what was written before is made durable by the next such commit
            with connection.transaction():
                connection.execute("SET LOCAL synchronous_commit TO on")
                connection.execute("UPDATE logs SET segment = segment WHERE name = %s", (self._name,))

    def _insert(
        self,
        connection: Connection,
        lines: list[tuple[int, int, bytes]],
        end: Cursor,
        *,
        is_durable: bool,
        also: Also | None,
    ) -> None:
        sizes: dict[int, int] = {}
        for segment, start, line in lines:
            sizes[segment] = start + len(line) + 1
        me = self._session.holder
        values = {"me": me, "name": self._name, "segment": end.segment, "durable": is_durable}
        with connection.transaction():
            found = connection.execute(_BEGIN_LINES, values, binary=True).fetchone()
            if found is None or found[1] > end.segment:
                raise Fenced
            log, _, written = found[:3]
            if written is not None and written >= end.offset:
                return  # the answer to the commit was lost, not the commit
            with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
                copy.set_types(["int4", "int8", "int8", "bytea"])
                for segment, start, line in lines:
                    copy.write_row((log, segment, start, line))
            with connection.pipeline():
                connection.execute(
                    "INSERT INTO segments SELECT %s, number, bytes FROM unnest(%s::bigint[], %s::bigint[])"
                    " AS s(number, bytes) ON CONFLICT (log, number) DO UPDATE SET bytes = excluded.bytes",
                    (log, int8s(list(sizes)), int8s(list(sizes.values()))),
                )
                if also is not None:
                    also(connection)


class RecordSync:
    """What `begin_sync` returns: called, it syncs. See `crawler.workspace.log.LogWriter`."""

    def __init__(self, writer: RecordWriter, *, is_needed: bool) -> None:
        self._writer = writer
        self._is_needed = is_needed

    def __call__(self) -> None:
        if self._is_needed:
            self._writer.sync_with()

    def together(self, also: Also) -> None:
        """Sync, and do this in the same transaction: both are there, or neither. Raises Fenced."""
        self._writer.sync_with(also)


def in_one(connection: Connection, session: EngineSession, work: Also) -> None:
    """Do this in one durable transaction, which nobody can fence this process in. Raises Fenced."""
    with connection.transaction():
        rows = connection.execute(_REQUIRE_LEASE, {"me": session.holder, "durable": True}).fetchall()
        if not rows:
            raise Fenced
        with connection.pipeline():
            work(connection)


class RecordReader:
    """See `crawler.workspace.log.LogReader`. With an `archive` it reads there what left the engine.

    A segment leaves the engine as a whole, in one transaction that says so: an archived one is where rows of a later
    segment follow, or none.
    """

    def __init__(
        self,
        session: EngineSession,
        name: str,
        cursor: Cursor = BEGINNING,
        on_damage: OnDamage | None = None,
        *,
        last: int = _LAST,
        archive: Archive | None = None,
    ) -> None:
        self._session = session
        self._name = name
        self._last = last  # segment
        self.cursor = cursor
        self._on_damage = on_damage or (lambda damage: None)
        self._archive = archive
        self._has_looked = archive is None  # for archived segments where no rows follow
        self._file: _OpenSegment | None = None

    def read(self, limit: int = 1000) -> list[Line]:
        lines: list[Line] = []
        size = 0
        while len(lines) < limit and size < _MOST_AT_ONCE:
            most = min(limit - len(lines), _ROWS_AT_ONCE)
            if self._file is not None and self._file.at == self.cursor:
                found = self._more_of(self._file, most)
                size += sum([len(line.body) for line in found])
                lines += found
                continue
            values = (self._name, self.cursor.segment, self.cursor.offset, self._last, most)
            rows = self._session.execute(_LINES, values)
            for segment, start, body in rows:
                if self._archive is not None and segment > self.cursor.segment and self._opens(segment - 1):
                    break
                self.cursor = Cursor(segment, start + len(body) + 1)
                size += len(body)
                if is_whole(body):
                    lines.append(Line(body, self.cursor))
                else:
                    self._on_damage(_damage(self._name, Cursor(segment, start), body, "checksum does not match"))
            else:
                if len(rows) < most and not (not self._has_looked and self._opens(self._last)):
                    self._has_looked = True
                    break
        return lines

    def _opens(self, last: int) -> bool:
        """Is there an archived segment after the cursor, up to `last`? Then it is read next. Raises ArchiveAway."""
        assert self._archive is not None
        found = self._archive.first(self._name.removeprefix("results/"), self.cursor, last)
        if found is None:
            return False
        if found.number > self.cursor.segment:
            self.cursor = Cursor(found.number, 0)
        lines = self._archive.lines(found, self.cursor.offset, self._on_damage)
        self._file = _OpenSegment(lines, Cursor(found.number, found.size), self.cursor)
        return True

    def _more_of(self, file: _OpenSegment, most: int) -> list[Line]:
        lines = list(islice(file.lines, most))
        file.at = self.cursor = lines[-1].end if len(lines) == most else file.end
        if len(lines) < most:
            self._file = None
        return lines

    def __iter__(self) -> Iterator[Line]:
        while lines := self.read():
            yield from lines

    def sync(self) -> None:
        """What a reader sees is committed; where the engine is set to wait for its disk, it is durable too."""

    def unread_bytes(self) -> int:
        rows = self._session.execute(
            "SELECT coalesce(sum(bytes - CASE WHEN number = %s THEN %s ELSE 0 END), 0)::bigint FROM segments"
            " WHERE log = (SELECT id FROM logs WHERE name = %s) AND number >= %s",
            (self.cursor.segment, self.cursor.offset, self._name, self.cursor.segment),
        )
        return max(0, int(rows[0][0]))

    def damage(self, line: Line, reason: str) -> Damage:
        return line_damage(self._name, line, reason)

    def close(self) -> None:
        if self._file is not None:
            self._file.lines.close()
            self._file = None


@dataclass(slots=True)
class _OpenSegment:
    """An archived segment that is being read: `at` is where, `end` its own end."""

    lines: Generator[Line, None, None]
    end: Cursor
    at: Cursor


def _damage(name: str, start: Cursor, raw: bytes, reason: str) -> Damage:
    return Damage(f"log {name}, segment {start.segment}", start.segment, start.offset, raw, reason)


def line_damage(name: str, line: Line, reason: str) -> Damage:
    """The damage that a verified line is, if it holds no record."""
    return _damage(name, Cursor(line.end.segment, line.end.offset - len(line.body) - 1), line.body, reason)


class ResultRecords:
    """See `crawler.workspace.door.ResultLogs`. The logs are named `results/<writer>`."""

    def __init__(self, session: EngineSession, layout: Layout, archive: Path) -> None:
        self._session = session
        self._layout = layout
        self._archive = Archive(session, archive)
        self._gathering: dict[str, RecordWriter] = {}

    def writers(self) -> list[str]:
        rows = self._session.execute("SELECT name FROM logs WHERE name LIKE 'results/%%'")
        return sorted(name.removeprefix("results/") for (name,) in rows)

    def writer(
        self,
        name: str,
        *,
        segment_bytes: int,
        before_sync: Callable[[], None] | None = None,
        gathers: bool = False,
    ) -> RecordWriter:
        made = RecordWriter(
            self._session,
            f"results/{name}",
            segment_bytes=segment_bytes,
            gathers=gathers,
            before_sync=before_sync or (lambda: None),
        )
        if gathers:
            self._gathering[name] = made
        return made

    def flush(self) -> None:
        """Bring everything that gathers into the engine."""
        for writer in list(self._gathering.values()):
            writer.flush()

    def gathered(self, number: int) -> Cursor | None:
        """Up to where the log of this process's fetcher of that number is in the engine; None: it is none of ours."""
        writer = self._gathering.get(f"fetcher-{number:02d}")
        return None if writer is None else writer.flushed

    def reader(
        self,
        name: str,
        start: Cursor = BEGINNING,
        on_damage: OnDamage | None = None,
        *,
        will_sync: bool = False,
        is_live_only: bool = False,
    ) -> RecordReader:
        archive = None if is_live_only else self._archive
        return RecordReader(self._session, f"results/{name}", start, on_damage, archive=archive)

    def end(self, name: str) -> Cursor:
        return end_of(self._session, f"results/{name}")

    def unread_bytes(self, positions: Mapping[str, Cursor]) -> int:
        known = list(positions.items())
        values = (
            texts([f"results/{name}" for name, _ in known]),
            int8s([cursor.segment for _, cursor in known]),
            int8s([cursor.offset for _, cursor in known]),
        )
        return int(self._session.execute(_UNREAD, values)[0][0])

    def is_line_end(self, name: str, cursor: Cursor) -> bool:
        if cursor > self.end(name):
            return False
        rows = self._session.execute(
            "SELECT start + length(body) + 1 FROM records WHERE log = (SELECT id FROM logs WHERE name = %s)"
            " AND segment = %s AND start < %s ORDER BY start DESC LIMIT 1",
            (f"results/{name}", cursor.segment, cursor.offset),
        )
        return not rows or rows[0][0] == cursor.offset

    def segments(self, name: str) -> list[int]:
        return segments_of(self._session, f"results/{name}")

    def segment_lines(self, name: str, number: int, on_damage: OnDamage | None = None) -> Iterator[Line]:
        start = Cursor(number, 0)
        return iter(
            RecordReader(self._session, f"results/{name}", start, on_damage, last=number, archive=self._archive)
        )

    def last_line(self, name: str, number: int) -> Line | None:
        rows = self._session.execute(
            "SELECT s.bytes, s.last_line FROM segments s JOIN logs l ON l.id = s.log"
            " WHERE l.name = %s AND s.number = %s AND s.archive IS NOT NULL",
            (f"results/{name}", number),
        )
        if rows:
            size, body = rows[0]
            return None if body is None else Line(body, Cursor(number, size))
        rows = self._session.execute(
            "SELECT start, body FROM records WHERE log = (SELECT id FROM logs WHERE name = %s) AND segment = %s"
            " ORDER BY start DESC LIMIT 20",
            (f"results/{name}", number),
        )
        whole = (Line(body, Cursor(number, start + len(body) + 1)) for start, body in rows if is_whole(body))
        return next(whole, None)

    def segment_damage(self, name: str, line: Line, reason: str) -> Damage:
        return line_damage(f"results/{name}", line, reason)

    def segment_bytes(self, name: str, number: int) -> int:
        rows = self._session.execute(
            "SELECT s.bytes FROM segments s JOIN logs l ON l.id = s.log WHERE l.name = %s AND s.number = %s",
            (f"results/{name}", number),
        )
        return int(rows[0][0]) if rows else 0

    def make_durable(self, name: str, numbers: Iterable[int]) -> None:
        """Lines of another process are committed when they are seen; a durable commit of ours comes after theirs."""
        if list(numbers):
            statement = "UPDATE logs SET segment = segment WHERE name = %s"
            self._session.execute(statement, (f"results/{name}",), is_durable=True)

    def remove_segment(self, name: str, number: int) -> None:
        """The file goes first: a kill in between leaves the segment known, and whoever tries again removes the rest."""
        self._archive.remove_file(name, number)
        remove_segments(self._session, f"results/{name}", number, number)

    def archive(self, segments: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
        return self._archive.keep(segments)

    def quarantine(self, name: str, damage: Damage) -> str:
        path = self._layout.quarantine / f"{safe_name(name)}-{damage.segment:012d}-{damage.offset:012d}.bad"
        write_atomically(path, damage.raw)
        return str(path)


class HintRecords:
    """See `crawler.workspace.door.HintLog`."""

    def __init__(self, session: EngineSession, name: str) -> None:
        self._session = session
        self._name = name

    def writer(self, *, segment_bytes: int, durable: bool = False) -> RecordWriter:
        return RecordWriter(self._session, self._name, segment_bytes=segment_bytes, is_durable=durable)

    def reader(self) -> RecordReader:
        return RecordReader(self._session, self._name, end_of(self._session, self._name))

    def whole_reader(self) -> RecordReader:
        return RecordReader(self._session, self._name)

    def recent_reader(self) -> RecordReader:
        return RecordReader(self._session, self._name, Cursor(end_of(self._session, self._name).segment, 0))

    def remove_before(self, segment: int) -> None:
        remove_segments(self._session, self._name, 0, segment - 1)


def end_of(session: EngineSession, name: str) -> Cursor:
    """The cursor after everything that is in a log now."""
    rows = session.execute(
        "SELECT s.number, s.bytes FROM segments s JOIN logs l ON l.id = s.log WHERE l.name = %s"
        " ORDER BY s.number DESC LIMIT 1",
        (name,),
    )
    return Cursor(*rows[0]) if rows else BEGINNING


def segments_of(session: EngineSession, name: str) -> list[int]:
    rows = session.execute(
        "SELECT s.number FROM segments s JOIN logs l ON l.id = s.log WHERE l.name = %s ORDER BY s.number", (name,)
    )
    return [number for (number,) in rows]


def remove_segments(session: EngineSession, name: str, first: int, last: int) -> None:
    """Remove the segments from `first` to `last`."""

    def work(connection: Connection) -> None:
        with connection.transaction():
            for table, column in (("records", "segment"), ("segments", "number")):
                connection.execute(
                    f"DELETE FROM {table} WHERE log = (SELECT id FROM logs WHERE name = %s)"
                    f" AND {column} BETWEEN %s AND %s",
                    (name, first, last),
                )

    session.run(work)
