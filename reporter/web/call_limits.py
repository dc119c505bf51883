"""Calls a minute, by a moving window. A refused call is not counted, so it does not prolong the wait."""

from __future__ import annotations

import time
from ipaddress import IPv6Address, ip_address
from math import ceil

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from reporter.web.routing import Bucket, Role

A_MINUTE: dict[Bucket, dict[Role, int]] = {
    Bucket.CALLS: {Role.ANONYMOUS: 10, Role.USER: 100, Role.ADMIN: 500},
    Bucket.SEEDS: dict.fromkeys(Role, 10),
    Bucket.SIGN_IN: dict.fromkeys(Role, 10),
    Bucket.WATCH: dict.fromkeys(Role, 120),
    Bucket.FILES: dict.fromkeys(Role, 600),
}
SIGN_INS_OF_AN_ACCOUNT = 5  # tries a minute, from wherever they come


class CallLimits:
    """Kept in memory: a restart forgives."""

    def __init__(self) -> None:
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def refuse(self, bucket: Bucket, role: Role, who: str) -> int | None:
        """Count a call; None: it may pass. Else the seconds after which one may."""
        return self._hit(A_MINUTE[bucket][role], bucket.value, who)

    def refuse_sign_in(self, account: str) -> int | None:
        """Count a try to sign in to this account, known or not."""
        return self._hit(SIGN_INS_OF_AN_ACCOUNT, "account", account)

    def _hit(self, limit: int, bucket: str, who: str) -> int | None:
        item = RateLimitItemPerMinute(limit)
        if self._limiter.hit(item, bucket, who):
            return None
        oldest_ends = self._limiter.get_window_stats(item, bucket, who).reset_time
        return max(1, ceil(oldest_ends - time.time()))


def address_key(address: str) -> str:
    """The address that limits go by: of IPv6 the network that one customer has."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        mapped = found.ipv4_mapped
        return str(mapped) if mapped else f"{int(found) >> 64:x}::/64"
    return str(found)
