"""A domain's gate as a file. Every request to the domain passes it, whichever process sends it.

One small file a domain (`state/gates/<domain>`) holds its `GateRecord`. The file is locked with an exclusive `flock`
from just before a request until its end, so that two fetchers cannot ask one domain at the same time. The record is
written before the request leaves, so that a fetcher which is killed with a request out has counted it.

Invariants:
- a request starts at least `delay` after the end of the one before, on the monotonic clock of this boot;
- an end that is not known (a fetcher died with a request out, the machine was rebooted, the clock makes no sense) is
  taken as "now";
- `sent` never exceeds the budget of the run;
- two slots are written in turns, each with its checksum: a torn write leaves the record before it;
- the breaker has two slots of its own behind those, which files of older versions lack: it changes rarely. It is
  written first, so that the record of a new run is never there with the breaker of an earlier one.

`crawler.pace.decisions` decides; `GateFile` only locks, reads and writes.
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from crawler.model.messages import RetryCounts
from crawler.model.moments import Moment
from crawler.model.records import Closure
from crawler.pace.breaker import NO_BREAKER, Breaker, BreakerState
from crawler.pace.decisions import CLOSURE_REASONS, Adjust, Busy, Entry, EntryRequest, Open, enter, finish, revise
from crawler.pace.gate_record import GateRecord, KillMark, LedgerMark
from crawler.workspace.atomic import open_own
from crawler.workspace.clock import read_clock
from crawler.workspace.door import GateError, RequestSpan

# -- the record's bytes -----------------------------------------------------------------------------------

_SLOT = 128
_CHECKSUM = 4
_MAGIC = b"SRG1"
_CLOSED = ("", *CLOSURE_REASONS)  # by their number in the record

_boot_bytes = lru_cache(maxsize=4)(bytes.fromhex)


_MORE_AT = 2 * _SLOT  # where the slots of the second kind begin
_MORE_SLOT = 64
_MORE_MAGIC = b"SRB1"
_STATES = tuple(BreakerState)  # by their number in the record
_MORE_LAYOUT = struct.Struct("<4sQBHHHIIq")
_BYTES = _MORE_AT + 2 * _MORE_SLOT


class _Broken(ValueError):
    """These numbers are no value of the field."""


def _closure_numbers(closes: Closure | None) -> tuple[int, int, int]:
    if closes is None:
        return 0, 0, -1
    return _CLOSED.index(closes.reason), closes.request_number, -1 if closes.limit is None else closes.limit


def _closure_of(reason: int, request_number: int, limit: int) -> Closure | None:
    if reason >= len(_CLOSED):
        raise _Broken
    return Closure(_CLOSED[reason], request_number, None if limit < 0 else limit) if reason else None


def _moment_numbers(ended: Moment | None) -> tuple[bytes, int, int]:
    if ended is None:
        return b"", -1, 0
    return _boot_bytes(ended.boot), ended.mono_ns, ended.wall_ms


def _moment_of(boot: bytes, mono_ns: int, wall_ms: int) -> Moment | None:
    return None if mono_ns < 0 else Moment(boot.hex(), mono_ns, wall_ms)


class _Field(NamedTuple):
    """A field of `GateRecord` in the file. A field of several numbers has functions `to` and `of` them."""

    name: str
    code: str  # of the `struct` module
    to: Callable[[Any], Iterable[Any]] | None = None
    of: Callable[..., Any] | None = None


# In the order of the file, after the magic and the sequence number. A new field goes to the end, into bytes that are
# zero in older files: its `of` must make the default of zeros.
_FIELDS = (
    _Field("run", "I"),
    _Field("sent", "I"),
    _Field("ledgered", "I"),
    _Field("is_in_flight", "?"),
    _Field("closes", "BIq", _closure_numbers, _closure_of),
    _Field("crawl_delay_ms", "I"),
    _Field("ended", "16sqq", _moment_numbers, _moment_of),
    _Field("unreported", "I"),
    _Field("mark", "HQQ", tuple, LedgerMark),
    _Field("pause_ms", "I"),
    _Field("retry_counts", "QH?IH", tuple, RetryCounts),
    _Field("killed", "IBB", tuple, KillMark),
)
_HEAD = "<4sQ"
_CODES = _HEAD + "".join(field.code for field in _FIELDS)
_LAYOUT = struct.Struct(f"{_CODES}{_SLOT - _CHECKSUM - struct.calcsize(_CODES)}x")
_values_of = attrgetter(*(field.name for field in _FIELDS))
# From the last to the first, so that places before a spliced one stay right.
_SPLICED = tuple((place, field.to) for place, field in reversed([*enumerate(_FIELDS)]) if field.to is not None)
_COUNTS = tuple(len(struct.unpack("<" + field.code, bytes(struct.calcsize("<" + field.code)))) for field in _FIELDS)


def pack(record: GateRecord, sequence: int) -> bytes:
    """One slot of the file."""
    numbers = [*_values_of(record)]
    for place, to in _SPLICED:
        numbers[place : place + 1] = to(numbers[place])
    body = _LAYOUT.pack(_MAGIC, sequence, *numbers)
    return body + zlib.crc32(body).to_bytes(_CHECKSUM, "little")


def unpack(data: bytes) -> tuple[int, GateRecord] | None:
    """(sequence, record) of one slot, or None if it is not whole."""
    end = _SLOT - _CHECKSUM
    if len(data) < _SLOT or zlib.crc32(data[:end]) != int.from_bytes(data[end:_SLOT], "little"):
        return None
    magic, sequence, *numbers = _LAYOUT.unpack_from(data)
    if magic != _MAGIC:
        return None
    values: dict[str, Any] = {}
    place = 0
    try:
        for field, count in zip(_FIELDS, _COUNTS, strict=True):
            its = numbers[place : place + count]
            values[field.name] = its[0] if field.of is None else field.of(*its)
            place += count
    except _Broken:
        return None
    return sequence, GateRecord(**values)


def newest(data: bytes) -> tuple[int, GateRecord] | None:
    """The newest whole record of a gate file's bytes."""
    found = [slot for slot in (unpack(data[:_SLOT]), unpack(data[_SLOT : 2 * _SLOT])) if slot is not None]
    return max(found, key=lambda slot: slot[0]) if found else None


