"""The permits of `max-concurrent-pages-open` as lock files, shared by all fetchers of a workspace."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from crawler.workspace.atomic import open_own


class SlotFiles:
    """See `crawler.workspace.door.Slots`. A slot is a locked file; the kernel frees those of a dead process."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._held: dict[int, int] = {}

    @property
    def held(self) -> int:
        return len(self._held)

    def acquire(self, wanted: int) -> None:
        enough = len(self._held) + wanted
        for number in range(self._limit):
            if len(self._held) >= enough:
                break
            if number in self._held:
                continue
            descriptor = open_own(self._folder / f"{number:02d}.lock", os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                continue
            self._held[number] = descriptor

    def give_back(self, count: int) -> None:
        while count > 0 and self._held:
            _, descriptor = self._held.popitem()
            os.close(descriptor)
            count -= 1

    def close(self) -> None:
        self.give_back(len(self._held))
