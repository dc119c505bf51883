"""The gate of a domain: every request on the wire passes it, whoever sends it, whenever.

One small file a domain (`state/gates/<domain>`) remembers when the last request ended, how many went out in this
run, whether the domain is closed, and how often a visit that rests has tried. It is held with an exclusive `flock`
from just before a request until its end, so two fetchers cannot ask one domain at once, and it is written before the
request leaves, so a fetcher that is killed in between has still counted it.

Invariants:
- a request starts at least `delay` after the end of the one before, on the monotonic clock of this boot;
- what cannot be known (a fetcher died with a request out, the machine was booted anew, the clock makes no sense)
  is taken as "it ended just now";
- `sent` never exceeds the budget of the run;
- two slots are written in turns, each with its checksum: a torn write leaves the record before it.

`settle`, `next_allowed`, `admit` decide and are pure; `Gate` does.
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from crawler.model.messages import RetryCounts
from crawler.model.moments import Moment
from crawler.model.records import Closure
from crawler.pace.decisions import (
    CLOSURE_REASONS,
    Admission,
    Busy,
    GateRecord,
    LedgerMark,
    Open,
    admit,
    arrived,
    departed,
    for_run,
    settle,
)
from crawler.workspace.clock import read_clock
from crawler.workspace.door import GateError

_SLOT = 128
_MAGIC = b"SRG1"
# magic, sequence, run, sent, ledgered, in flight, closed, closed at request, closed limit, crawl delay (ms), boot,
# last end (monotonic ns, wall ms), lost and not told yet, how far the ledger was counted (writer, segment, offset),
# the rest that a visit has promised (ms), what it has tried (job, retries, a 429 waited out, robots.txt of, tries)
_LAYOUT = struct.Struct("<4sQIIIBBIqI16sqqIHQQIQHBIH7x")
_CLOSED = ("", *CLOSURE_REASONS)  # by their number in the record


_bytes_of = lru_cache(maxsize=4)(bytes.fromhex)


# -- the record's bytes -----------------------------------------------------------------------------------


def pack(record: GateRecord, sequence: int) -> bytes:
    run, sent, ledgered, is_in_flight, ended, crawl_delay_ms, closes, untold, mark, rest_ms, tried = record
    boot, mono_ns, wall_ms = ended or ("", -1, 0)
    body = _LAYOUT.pack(
        _MAGIC,
        sequence,
        run,
        sent,
        ledgered,
        is_in_flight,
        _CLOSED.index(closes.reason) if closes else 0,
        closes.request_number if closes else 0,
        -1 if closes is None or closes.limit is None else closes.limit,
        crawl_delay_ms,
        _bytes_of(boot),
        mono_ns,
        wall_ms,
        untold,
        *mark,
        rest_ms,
        *tried,
    )
    return body + zlib.crc32(body).to_bytes(4, "little")


def unpack(data: bytes) -> tuple[int, GateRecord] | None:
    """(sequence, record) of one slot, or None if it is not whole."""
    if len(data) < _SLOT or zlib.crc32(data[: _SLOT - 4]) != int.from_bytes(data[_SLOT - 4 : _SLOT], "little"):
        return None
    (
        magic,
        sequence,
        run,
        sent,
        ledgered,
        in_flight,
        closed,
        at,
        limit,
        delay,
        boot,
        mono,
        wall,
        untold,
        writer,
        segment,
        offset,
        rest,
        job,
        retries,
        has_waited,
        host,
        tries,
    ) = _LAYOUT.unpack_from(data)
    if magic != _MAGIC or closed >= len(_CLOSED):
        return None
    closes = Closure(_CLOSED[closed], at, None if limit < 0 else limit) if closed else None
    ended = None if mono < 0 else Moment(boot.hex(), mono, wall)
    return sequence, GateRecord(
        run,
        sent,
        ledgered,
        bool(in_flight),
        ended,
        delay,
        closes,
        untold,
        LedgerMark(writer, segment, offset),
        rest,
        RetryCounts(job, retries, bool(has_waited), host, tries),
    )


def newest(data: bytes) -> tuple[int, GateRecord] | None:
    """The newest whole record of a gate file's bytes."""
    found = [slot for slot in (unpack(data[:_SLOT]), unpack(data[_SLOT : 2 * _SLOT])) if slot is not None]
    return max(found, key=lambda slot: slot[0]) if found else None


