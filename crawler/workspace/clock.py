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


def seconds_since(text: str | None) -> float:
    """Seconds by the wall clock since a time that `now_text` wrote; 0 if there is none, or it is still to come."""
    try:
        since = datetime.fromisoformat(text).timestamp() if text else None
    except ValueError:
        since = None
    return 0.0 if since is None else max(0.0, time.time() - since)


@lru_cache(maxsize=1)
def _second(since_1970: int) -> str:
    """A second as text: most of `now_text`'s cost. Cached, because hundreds of records are written in one second."""
    return datetime.fromtimestamp(since_1970, UTC).strftime("%Y-%m-%dT%H:%M:%S")
