"""Append-only JSONL segments: one writer a folder, any number of readers with bookmarks.

Three parts: a line (`seal_line`, `is_whole`), a writer (appends, rolls, syncs) and a reader (verifies, tails,
reports damage).

A folder holds `000000000001.jsonl`, `000000000002.jsonl`, …; only the last one grows, and a writer never opens
an old one again: after a crash it starts the next. So a segment with a successor is sealed, and a torn tail in
it will never be completed. Every line is a JSON object whose last member is a CRC-32 of all bytes before it.

Invariants:
- a line is either whole and verified or it is not returned;
- a cursor is always at the start of a line (or before the damaged newline in front of one, or at a torn
  tail that may still grow);
- what `sync` has returned from survives a power cut, the segment's name included.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from pathlib import Path

from crawler.workspace.atomic import OWNER_ONLY, OWNER_ONLY_FOLDER, sync_folder
from crawler.workspace.log import BEGINNING, Cursor, Damage, Line, LogError, OnDamage

SEGMENT_BYTES = 16 * 1024 * 1024
_SUFFIX = ".jsonl"
_SEAL = b',"crc":"'
_SEAL_LENGTH = len(_SEAL) + 8 + 2  # ,"crc":"01234567"}
_CHUNK = 1 << 20
_MOST_AT_ONCE = 8 << 20  # bytes of lines that one call of `read` returns, about: lines of megabytes are few at a time
_SEALED_END = re.compile(rb',"crc":"[0-9a-f]{8}"\}')
_NAME = re.compile(r"(\d{12})\.jsonl", re.ASCII)


# -- a line -----------------------------------------------------------------------------------------------


def seal_line(body: bytes) -> bytes:
    """The line for one JSON object: the object with its checksum as last member, and a newline."""
    return b'%b,"crc":"%08x"}\n' % (body[:-1], zlib.crc32(body[:-1]))


def is_whole(line: bytes) -> bool:
    """Is this line (without its newline) exactly what its writer wrote?"""
    cut = len(line) - _SEAL_LENGTH
    return (
        cut > 0
        and line[cut : cut + 8] == _SEAL
        and line[-2:] == b'"}'
        and b"%08x" % zlib.crc32(line[:cut]) == line[cut + 8 : -2]
    )


# -- segments ---------------------------------------------------------------------------------------------


def segment_path(folder: Path, number: int) -> Path:
    return folder / f"{number:012d}{_SUFFIX}"


def segments(folder: Path) -> list[int]:
    """Numbers of the segments in a folder, oldest first. A folder that is not there has none."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 (names are all that is wanted)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))


def end_of(folder: Path) -> Cursor:
    """The cursor after everything that is in a spool now."""
    while numbers := segments(folder):
        try:
            return Cursor(numbers[-1], segment_path(folder, numbers[-1]).stat().st_size)
        except FileNotFoundError:
            continue  # removed between the listing and the stat
    return Cursor()


def bytes_after(folder: Path, cursor: Cursor) -> int:
    """Unread bytes after a cursor."""
    total = 0
    for number in segments(folder):
        if number >= cursor.segment:
            try:
                size = segment_path(folder, number).stat().st_size
            except FileNotFoundError:
                continue
            total += size - (cursor.offset if number == cursor.segment else 0)
    return max(total, 0)


def _nothing() -> None:
    """There is nothing to sync."""


