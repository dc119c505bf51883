"""A workspace in memory: the second implementation of the door, for tests in one process.

It keeps no file and knows no path. A stage that runs on it has gone through the door alone.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from crawler.model.moments import Moment
from crawler.model.records import Job, dump
from crawler.pace.decisions import Adjust, Busy, Entry, EntryRequest, Open, enter, finish, revise
from crawler.pace.gate_record import GateRecord, for_run
from crawler.workspace.bookmarks import Bookmark, BookmarkMove, dump_bookmark, parse_bookmark
from crawler.workspace.door import LONGEST_REQUEST_MS, STAGES, BusyWork, Claim, RequestSpan, RoleTaken
from crawler.workspace.log import BEGINNING, Cursor, Damage, Line, LogError, OnDamage
from crawler.workspace.reading import parse_lines


class MemoryLog:
    """Segments of lines. Offsets count lines."""

    def __init__(self) -> None:
        self.segments: dict[int, list[bytes]] = {}

    def end(self) -> Cursor:
        newest = max(self.segments, default=0)
        return Cursor(newest, len(self.segments[newest])) if newest else BEGINNING


class MemoryWriter:
    def __init__(
        self, log: MemoryLog, segment_bytes: int, first: int = 1, before_sync: Callable[[], None] | None = None
    ) -> None:
        self._log = log
        self._before_sync = before_sync
        self._segment_bytes = segment_bytes
        self._number = max(max(log.segments, default=0) + 1, first)
        self._is_closed = False

    @property
    def end(self) -> Cursor:
        return Cursor(self._number, len(self._log.segments.get(self._number, ())))

    @property
    def is_ahead(self) -> bool:
        return False

    def append(self, body: bytes) -> Cursor:
        return self.append_all([body])

    def append_all(self, bodies: Iterable[bytes]) -> Cursor:
        if self._is_closed:
            raise LogError("the log is closed")
        segment = self._log.segments.setdefault(self._number, [])
        if sum(map(len, segment)) >= self._segment_bytes:
            self._number += 1
            segment = self._log.segments.setdefault(self._number, [])
        segment.extend(bodies)
        return self.end

    def sync(self) -> None:
        if self._before_sync is not None:
            self._before_sync()

    def begin_sync(self) -> Callable[[], None]:
        return self.sync

    def close(self) -> None:
        if not self._is_closed:
            self.sync()
        self._is_closed = True


class MemoryReader:
    def __init__(self, log: MemoryLog, cursor: Cursor) -> None:
        self._log = log
        self.cursor = cursor

    def read(self, limit: int = 1000) -> list[Line]:
        lines: list[Line] = []
        for number in sorted(n for n in self._log.segments if n >= self.cursor.segment):
            start = self.cursor.offset if number == self.cursor.segment else 0
            for offset, body in enumerate(self._log.segments[number][start:], start + 1):
                if len(lines) == limit:
                    return lines
                self.cursor = Cursor(number, offset)
                lines.append(Line(body, self.cursor))
        return lines

    def __iter__(self) -> Iterator[Line]:
        while lines := self.read():
            yield from lines

    def sync(self) -> None:
        pass

    def unread_bytes(self) -> int:
        return sum(len(line.body) for line in MemoryReader(self._log, self.cursor))

    def damage(self, line: Line, reason: str) -> Damage:
        return _damage(line, reason)

    def close(self) -> None:
        pass


def _damage(line: Line, reason: str) -> Damage:
    return Damage("memory", line.end.segment, line.end.offset - 1, line.body, reason)


class MemoryResults:
    def __init__(self) -> None:
        self._logs: dict[str, MemoryLog] = {}
        self.quarantined: list[tuple[str, Damage]] = []

    def _log(self, name: str) -> MemoryLog:
        return self._logs.get(name, MemoryLog())

    def writers(self) -> list[str]:
        return sorted(self._logs)

    def writer(
        self,
        name: str,
        *,
        segment_bytes: int,
        before_sync: Callable[[], None] | None = None,
        gathers: bool = False,
    ) -> MemoryWriter:
        return MemoryWriter(self._logs.setdefault(name, MemoryLog()), segment_bytes, before_sync=before_sync)

    def reader(
        self,
        name: str,
        start: Cursor = BEGINNING,
        on_damage: OnDamage | None = None,
        *,
        will_sync: bool = False,
        is_live_only: bool = False,
    ) -> MemoryReader:
        return MemoryReader(self._logs.setdefault(name, MemoryLog()), start)

    def end(self, name: str) -> Cursor:
        return self._log(name).end()

    def unread_bytes(self, positions: Mapping[str, Cursor]) -> int:
        size = 0
        for name in self.writers():
            reader = self.reader(name, positions.get(name, BEGINNING))
            try:
                size += reader.unread_bytes()
            finally:
                reader.close()
        return size

    def is_line_end(self, name: str, cursor: Cursor) -> bool:
        return cursor <= self.end(name)

    def segments(self, name: str) -> list[int]:
        return sorted(self._log(name).segments)

    def segment_lines(self, name: str, number: int, on_damage: OnDamage | None = None) -> Iterator[Line]:
        lines = self._log(name).segments.get(number, [])
        return (Line(body, Cursor(number, offset)) for offset, body in enumerate(lines, 1))

    def last_line(self, name: str, number: int) -> Line | None:
        return next(reversed(list(self.segment_lines(name, number))), None)

    def segment_damage(self, name: str, line: Line, reason: str) -> Damage:
        return _damage(line, reason)

    def segment_bytes(self, name: str, number: int) -> int:
        return sum(map(len, self._log(name).segments.get(number, ())))

    def make_durable(self, name: str, numbers: Iterable[int]) -> None:
        pass

    def remove_segment(self, name: str, number: int) -> None:
        self._log(name).segments.pop(number, None)

    def archive(self, segments: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
        return iter(())

    def quarantine(self, name: str, damage: Damage) -> str:
        self.quarantined.append((name, damage))
        return "memory"


class MemoryFile:
    def __init__(self, contents: dict[str, bytearray], name: str) -> None:
        self._contents = contents
        self._name = name

    def size(self) -> int:
        return len(self._contents.get(self._name, b""))

    def open_at(self, size: int) -> int:
        content = self._contents.setdefault(self._name, bytearray())
        del content[size if size <= len(content) else content.rfind(b"\n") + 1 :]
        return len(content)

    def append(self, content: bytes) -> None:
        self._contents[self._name] += content

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass


class MemoryLogs:
    def __init__(self) -> None:
        self._contents: dict[str, bytearray] = {}
        self._others: dict[str, MemoryLogs] = {}

    def file(self, name: str) -> MemoryFile:
        return MemoryFile(self._contents, name)

    def names(self) -> list[str]:
        return sorted(self._contents)

    def beside(self, name: str) -> MemoryLogs:
        return self._others.setdefault(name, MemoryLogs())

    def clear(self) -> None:
        self._contents.clear()

    def take_from(self, other: MemoryLogs) -> None:
        self._contents |= other._contents
        other.clear()


class MemoryHints:
    def __init__(self) -> None:
        self._log = MemoryLog()

    def writer(self, *, segment_bytes: int, durable: bool = False) -> MemoryWriter:
        return MemoryWriter(self._log, segment_bytes)

    def reader(self) -> MemoryReader:
        return MemoryReader(self._log, self._log.end())

    def whole_reader(self) -> MemoryReader:
        return MemoryReader(self._log, Cursor())

    def recent_reader(self) -> MemoryReader:
        return MemoryReader(self._log, Cursor(self._log.end().segment, 0))

    def remove_before(self, segment: int) -> None:
        for number in [n for n in self._log.segments if n < segment]:
            del self._log.segments[number]


class MemoryWindow:
    def __init__(self, log: MemoryLog, number: int) -> None:
        self._log = log
        self.number = number
        lines = (Line(body, BEGINNING) for body in log.segments[number])
        self.jobs: Sequence[Job] = [job for job, _ in parse_lines(lines, Job)]

    def remove(self) -> None:
        self._log.segments.pop(self.number, None)


class MemoryJobs:
    """The scheduler's end of the job windows."""

    def __init__(self, workspace: MemoryWorkspace) -> None:
        self._workspace = workspace

    def write(self, domain: str, jobs: Sequence[Job]) -> int:
        self._workspace.last_window += 1
        log = self._workspace.job_logs.setdefault(domain, MemoryLog())
        writer = MemoryWriter(log, 1 << 30, first=self._workspace.last_window)
        return writer.append_all(dump(job) for job in jobs).segment

    def windows(self) -> Iterator[MemoryWindow]:
        for log in list(self._workspace.job_logs.values()):
            for number in sorted(log.segments):
                yield MemoryWindow(log, number)

    def remove(self, domain: str, number: int) -> None:
        self._workspace.job_logs[domain].segments.pop(number, None)

    def is_worked_off(self, domain: str) -> bool:
        has_bookmark = domain in self._workspace.stored_bookmarks
        log = self._workspace.job_logs.get(domain, MemoryLog())
        return has_bookmark and self._workspace.bookmark(domain).jobs >= log.end()

    def remove_all(self) -> None:
        for log in self._workspace.job_logs.values():
            log.segments.clear()
        self.clean()

    def clean(self) -> None:
        for domain, log in list(self._workspace.job_logs.items()):
            if not log.segments and domain not in self._workspace.claimed:
                del self._workspace.job_logs[domain]
                self._workspace.stored_bookmarks.pop(domain, None)