# -- doing ------------------------------------------------------------------------------------------------


class GateFile:
    """One domain's gate, opened by one process. Use by one thread at a time.

    `try_enter` … `finish` surround a request. In between others only find it busy.
    """

    def __init__(self, path: Path, clock: Callable[[], Moment] = read_clock) -> None:
        self._clock = clock
        self._sequence = 0
        self.record = GateRecord()
        self._seen = b""  # the file's bytes as last read or written, and what they mean
        self._known: GateRecord | None = None
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as problem:
            raise GateError(
                problem.errno, f"cannot keep the pace of a domain in {path}: {problem.strerror}"
            ) from problem
        self.path = path

    def try_enter(
        self,
        run: int,
        delay_ms: int,
        limit: int,
        adjust: Callable[[GateRecord], GateRecord] | None = None,
        crawl_delay_ms: int | None = None,
    ) -> tuple[Admission, Moment]:
        """Ask to send one request now. On `Open` the gate is held until `finish`.

        `delay_ms` is the least distance by the config. `crawl_delay_ms` is what the host to be asked wants, where
        that is known; the record keeps it, and what the host asked before wants counts once more.
        `adjust` may change the settled record first (the lease holder brings its ledger up to date with it).
        """
        if not self._lock():
            return Busy(), self._clock()
        admission: Admission = Busy()
        try:
            now = self._clock()
            before = self._read()
            record = settle(for_run(before, run), now)
            if adjust is not None:
                record = adjust(record)
            admission = admit(record, max(delay_ms, crawl_delay_ms or 0), limit, now)
            if isinstance(admission, Open):
                wants = record.crawl_delay_ms if crawl_delay_ms is None else crawl_delay_ms
                record = departed(record, admission.number, wants)
                self._write(record)
            elif record != before:
                self._write(record)
            self.record = record
            return admission, now
        finally:
            if not isinstance(admission, Open):
                self._unlock()

    def finish(self, *, is_ledgered: bool = False) -> Moment:
        """The request has ended, just now. `is_ledgered` counts it as written down elsewhere."""
        now = self._clock()
        record = self.record
        try:
            self._write(arrived(record, now, record.ledgered + is_ledgered))
        finally:
            self._unlock()
        return now

    def update(self, run: int, adjust: Callable[[GateRecord], GateRecord]) -> bool:
        """Change the settled record without a request; False if the gate is busy."""
        if not self._lock():
            return False
        try:
            before = self._read()
            record = adjust(settle(for_run(before, run), self._clock()))
            if record != before:
                self._write(record)
            self.record = record
            return True
        finally:
            self._unlock()

    def read(self) -> GateRecord:
        """The record as it is now, without holding the gate."""
        return self._read()

    def close(self) -> None:
        os.close(self._descriptor)

    def _lock(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False

    def _unlock(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _read(self) -> GateRecord:
        data = os.pread(self._descriptor, 2 * _SLOT, 0)
        if data == self._seen and self._known is not None:
            return self._known
        self._seen, self._known = data, None
        found = newest(data)
        if found is not None:
            self._sequence, self._known = found
            return self._known
        self._sequence = 0
        if any(data):  # both slots broken: nothing is known but that something was asked
            return GateRecord(is_in_flight=True)
        return GateRecord()

    def _write(self, record: GateRecord) -> None:
        self._sequence += 1
        place = (self._sequence % 2) * _SLOT
        data = pack(record, self._sequence)
        try:
            os.pwrite(self._descriptor, data, place)
        except OSError as problem:
            words = f"cannot keep the pace of a domain in {self.path}: {problem.strerror}"
            raise GateError(problem.errno, words) from problem
        before = self._seen
        if place:
            self._seen = before[:_SLOT].ljust(_SLOT, b"\0") + data
        else:
            self._seen = data + before[_SLOT:]
        self._known = self.record = record
