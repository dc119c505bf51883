"""A clock for tests of politeness: it stands still until it is moved."""

from __future__ import annotations

from crawler.model.moments import Moment

BOOT, OTHER_BOOT = "0" * 31 + "1", "0" * 31 + "2"
MS = 1_000_000


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, boot: str = BOOT, mono_ms: int = 50_000, wall_ms: int = 1_700_000_000_000) -> None:
        self.now = Moment(boot, mono_ms * MS, wall_ms)

    def __call__(self) -> Moment:
        return self.now

    def pass_ms(self, ms: int) -> None:
        self.now = Moment(self.now.boot, self.now.mono_ns + ms * MS, self.now.wall_ms + ms)

    def reboot(self) -> None:
        """Another boot: the monotonic clock begins near zero, the wall clock goes on."""
        self.now = Moment(f"{int(self.now.boot, 16) + 1:032x}", 10 * MS, self.now.wall_ms)