class MemoryHeld:
    """A role or a claim, out of a set of names that are held."""

    def __init__(self, names: set[str], name: str, token: int = 0) -> None:
        self._names = names
        self._name: str | None = name
        self.token = token
        names.add(name)

    def release(self) -> None:
        if self._name is not None:
            self._names.discard(self._name)
            self._name = None


class StoredGate:
    """A domain's record, and the handle that has a request out."""

    def __init__(self) -> None:
        self.record = GateRecord()
        self.holder: MemoryGate | None = None
        self.written_at = 0.0


class MemoryGate:
    """See `crawler.workspace.door.Gate`."""

    def __init__(self, stored: StoredGate, clock: Callable[[], Moment]) -> None:
        self._stored = stored
        self._clock = clock
        self.record = GateRecord()
        self._entered = self._ended = clock()

    @property
    def span(self) -> RequestSpan:
        start_ms = self._entered.mono_ns // 1_000_000
        elapsed_ms = self._ended.mono_ns // 1_000_000 - start_ms
        return RequestSpan(self._entered.boot, start_ms, self._entered.wall_ms, elapsed_ms)

    @property
    def clock_name(self) -> str:
        return self._clock().boot

    @property
    def is_behind(self) -> bool:
        return False

    def try_enter(self, request: EntryRequest, *, adjust: Adjust | None = None) -> Entry:
        now = self._clock()
        if self._stored.holder is not None:
            return Entry(Busy(), now)
        entering = enter(self._stored.record, request, now, adjust)
        self._write(entering.record)
        if isinstance(entering.admission, Open):
            self._stored.holder = self
            self._entered = now
        return Entry(entering.admission, now)

    def finish(self, *, is_ledgered: bool = False) -> Moment:
        now = self._clock()
        self._write(finish(self.record, now, is_ledgered=is_ledgered))
        self._stored.holder = None
        self._ended = now
        return now

    def update(self, run: int, adjust: Adjust) -> bool:
        if self._stored.holder is not None:
            return False
        self._write(revise(self._stored.record, run, self._clock(), adjust))
        return True

    def read(self) -> GateRecord:
        return self._stored.record

    def close(self) -> None:
        if self._stored.holder is self:
            self._stored.holder = None

    def _write(self, record: GateRecord) -> None:
        self._stored.record = self.record = record
        self._stored.written_at = time.time()


