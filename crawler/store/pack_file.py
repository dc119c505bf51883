"""Many blobs in one file, compressed with a dictionary of what the pages of a site have in common.

    magic · length and bytes of the dictionary · frames, one after the other · index · trailer

The index has a row for each blob, sorted by hash: hash, offset and length of its frame. The trailer says where it is,
how many rows it has, and its SHA-256. A pack is written once, under another name, and renamed; nothing is changed in
place.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from crawler.store.blobs import BlobDamaged

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PACK_LEVEL = 9  # a pack is written once, and not by a fetcher
NAME = re.compile(r"[0-9a-f]{16}\.pack")
DICTIONARY = 112 * 1024  # bytes; what zstd itself takes by default
_FEWEST_SAMPLES = 8
_MOST_SAMPLED = 64 * 1024 * 1024  # bytes
_MOST_ROWS = 1_000_000  # of the index of a pack, which is read whole
_TICK_NS = 100_000_000  # coarser than the times that any file system keeps, but for FAT's

_MAGIC = b"SUMIPACK"
_HEAD = struct.Struct("<8sI")
_ROW = struct.Struct("<32sQI")
_TRAILER = struct.Struct("<QI32s8s")
_OPTIONS: Mapping[int, int] = {
    zstd.CompressionParameter.compression_level: PACK_LEVEL,
    zstd.CompressionParameter.checksum_flag: 1,
}


def dictionary_of(samples: list[bytes]) -> bytes:
    """A dictionary of what these pages have in common; b"": they are too few, or have too little."""
    if len(samples) < _FEWEST_SAMPLES:
        return b""
    total = sum(map(len, samples))
    try:
        return bytes(zstd.train_dict(samples, min(DICTIONARY, max(1024, total // 32))).dict_content)
    except (zstd.ZstdError, ValueError):
        return b""


def sampled(bodies: Iterable[bytes]) -> list[bytes]:
    """As many of them as a dictionary needs."""
    samples: list[bytes] = []
    room = _MOST_SAMPLED
    for body in bodies:
        room -= len(body)
        if room < 0:
            break
        if body:
            samples.append(body)
    return samples


def frame_maker(dictionary: bytes) -> Callable[[bytes], bytes]:
    """A function that compresses a body for a pack with this dictionary."""
    known = zstd.ZstdDict(dictionary) if dictionary else None
    return lambda body: bytes(zstd.compress(body, options=_OPTIONS, zstd_dict=known))


def write_pack(scratch: Path, folder: Path, bodies: Iterable[tuple[str, bytes]], dictionary: bytes, mode: int) -> Path:
    """Write a pack of these (hash, body) pairs, durably; returns its place in `folder`."""
    frame_of = frame_maker(dictionary)
    return write_frames(scratch, folder, ((digest, frame_of(body)) for digest, body in bodies), dictionary, mode)


def write_frames(
    scratch: Path, folder: Path, frames: Iterable[tuple[str, bytes]], dictionary: bytes, mode: int
) -> Path:
    """The same of bodies that are compressed already, with this dictionary."""
    rows: list[tuple[bytes, int, int]] = []
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(_HEAD.pack(_MAGIC, len(dictionary)) + dictionary)
            for digest, frame in frames:
                rows.append((bytes.fromhex(digest), file.tell(), len(frame)))
                file.write(frame)
            index = b"".join(_ROW.pack(*row) for row in sorted(rows))
            summary = hashlib.sha256(index).digest()
            file.write(index + _TRAILER.pack(file.tell(), len(rows), summary, _MAGIC))
            file.flush()
            os.fsync(descriptor)
        place = folder / f"{summary.hex()[:16]}.pack"
        scratch.replace(place)
    except OSError:
        with suppress(OSError):
            scratch.unlink()
        raise
    _sync(folder)
    return place


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Pack:
    """One pack, open for reading. Its index is in memory: 44 bytes a blob."""

    def __init__(self, path: Path) -> None:
        """Raises BlobDamaged if this is no whole pack, OSError if it cannot be read."""
        self.path = path
        # It is closed with the last reference to this pack: another thread may be reading when it is given up.
        self._file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb", 0)
        self._descriptor = self._file.fileno()
        try:
            self._read_index()
        except BaseException:
            self.close()
            raise

    def _read_index(self) -> None:
        found = os.fstat(self._descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise self._damaged("it is no plain file")
        size = found.st_size
        head = os.pread(self._descriptor, _HEAD.size, 0)
        trailer = os.pread(self._descriptor, _TRAILER.size, max(size - _TRAILER.size, 0))
        if len(head) != _HEAD.size or len(trailer) != _TRAILER.size:
            raise self._damaged("it is cut off")
        magic, length = _HEAD.unpack(head)
        start, count, summary, end_magic = _TRAILER.unpack(trailer)
        if magic != _MAGIC or end_magic != _MAGIC or start + count * _ROW.size + _TRAILER.size != size:
            raise self._damaged("it is no pack, or is cut off")
        if count > _MOST_ROWS or length > start - _HEAD.size:
            raise self._damaged("its head or its trailer names more than it has")
        self._index = os.pread(self._descriptor, count * _ROW.size, start)
        if hashlib.sha256(self._index).digest() != summary:
            raise self._damaged("its index has another hash")
        self._frames_end = start
        self._count = int(count)
        self.size = size
        content = os.pread(self._descriptor, length, _HEAD.size)
        self.dictionary = content
        try:
            self._known = zstd.ZstdDict(content) if content else None
        except (zstd.ZstdError, ValueError):
            raise self._damaged("its dictionary is none") from None

    def close(self) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._count

    def hashes(self) -> Iterator[str]:
        for place in range(0, len(self._index), _ROW.size):
            yield self._index[place : place + 32].hex()

    def has(self, digest: str) -> bool:
        return self._find(bytes.fromhex(digest)) is not None

    def frame(self, digest: str) -> bytes | None:
        """The frame of a blob, which needs the dictionary; None: it is not in here."""
        found = self._find(bytes.fromhex(digest))
        if found is None:
            return None
        offset, length = found
        if offset + length > self._frames_end:
            raise self._damaged("its index leads out of it")
        return os.pread(self._descriptor, length, offset)

    def decoder(self) -> zstd.ZstdDecompressor:
        return zstd.ZstdDecompressor(self._known)

    def _find(self, wanted: bytes) -> tuple[int, int] | None:
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            digest, offset, length = _ROW.unpack_from(self._index, middle * _ROW.size)
            if digest == wanted:
                return offset, length
            low, high = (middle + 1, high) if digest < wanted else (low, middle)
        return None

    def _damaged(self, reason: str) -> BlobDamaged:
        return BlobDamaged("", str(self.path), reason)


class Packs:
    """All packs of a folder. They are looked for again when the folder has changed. Any thread may ask."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._refreshing = threading.Lock()
        self._seen: tuple[int, int] | None = None
        self._packs: dict[str, Pack] = {}
        self.damaged: dict[str, BlobDamaged] = {}  # by name

    def all(self) -> list[Pack]:
        self._refresh()
        return list(self._packs.values())

    def holding(self, digest: str) -> Pack | None:
        """The pack that has this blob."""
        self._refresh()
        return next((pack for pack in self._packs.values() if pack.has(digest)), None)

    def look_again(self) -> None:
        """The folder was changed, maybe so soon that its time does not tell."""
        self._seen = None

    def _refresh(self) -> None:
        try:
            found = self.folder.lstat()
        except FileNotFoundError:
            found = None
        seen = None if found is None or not stat.S_ISDIR(found.st_mode) else (found.st_ino, found.st_mtime_ns)
        if seen is None and not self._packs and not self.damaged:
            return  # there are no packs, as with most stores
        if seen is None or seen != self._seen:
            with self._refreshing:
                self._look(seen)

    def _look(self, seen: tuple[int, int] | None) -> None:
        names = {entry.name for entry in os.scandir(self.folder) if NAME.fullmatch(entry.name)} if seen else set()
        packs = {name: pack for name, pack in self._packs.items() if name in names}
        self.damaged = {name: problem for name, problem in self.damaged.items() if name in names}
        for name in sorted(names - packs.keys()):
            try:
                packs[name] = Pack(self.folder / name)
            except BlobDamaged as problem:
                self.damaged[name] = problem
            except OSError:
                self.damaged[name] = BlobDamaged("", str(self.folder / name), "it cannot be read, or is a symlink")
        self._packs = packs
        # A folder that was changed a moment ago may be changed again within the same tick of its clock.
        self._seen = seen if seen is not None and time.time_ns() - seen[1] > _TICK_NS else None
