"""The clocks: wall time for people, the monotonic clock of one boot for proofs."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from crawler.model.moments import Moment


@lru_cache(maxsize=1)
def boot_id() -> str:
    """The identity of this boot of the machine. Where it is not known, each process counts as a boot of its own."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")[:32]
    except OSError:
        return uuid.uuid4().hex


def read_clock() -> Moment:
    """The present moment on all clocks."""
    return Moment(boot_id(), time.monotonic_ns(), time.time_ns() // 1_000_000)


def now_text() -> str:
    """The wall clock as the records write it: RFC 3339, UTC, milliseconds."""
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{_second(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=1)
def _second(since_1970: int) -> str:
    """A second as text: most of `now_text`'s cost. Cached, because hundreds of records are written in one second."""
    return datetime.fromtimestamp(since_1970, UTC).strftime("%Y-%m-%dT%H:%M:%S")