class Writer:
    """Appends lines to a folder's newest segment; the only writer there.

    Each append is in the kernel's hands when it returns, so it survives the death of this process; `sync` makes
    all appends so far survive the machine's. The first error ends this writer: nothing is appended after bytes
    of unknown fate, and a failed fsync is not tried again (the kernel may have dropped the pages).
    """

    def __init__(
        self,
        folder: Path,
        *,
        first: int | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        durable: bool = True,
        before_sync: Callable[[], None] = _nothing,
    ) -> None:
        """`first` numbers the first new segment; by default it follows the newest one there.

        Without `durable`, rolling and closing sync nothing: for spools that can be written again from elsewhere.
        `before_sync` is called before anything is made durable: it does that with what the lines name.
        """
        self.folder = folder
        self._segment_bytes = segment_bytes
        self._is_durable = durable
        self._before_sync = before_sync
        folder.mkdir(OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        if durable:
            sync_folder(folder.parent)
        existing = segments(folder)
        following = existing[-1] + 1 if existing else 1
        self._number = max(following, first or 0) - 1
        self._descriptor: int | None = None
        self._size = 0
        self._is_dirty = False
        self._broken: str | None = None

    @property
    def end(self) -> Cursor:
        """The cursor after the last append."""
        return Cursor(self._number, self._size) if self._descriptor is not None else Cursor(self._number + 1, 0)

    @property
    def is_ahead(self) -> bool:
        return False

    def append(self, body: bytes) -> Cursor:
        """Append one JSON object; returns the cursor after it. Raises LogError."""
        return self._write(seal_line(body))

    def append_all(self, bodies: Iterable[bytes]) -> Cursor:
        """Append several objects with one write."""
        data = b"".join([seal_line(body) for body in bodies])
        return self._write(data) if data else self.end

    def sync(self) -> None:
        """Return once everything appended so far would survive a power cut. Raises LogError."""
        self.begin_sync()()

    def begin_sync(self) -> Callable[[], None]:
        """A function that makes everything appended so far durable. Call it once, from any thread, while others append.

        It raises LogError; nothing appended since is durable then either.
        """
        self._require_sound()
        if not self._is_dirty or self._descriptor is None:
            return _nothing
        descriptor = os.dup(self._descriptor)  # a roll in between closes ours
        self._is_dirty = False
        return partial(self._sync, descriptor)

    def _sync(self, descriptor: int) -> None:
        try:
            self._before_sync()
            os.fsync(descriptor)
        except OSError as problem:
            raise self._break("cannot be made durable", problem) from problem
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Sync, and close the segment. Safe to call twice."""
        if self._descriptor is None:
            return
        try:
            if self._broken is None and self._is_durable:
                self.sync()
        finally:
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, data: bytes) -> Cursor:
        self._require_sound()
        if self._descriptor is None or self._size >= self._segment_bytes:
            self._roll()
        assert self._descriptor is not None
        try:
            written = os.write(self._descriptor, data)
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except OSError as problem:
            raise self._break("cannot be written", problem) from problem
        self._size += written
        self._is_dirty = True
        return Cursor(self._number, self._size)

    def _roll(self) -> None:
        self.close()
        self._number += 1
        try:
            self._descriptor = os.open(
                segment_path(self.folder, self._number),
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW,
                OWNER_ONLY,
            )
            if self._is_durable:
                sync_folder(self.folder)
        except OSError as problem:
            raise self._break("cannot be started", problem) from problem
        self._size = 0

    def _require_sound(self) -> None:
        if self._broken is not None:
            raise LogError(self._broken)

    def _break(self, what: str, problem: OSError) -> LogError:
        self._broken = (
            f"the spool {self.folder} {what}: {problem.strerror}; make room or mend the disk, then start again"
        )
        return LogError(problem.errno, self._broken)


class Reader:
    """Tails a spool from a cursor across segments, returning only verified lines.

    Each damaged stretch is reported to `on_damage` once and passed over. A tail without its newline at the end of
    the newest segment is waited for. Once a newer segment exists, that tail is returned if it verifies (only its
    newline is missing or damaged), else it is damage.

    `will_sync`: the caller builds on what it reads, so `sync` must be able to make all of it durable first.
    """

    def __init__(
        self,
        folder: Path,
        cursor: Cursor = BEGINNING,
        on_damage: OnDamage | None = None,
        *,
        will_sync: bool = False,
    ) -> None:
        self.folder = folder
        self.cursor = cursor
        self._on_damage = on_damage or (lambda damage: None)
        self._will_sync = will_sync
        self._descriptor: int | None = None
        self._open_number = 0
        self._is_unsynced = False

    def read(self, limit: int = 1000) -> list[Line]:
        """Up to `limit` lines that are there now, fewer if they are long; the cursor moves past the last of them."""
        lines: list[Line] = []
        size = 0
        while len(lines) < limit and size < _MOST_AT_ONCE:
            if not self._open_current():
                break
            before = len(lines)
            got_any = self._read_chunk(lines, limit)
            size += sum([len(line.body) for line in lines[before:]])
            if len(lines) >= limit:
                break
            if not got_any and not self._step_to_next(lines):
                break
        return lines

    def __iter__(self) -> Iterator[Line]:
        """Every line that is there now, one after the other."""
        while True:
            lines = self.read()
            if not lines:
                return
            yield from lines

    def sync(self) -> None:
        """Make what has been read so far durable (any descriptor will do for that)."""
        if self._descriptor is not None and self._is_unsynced:
            os.fsync(self._descriptor)
        self._is_unsynced = False

    def unread_bytes(self) -> int:
        """Bytes after the cursor, as far as they are written."""
        return bytes_after(self.folder, self.cursor)

    def damage(self, line: Line, reason: str) -> Damage:
        """The damage that a verified line is, if it holds no record."""
        return line_damage(self.folder, line, reason)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    # -- inside --------------------------------------------------------------------------------------

    def _open_current(self) -> bool:
        if self._descriptor is not None and self._open_number == self.cursor.segment:
            return True
        self.close()
        number = self.cursor.segment
        if number:
            try:
                self._descriptor = os.open(segment_path(self.folder, number), os.O_RDONLY | os.O_NOFOLLOW)
                self._open_number = number
                if stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                    return True
                self.close()
                self._report(b"", number, 0, "something else is in the place of this segment")
            except FileNotFoundError:
                pass  # consumed and cleaned up: go on with the next one
            except OSError as problem:
                if problem.errno != errno.ELOOP:
                    raise
                self._report(b"", number, 0, "a symlink is in the place of this segment")
        return self._step_to_next([])

    def _step_to_next(self, lines: list[Line]) -> bool:
        """Move to the next segment, if there is one; the unread rest of this one will never be completed."""
        following = [number for number in segments(self.folder) if number > self.cursor.segment]
        if not following:
            return False
        if self._descriptor is not None:
            rest = b""
            while chunk := os.pread(self._descriptor, _CHUNK, self.cursor.offset + len(rest)):
                rest += chunk
            if b"\n" in rest:
                return True  # it grew meanwhile: read on here first
            if rest:
                self._take(rest, lines, len(lines) + len(rest), "torn tail")
            # The writer may have died before it could sync this segment, and `sync` will only sync the next one.
            self.sync()
        self.close()
        self.cursor = Cursor(following[0], 0)
        return self._open_current()

    def _read_chunk(self, lines: list[Line], limit: int) -> bool:
        """BodyWanted whole lines at the cursor. False: there was no newline to move past."""
        assert self._descriptor is not None
        data = os.pread(self._descriptor, _CHUNK, self.cursor.offset)
        last = data.rfind(b"\n")
        while last < 0 and data:
            more = os.pread(self._descriptor, _CHUNK, self.cursor.offset + len(data))
            if not more:
                return False
            last = more.rfind(b"\n")
            last = last if last < 0 else last + len(data)
            data += more
        if last < 0:
            return False
        self._take(data[: last + 1], lines, limit, "checksum does not match")
        return True

    def _take(self, data: bytes, lines: list[Line], limit: int, reason: str) -> None:
        """Sort the bytes at the cursor into lines and damage, and move the cursor past them."""
        number, base = self.cursor.segment, self.cursor.offset
        damaged_from: int | None = None
        stop = 0
        for start, stop, text in _records(data):
            if text is None:
                if damaged_from is None:
                    damaged_from = start
                elif data.startswith(b"{", start) or data.endswith(b'"}\n', 0, start):
                    self._report(data[damaged_from:start], number, base + damaged_from, reason)  # another record
                    damaged_from = start
                continue
            if damaged_from is not None:
                self._report(data[damaged_from:start], number, base + damaged_from, reason)
                damaged_from = None
            lines.append(Line(text, Cursor(number, base + stop)))
            if len(lines) >= limit:
                break
        if damaged_from is not None:
            self._report(data[damaged_from:stop], number, base + damaged_from, reason)
        self._is_unsynced = self._will_sync
        self.cursor = Cursor(number, base + stop)

    def _report(self, raw: bytes, number: int, offset: int, reason: str) -> None:
        place = str(segment_path(self.folder, number))
        self._on_damage(Damage(place, number, offset, raw.removesuffix(b"\n"), reason))


def line_damage(folder: Path, line: Line, reason: str) -> Damage:
    """The damage that a verified line is, if it holds no record."""
    start = line.end.offset - len(line.body) - 1
    return Damage(str(segment_path(folder, line.end.segment)), line.end.segment, start, line.body, reason)


def remove_segment(folder: Path, number: int) -> None:
    segment_path(folder, number).unlink(missing_ok=True)


def remove_segments_before(folder: Path, number: int) -> None:
    """Remove older segments of a spool that is only ever tailed."""
    for older in segments(folder):
        if older < number:
            remove_segment(folder, older)


def segment_lines(
    folder: Path, number: int, on_damage: OnDamage | None = None, offset: int = 0
) -> Generator[Line, None, None]:
    """The lines of one segment alone, from an offset on."""

    def report(damage: Damage) -> None:
        if on_damage is not None and damage.segment == number:  # the reader goes on into the next segment
            on_damage(damage)

    reader = Reader(folder, Cursor(number, offset), report)
    try:
        while lines := reader.read(200):
            for line in lines:
                if line.end.segment != number:
                    return
                yield line
    finally:
        reader.close()


def _records(data: bytes) -> Iterator[tuple[int, int, bytes | None]]:
    """(start, stop, verified line or None) of everything in some bytes, newlines included, without a gap."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        if end < 0:
            end = len(data)
        piece = data[start:end]
        stop = min(end + 1, len(data))
        if is_whole(piece):
            yield start, stop, piece
        else:
            yield from _salvage(piece, start, stop)
        start = stop


def _salvage(piece: bytes, start: int, stop: int) -> Iterator[tuple[int, int, bytes | None]]:
    """The records in a stretch between two newlines that is not simply one.

    Where a newline was damaged or lost, two records stand in one stretch; each is found again by the seal at its
    end, which cannot occur inside of a record. What used to be the newline may still stand before the second.
    """
    done = 0
    for match in _SEALED_END.finditer(piece):
        end = match.end()
        text = next((piece[at:end] for at in (done, done + 1) if is_whole(piece[at:end])), None)
        is_last = len(piece) - end <= 1  # nothing is left but, at most, what used to be a newline
        yield start + done, stop if is_last else start + end, text
        done = len(piece) if is_last else end
        if is_last:
            return
    if done < len(piece) or not piece:
        yield start + done, stop, None