class MemoryBell:
    def __init__(self) -> None:
        self._rung = threading.Event()

    def ring(self) -> None:
        self._rung.set()

    def wait(self, seconds: float) -> bool:
        has_rung = self._rung.wait(seconds)
        self._rung.clear()
        return has_rung

    def close(self) -> None:
        pass


class MemorySlots:
    def __init__(self, taken: list[int], limit: int) -> None:
        self._taken = taken  # one number, shared by all holders
        self._limit = limit
        self.held = 0

    def acquire(self, wanted: int) -> None:
        more = max(0, min(wanted, self._limit - self._taken[0]))
        self._taken[0] += more
        self.held += more

    def give_back(self, count: int) -> None:
        less = max(0, min(count, self.held))
        self._taken[0] -= less
        self.held -= less

    def close(self) -> None:
        self.give_back(self.held)


class MemoryActivity:
    """The work of a fetcher, by place."""

    def __init__(self) -> None:
        self._jobs: dict[int, tuple[str, int, int]] = {}
        self._threads: dict[int, int] = {}
        self._current: tuple[int, int] | None = None

    def assign(self, place: int, domain: str, run: int, job: int) -> None:
        self._jobs[place] = (domain, run, job)

    def enter(self, place: int) -> None:
        self._current = (place, time.monotonic_ns())

    def leave(self) -> None:
        self._current = None

    def enter_thread(self, place: int) -> None:
        self._threads[place] = time.monotonic_ns()

    def leave_thread(self, place: int) -> None:
        self._threads.pop(place, None)

    def close(self) -> None:
        pass

    def busy_work(self) -> list[BusyWork]:
        busy = dict(self._threads)
        if self._current is not None:
            place, since = self._current
            busy[place] = min(since, busy.get(place, since))
        found = [BusyWork(os.getpid(), since, *self._jobs.get(place, ("", 0, 0))) for place, since in busy.items()]
        return sorted(found, key=lambda work: work.since_ns)


