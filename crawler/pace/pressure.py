"""PURE. Backpressure: how fast may fetchers go on, if results wait to be applied or the disk fills up?

Up to half of a limit they go at their own pace. From there on they slow down, evenly, and at the limit they wait. The
disk counts in the same way, from twice the floor down to it. The tightest limit decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from crawler.model.settings import SpoolSettings

_FREELY = 0.5  # of a limit


@dataclass(frozen=True, slots=True)
class Load:
    """What waits and what is left. None: not known, and no reason to slow down."""

    results: int | None = None  # that wait to be applied
    bytes: int | None = None  # of them
    free_disk: int | None = None  # bytes, where the workspace or the map lies, whichever has less


@dataclass(frozen=True, slots=True)
class Pressure:
    """`share` of the requests that may be on the wire: 1 all, 0 none. `reason`: why it is less than all."""

    share: float = 1.0
    reason: str = ""

    @property
    def doing(self) -> str:
        """For the heartbeat, and so for `status`; empty: there is no pressure."""
        if self.share >= 1:
            return ""
        return f"{'slowed down' if self.share > 0 else 'waiting'}: {self.reason}"


def pressure(load: Load, settings: SpoolSettings) -> Pressure:
    """The tightest of the limits that there are."""
    found = [Pressure()]
    if load.results is not None and settings.max_backlog:
        words = f"about {load.results:,} results wait to be applied"
        found.append(Pressure(_share(load.results / settings.max_backlog), words))
    if load.bytes is not None and settings.max_backlog_bytes:
        words = f"{load.bytes // 2**20:,} MiB of results wait to be applied"
        found.append(Pressure(_share(load.bytes / settings.max_backlog_bytes), words))
    if load.free_disk is not None and settings.min_free_disk:
        left = load.free_disk / settings.min_free_disk - 1  # 0 at the floor, 1 at twice the floor
        words = f"only {load.free_disk // 2**20:,} MiB of disk are free"
        found.append(Pressure(min(1.0, max(0.0, left)), words))
    return min(found, key=lambda each: each.share)


def _share(used: float) -> float:
    """1 up to half of a limit, 0 at the limit."""
    return min(1.0, max(0.0, (1 - used) / (1 - _FREELY)))
