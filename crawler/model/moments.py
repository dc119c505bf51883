"""PURE. One moment on every clock that matters."""

from __future__ import annotations

from typing import NamedTuple


class Moment(NamedTuple):
    """Now, on every clock that matters. `mono_ns` only means something within one `boot`."""

    boot: str
    mono_ns: int
    wall_ms: int
