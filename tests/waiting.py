"""Waiting for descriptors in tests. `select` takes none above 1,023, and a long test process may have more."""

from __future__ import annotations

import select
from typing import Protocol


class HasFileno(Protocol):
    def fileno(self) -> int: ...


def is_readable(descriptor: int | HasFileno, seconds: float) -> bool:
    """Is there something to read, or the end of it, within so many seconds?"""
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(max(0.0, seconds) * 1000))
