"""The work of a fetcher as a file in memory: other processes read it whatever the fetcher does, even stuck in C code.

    header      magic, pid, the place that the request loop is in, since when (0: it waits)
    places      for each: since when a thread works for it (0: none does), run and number of its job, its domain

It is written with plain stores into a shared mapping, a few hundred nanoseconds each, and never synced: it says nothing
about a process that is dead. A reader may meet half an entry; one that has not changed for seconds is whole.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path

from crawler.workspace.door import BusyWork

PLACES = 128  # more than `max-concurrent-pages-open` allows

_MAGIC = b"SRA1"
_HEADER = struct.Struct("<4sIIQ")
_CURRENT = struct.Struct("<IQ")
_CURRENT_AT = 8
_ENTRY = struct.Struct("<QIQH256s")
_SINCE = struct.Struct("<Q")
_JOB = struct.Struct("<IQH256s")
_JOB_AT = 8
_SIZE = _HEADER.size + PLACES * _ENTRY.size


class ActivityFile:
    """The writing end. See `crawler.workspace.door.Activity`."""

    def __init__(self, path: Path) -> None:
        try:
            self._memory = _mapped(path)
        except OSError:  # the work itself meets the same disk, and says more about it
            self._memory = mmap.mmap(-1, _SIZE)
        _HEADER.pack_into(self._memory, 0, _MAGIC, os.getpid(), 0, 0)

    def assign(self, place: int, domain: str, run: int, job: int) -> None:
        if place < PLACES:
            name = domain.encode()[:256]
            _JOB.pack_into(self._memory, _entry_at(place) + _JOB_AT, run & 0xFFFFFFFF, job, len(name), name)

    def enter(self, place: int) -> None:
        _CURRENT.pack_into(self._memory, _CURRENT_AT, place, time.monotonic_ns())

    def leave(self) -> None:
        _CURRENT.pack_into(self._memory, _CURRENT_AT, 0, 0)

    def enter_thread(self, place: int) -> None:
        if place < PLACES:
            _SINCE.pack_into(self._memory, _entry_at(place), time.monotonic_ns())

    def leave_thread(self, place: int) -> None:
        if place < PLACES:
            _SINCE.pack_into(self._memory, _entry_at(place), 0)

    def close(self) -> None:
        self._memory.close()


def _mapped(path: Path) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.ftruncate(descriptor, 0)
        # Without space of its own, a full disk would end the process at the first store into the mapping.
        os.posix_fallocate(descriptor, 0, _SIZE)
        return mmap.mmap(descriptor, _SIZE)
    finally:
        os.close(descriptor)


def _entry_at(place: int) -> int:
    return _HEADER.size + place * _ENTRY.size


def read_activity(path: Path) -> list[BusyWork]:
    """Everything that the process is at just now, the longest first; nothing if there is no such file."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    if len(data) != _SIZE or data[:4] != _MAGIC:
        return []
    _, pid, current, current_since = _HEADER.unpack_from(data)
    found = []
    for place in range(PLACES):
        since, run, job, length, name = _ENTRY.unpack_from(data, _entry_at(place))
        if place == current and current_since:
            since = min(since or current_since, current_since)
        if since and length <= len(name):
            found.append(BusyWork(pid, since, name[:length].decode("utf-8", "replace"), run, job))
    return sorted(found, key=lambda work: work.since_ns)