def pack_breaker(breaker: Breaker, sequence: int) -> bytes:
    """One slot of the second kind."""
    state, failures, successes, trips, changes, cooldown_ms, since_ns = msgspec.structs.astuple(breaker)
    body = _MORE_LAYOUT.pack(
        _MORE_MAGIC, sequence, _STATES.index(state), failures, successes, trips, changes, cooldown_ms, since_ns
    ).ljust(_MORE_SLOT - _CHECKSUM, b"\0")
    return body + zlib.crc32(body).to_bytes(_CHECKSUM, "little")


def unpack_breaker(data: bytes) -> tuple[int, Breaker] | None:
    """(sequence, breaker) of one slot of the second kind, or None if it is not whole."""
    end = _MORE_SLOT - _CHECKSUM
    if len(data) < _MORE_SLOT or zlib.crc32(data[:end]) != int.from_bytes(data[end:_MORE_SLOT], "little"):
        return None
    magic, sequence, state, *numbers = _MORE_LAYOUT.unpack_from(data)
    if magic != _MORE_MAGIC or state >= len(_STATES):
        return None
    return sequence, Breaker(_STATES[state], *numbers)


def newest_breaker(data: bytes) -> tuple[int, Breaker]:
    """The newest whole breaker of a gate file's bytes; a closed one where there is none."""
    places = (_MORE_AT, _MORE_AT + _MORE_SLOT)
    found = [slot for at in places if (slot := unpack_breaker(data[at : at + _MORE_SLOT])) is not None]
    return max(found, key=lambda slot: slot[0]) if found else (0, NO_BREAKER)


# -- the file ---------------------------------------------------------------------------------------------