class MemoryWorkspace:
    """See `crawler.workspace.door.Workspace`."""

    def __init__(self) -> None:
        self.results = MemoryResults()
        self.releases = MemoryHints()
        self.feed = MemoryHints()
        self.orders = MemoryHints()
        self.logs = MemoryLogs()
        self.job_logs: dict[str, MemoryLog] = {}
        self.stored_bookmarks: dict[str, bytes] = {}
        self.claimed: set[str] = set()
        self.last_window = 0
        self._is_prepared = False
        self._held_roles: set[str] = set()
        self._known_roles: dict[str, None] = {}
        self._tokens: dict[str, int] = {}
        self._slots = [0]
        self._gates: dict[str, StoredGate] = {}
        self._robots: dict[str, bytes] = {}
        self._flags: set[str] = set()
        self._bells: dict[str, MemoryBell] = {}
        self._beats: dict[str, bytes] = {}
        self._activities: dict[str, MemoryActivity] = {}
        self._documents: dict[str, bytes] = {}
        self._aside: set[str] = set()

    @property
    def name(self) -> str:
        return "memory"

    def endure(self, is_over: Callable[[], bool]) -> None:
        pass

    def wait_in(self, waiter: Any) -> None:
        pass

    def exists(self) -> bool:
        return self._is_prepared

    def check_format(self) -> None:
        pass

    def prepare(self, *, is_to_be_cleared: bool = False) -> None:
        self._is_prepared = True

    def free_bytes(self) -> int | None:
        return None

    def is_open_to_others(self) -> bool:
        return False

    def prepare_outputs(self) -> None:
        pass

    def move_aside(self, stamp: str, recent_seconds: float, *, is_whole: bool = False) -> list[str]:
        has_content = bool(self.results.writers() or self._documents or self.job_logs)
        held, bells = self._held_roles, self._bells
        aside = self._aside | ({stamp} if has_content else set())
        since = time.time() - recent_seconds
        gates = {domain: stored for domain, stored in self._gates.items() if stored.written_at >= since}
        for stored in gates.values():
            stored.record = for_run(stored.record, 0)  # of no run: the first run begins a new budget
        self.__init__()  # type: ignore[misc]
        self._held_roles, self._bells, self._aside, self._is_prepared = held, bells, aside, True
        self._gates = gates
        return [f"memory, {stamp}"] if has_content else []

    def is_aside(self, stamp: str) -> bool:
        return stamp in self._aside

    def take_role(self, role: str) -> MemoryHeld:
        if role in self._held_roles:
            raise RoleTaken(role, self.name)
        self._known_roles[role] = None
        return MemoryHeld(self._held_roles, role)

    def is_role_taken(self, role: str) -> bool:
        return role in self._held_roles

    def who_has(self, role: str) -> str:
        return ""

    def roles(self) -> list[str]:
        return list(self._known_roles)

    def claim(self, domain: str) -> MemoryHeld | None:
        if domain in self.claimed:
            return None
        self._tokens[domain] = self._tokens.get(domain, 0) + 1
        return MemoryHeld(self.claimed, domain, self._tokens[domain])

    def claim_all(self, domains: Collection[str]) -> Mapping[str, MemoryHeld]:
        claims = {domain: self.claim(domain) for domain in domains}
        return {domain: claim for domain, claim in claims.items() if claim is not None}

    def release_all(self, claims: Collection[Claim]) -> None:
        for claim in claims:
            claim.release()

    def bookmark(self, domain: str) -> Bookmark:
        return parse_bookmark(self.stored_bookmarks.get(domain, b"")) or Bookmark()

    def bookmarks(self, domains: Collection[str]) -> Mapping[str, Bookmark]:
        return {domain: self.bookmark(domain) for domain in domains}

    def save_bookmarks(self, moves: Collection[BookmarkMove], *, after: Callable[[], None] | None = None) -> None:
        if after is not None:
            after()
        for move in moves:
            if move.domain in self.job_logs:
                self.stored_bookmarks[move.domain] = dump_bookmark(move.bookmark)

    @property
    def bookmarks_go_with_results(self) -> bool:
        return True

    def job_writer(self) -> MemoryJobs:
        return MemoryJobs(self)

    def jobs(self, domain: str, start: Cursor = BEGINNING) -> MemoryReader:
        return MemoryReader(self.job_logs.get(domain, MemoryLog()), start)

    def domains_with_jobs(self) -> list[str]:
        return list(self.job_logs)

    def waiting_job_bytes(self) -> Mapping[str, int]:
        sizes = {domain: self.jobs(domain, self.bookmark(domain).jobs).unread_bytes() for domain in self.job_logs}
        return {domain: size for domain, size in sizes.items() if size}

    def gate(self, domain: str, clock: Callable[[], Moment], longest_ms: int = LONGEST_REQUEST_MS) -> MemoryGate:
        return MemoryGate(self._gates.setdefault(domain, StoredGate()), clock)

    def slots(self, limit: int) -> MemorySlots:
        return MemorySlots(self._slots, limit)

    def robots(self, host: str) -> bytes | None:
        return self._robots.get(host)

    def keep_robots(self, host: str, content: bytes) -> None:
        self._robots[host] = content

    def forget_idle(self, seconds: float) -> int:
        return 0  # nothing here outlives the process

    def is_flagged(self, word: str, stage: str | None = None) -> bool:
        return word in self._flags or f"{word}.{stage}" in self._flags

    def flags(self) -> list[str]:
        words = [
            word if stage is None else f"{word}.{stage}" for word in ("pause", "stop") for stage in (None, *STAGES)
        ]
        return [word for word in words if word in self._flags]

    def set_flag(self, word: str, stage: str | None = None) -> None:
        self._flags.add(f"{word}.{stage}" if stage else word)

    def clear_flag(self, word: str, stage: str | None = None) -> bool:
        name = f"{word}.{stage}" if stage else word
        was_set = name in self._flags
        self._flags.discard(name)
        return was_set

    def bell(self, name: str) -> MemoryBell:
        return self._bells.setdefault(name, MemoryBell())

    def ring(self, name: str) -> None:
        if name in self._bells:
            self._bells[name].ring()

    def bells(self) -> list[str]:
        return list(self._bells)

    def beat(self, name: str, content: bytes) -> None:
        self._beats[name] = content

    def heartbeat(self, name: str) -> bytes | None:
        return self._beats.get(name)

    def heartbeats(self) -> dict[str, bytes]:
        return dict(self._beats)

    def activity(self, name: str) -> MemoryActivity:
        self._activities[name] = MemoryActivity()
        return self._activities[name]

    def busy_work(self) -> list[BusyWork]:
        return [work for activity in self._activities.values() for work in activity.busy_work()]

    def record_crash(self, name: str, text: str) -> str:
        return "memory"

    def document(self, name: str) -> bytes | None:
        return self._documents.get(name)

    def glance(self, name: str) -> bytes | None:
        return self.document(name)

    def look_again(self) -> None:
        pass

    def write_document(self, name: str, content: bytes) -> None:
        self._documents[name] = content
