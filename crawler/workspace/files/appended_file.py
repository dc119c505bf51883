"""A file that people read and one stage appends to: it is cut to the size that was last committed before it goes on."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from crawler.workspace.atomic import OWNER_ONLY_FOLDER, open_own


class AppendedFile:
    """Implements `door.AppendedFile` on a path."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def size(self) -> int:
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def open_at(self, size: int) -> int:
        self.close()
        self._path.parent.mkdir(OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        self._descriptor = open_own(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        found = os.fstat(self._descriptor).st_size
        kept = min(found, size)
        if kept < size:
            kept = self._end_of_last_line(kept)
        if kept < found:
            os.ftruncate(self._descriptor, kept)
        return kept

    def append(self, content: bytes) -> None:
        assert self._descriptor is not None
        left = memoryview(content)
        while left:
            left = left[os.write(self._descriptor, left) :]

    def sync(self) -> None:
        if self._descriptor is not None:
            os.fdatasync(self._descriptor)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def lines(self, size: int | None = None) -> Iterator[bytes]:
        try:
            descriptor = open_own(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return
        with os.fdopen(descriptor, "rb") as file:
            end = 0
            for line in file:
                end += len(line)
                if not line.endswith(b"\n") or (size is not None and end > size):
                    return
                yield line

    def _end_of_last_line(self, size: int) -> int:
        """The end of the last whole line before `size`."""
        assert self._descriptor is not None
        while size > 0:
            start = max(0, size - 65536)
            newline = os.pread(self._descriptor, size - start, start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            size = start
        return 0


class LogFolder:
    """Implements `door.LogFolder` on a folder."""

    def __init__(self, root: Path, beside: Path | None = None) -> None:
        self._root = root
        self._home = beside or root

    @property
    def place(self) -> str:
        return f"{platform.node()}:{self._home.absolute()}"

    def file(self, name: str) -> AppendedFile:
        return AppendedFile(self._root / name)

    def names(self) -> list[str]:
        folders = [folder for folder in (self._root / "logs", self._root / "metadata") if folder.is_dir()]
        return sorted(f"{folder.name}/{path.name}" for folder in folders for path in folder.iterdir() if path.is_file())

    def beside(self, name: str) -> LogFolder:
        return LogFolder(self._root / name, self._home)

    def set_aside(self, name: str) -> None:
        path = self._root / name
        places = (path.with_name(f"old-{number}-{path.name}") for number in count(1))
        path.rename(next(place for place in places if not place.exists()))

    def clear(self) -> None:
        for name in self.names():
            (self._root / name).unlink(missing_ok=True)

    def take_from(self, other: LogFolder) -> None:
        for name in other.names():
            target = self._root / name
            target.parent.mkdir(OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
            (other._root / name).replace(target)