class GateFile:
    """One domain's gate, opened by one process. See `crawler.workspace.door.Gate`."""

    def __init__(self, path: Path, clock: Callable[[], Moment] = read_clock) -> None:
        self._clock = clock
        self._sequence = self._breaker_sequence = 0
        self._breaker = NO_BREAKER  # as it is in the file
        self.record = GateRecord()
        self._entered: Moment | None = None
        self._ended: Moment | None = None
        self._seen = b""  # the file's bytes as last read or written, and the record in them
        self._known: GateRecord | None = None
        try:
            self._descriptor = open_own(path, os.O_RDWR | os.O_CREAT)
        except OSError as problem:
            raise _cannot_keep(path, problem) from problem
        self.path = path

    @property
    def span(self) -> RequestSpan:
        start, end = self._entered, self._ended
        assert start is not None and end is not None, "a request was finished"
        start_ms = start.mono_ns // 1_000_000
        return RequestSpan(start.boot, start_ms, start.wall_ms, end.mono_ns // 1_000_000 - start_ms)

    @property
    def clock_name(self) -> str:
        return self._clock().boot

    @property
    def is_behind(self) -> bool:
        return False

    def try_enter(self, request: EntryRequest, *, adjust: Adjust | None = None) -> Entry:
        if not self._lock():
            return Entry(Busy(), self._clock())
        is_open = False
        try:
            now = self._clock()
            before = self._read()
            entering = enter(before, request, now, adjust)
            if entering.record != before:
                self._write(entering.record)
            self.record = entering.record
            is_open = isinstance(entering.admission, Open)
            self._entered = now
            return Entry(entering.admission, now)
        finally:
            if not is_open:
                self._unlock()

    def finish(self, *, is_ledgered: bool = False) -> Moment:
        now = self._clock()
        try:
            self._write(finish(self.record, now, is_ledgered=is_ledgered))
        finally:
            self._unlock()
        self._ended = now
        return now

    def update(self, run: int, adjust: Adjust) -> bool:
        if not self._lock():
            return False
        try:
            before = self._read()
            record = revise(before, run, self._clock(), adjust)
            if record != before:
                self._write(record)
            self.record = record
            return True
        finally:
            self._unlock()

    def read(self) -> GateRecord:
        return self._read()

    def close(self) -> None:
        os.close(self._descriptor)

    def _lock(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if os.fstat(self._descriptor).st_nlink:
            return True
        # Removed as idle since it was opened: the domain's gate is the file that is there now.
        os.close(self._descriptor)
        self._descriptor = open_own(self.path, os.O_RDWR | os.O_CREAT)
        self._seen, self._known = b"", None
        return self._lock()

    def remove_if_idle(self, since: float) -> bool:
        """Remove the file, if the gate was not used since then (wall clock) and nobody holds it."""
        if not self._lock():
            return False
        try:
            is_idle = os.fstat(self._descriptor).st_mtime < since
            if is_idle:
                self.path.unlink(missing_ok=True)
            return is_idle
        finally:
            self._unlock()

    def _unlock(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _read(self) -> GateRecord:
        data = os.pread(self._descriptor, _BYTES, 0)
        if data == self._seen and self._known is not None:
            return self._known
        self._seen, self._known = data, None
        found = newest(data)
        self._breaker_sequence, self._breaker = newest_breaker(data)
        if found is not None:
            self._sequence, known = found
            self._known = known if self._breaker is NO_BREAKER else replace(known, breaker=self._breaker)
            return self._known
        self._sequence = 0
        if any(data):  # both slots are broken: all that is known is that there was a request
            return GateRecord(is_in_flight=True)
        return GateRecord()

    def _write(self, record: GateRecord) -> None:
        if record.breaker != self._breaker:
            self._breaker_sequence += 1
            place = _MORE_AT + (self._breaker_sequence % 2) * _MORE_SLOT
            self._put(pack_breaker(record.breaker, self._breaker_sequence), place)
            self._breaker = record.breaker
        self._sequence += 1
        self._put(pack(record, self._sequence), (self._sequence % 2) * _SLOT)
        self._known = self.record = record

    def _put(self, data: bytes, place: int) -> None:
        try:
            os.pwrite(self._descriptor, data, place)
        except OSError as problem:
            raise _cannot_keep(self.path, problem) from problem
        before = self._seen
        self._seen = before[:place].ljust(place, b"\0") + data + before[place + len(data) :]


def _cannot_keep(path: Path, problem: OSError) -> GateError:
    return GateError(problem.errno, f"cannot keep the pace of a domain in {path}: {problem.strerror}")
