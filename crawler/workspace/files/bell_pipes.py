"""Bells: named pipes that end a stage's wait early. They carry no data, and a lost ring costs only time."""

from __future__ import annotations

import math
import os
import select
import time
from contextlib import suppress
from pathlib import Path

from crawler.workspace.atomic import OWNER_ONLY


class BellPipe:
    """The listening end. One process listens on a path; every process may ring it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        try:
            if not path.exists():
                os.mkfifo(path, OWNER_ONLY)
            # Read-write, so that the pipe never reports end of file when the last ringer goes.
            self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:
            self._descriptor = None  # a file system without pipes: every wait runs its full time

    def wait(self, seconds: float) -> bool:
        """Sleep up to `seconds`. True: the bell rang, and the sleep ended early."""
        if self._descriptor is None:
            time.sleep(max(0.0, min(seconds, 0.1)))
            return False
        poller = select.poll()  # `select` takes no descriptor above 1,023, and a fetcher has many
        poller.register(self._descriptor, select.POLLIN)
        if not poller.poll(math.ceil(max(0.0, seconds) * 1000)):
            return False
        try:
            os.read(self._descriptor, 65536)
        except BlockingIOError:
            pass
        return True

    def close(self) -> None:
        """Stop listening. The pipe goes too: tools that copy folders of files stumble over pipes."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            with suppress(OSError):
                self.path.unlink()


def ring(path: Path) -> None:
    """Wake the process that listens on this bell, if there is one."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        os.write(descriptor, b"!")
    except OSError:
        pass  # the pipe is full: it is ringing already
    finally:
        os.close(descriptor)
