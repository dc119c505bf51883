"""PURE. Depth by relaxation: the new distances of a page when a link to it is followed.

A page's distances to all quality entries are one integer, its *reach*: a field of bits for each origin, holding
`max_depth + 2 - depth`, and 0 where there is no path. Nearer is larger, so the distances over a link and those of the
page are merged by taking the larger of each pair of fields: a handful of operations on two integers, however many
origins there are. Following a million links from pages with dozens of origins each stays cheap.

The top bit of every field is a guard and always 0: it catches the borrow when two fields are compared.

One more field, above those of the origins, counts redirects: a followed link begins again, a redirect is one more, and
of several paths the fewest count. A page that is reached only through more than `MAX_REDIRECTS` redirects in a row is
not visited. Redirects cost no depth, so nothing else would end a walk from one redirect to the next.

Invariants:
- no depth above `max_depth + 1` has a field value: deeper is not recorded;
- `merge` only lowers depths and redirects or adds origins, so relaxation ends, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

NOWHERE = 0  # no followed path leads here
MAX_REDIRECTS = 10  # in a row

# Values of the field of redirects.
_REDIRECT_BITS = 5
_NO_REDIRECT = MAX_REDIRECTS + 2
_TOO_MANY = 1
_REDIRECT_GUARD = 1 << (_REDIRECT_BITS - 1)


class Distances:
    """The arithmetic of reaches for one `max_depth` and one number of origins."""

    def __init__(self, max_depth: int, origins: int) -> None:
        self.max_depth = max_depth
        self._top = max_depth + 2
        self.width = self._top.bit_length() + 1
        self._ones = sum(1 << (index * self.width) for index in range(max(origins, 1)))
        self._depth_guards = self._ones << (self.width - 1)
        self._depth_values = self._depth_guards - self._ones
        self._shift = max(origins, 1) * self.width  # of the field of redirects
        self._depths = (1 << self._shift) - 1
        self._redirect_guard = _REDIRECT_GUARD << self._shift
        self.guards = self._depth_guards | self._redirect_guard
        self.start = _NO_REDIRECT << self._shift  # a page that the crawl starts from: no link leads there, no redirect
        self._values = self._depth_values | (self._redirect_guard - (1 << self._shift))
        self._nearest: dict[int, int | None] = {NOWHERE: None}

    def pack(self, depths: Iterable[tuple[int, int]]) -> int:
        """The reach of (origin, depth) pairs."""
        return sum((self._top - depth) << (origin * self.width) for origin, depth in depths)

    def unpack(self, reach: int) -> Iterator[tuple[int, int]]:
        """The (origin, depth) pairs of a reach, origins ascending."""
        return self.differences(NOWHERE, reach)

    def differences(self, before: int, after: int) -> Iterator[tuple[int, int]]:
        """The (origin, depth) pairs of `after` that `before` does not have. The cost is in the difference."""
        mask = (1 << self.width) - 1
        changed = (before ^ after) & self._depths
        while changed:
            origin = ((changed & -changed).bit_length() - 1) // self.width
            shift = origin * self.width
            value = (after >> shift) & mask
            if value:
                yield origin, self._top - value
            changed &= ~(mask << shift)

    def has_path(self, reach: int, origin: int) -> bool:
        """Does this reach hold a depth for this origin?"""
        return ((reach & self._depths) >> (origin * self.width)) & ((1 << self.width) - 1) != 0

    def vanished(self, before: int, after: int) -> list[int]:
        """Origins that `before` has a path from and `after` has not."""
        return [origin for origin, _ in self.unpack(before) if not self.has_path(after, origin)]

    def nearest(self, reach: int) -> int | None:
        """The least depth over all origins; None where there is no followed path."""
        known = self._nearest.get(reach, -1)
        if known != -1:
            return known
        found = None
        for value in range(self._top, 0, -1):
            if (((reach & self._depths) | self._depth_guards) - value * self._ones) & self._depth_guards:
                found = self._top - value
                break
        if len(self._nearest) > 200_000:  # a cache: it may be emptied at any time
            self._nearest.clear()
        self._nearest[reach] = found
        return found

    def arrival(self, source: int, is_redirect: bool) -> int:
        """The reach that a followed link (one step more) or a redirect (no step) brings from a page with this reach.

        A page at max_depth + 1 for an origin is not crawled for that origin, so its links carry it no further.
        """
        depths, guards = source & self._depths, self._depth_guards
        # A 1 at the foot of every field that holds at least 2.
        deep_enough = (((depths | guards) - 2 * self._ones) & guards) >> (self.width - 1)
        kept = depths & (deep_enough * ((1 << (self.width - 1)) - 1))
        if not kept:
            return NOWHERE
        if not is_redirect:
            return (kept - deep_enough) | self.start
        left = max((source >> self._shift or _NO_REDIRECT) - 1, _TOO_MANY)
        return kept | left << self._shift

    def is_past_redirect_limit(self, reach: int) -> bool:
        """Is a page with this reach reached only through more than `MAX_REDIRECTS` redirects in a row?"""
        return reach >> self._shift == _TOO_MANY

    def parse(self, stored: bytes) -> int:
        """A stored reach. Programs before this one counted no redirects: then none were in a row."""
        reach = int.from_bytes(stored, "little")
        return reach | self.start if reach and not reach >> self._shift else reach

    def merge(self, target: int, arriving: int) -> int:
        """The nearer of the two for every origin."""
        guards = self.guards
        not_less = ((target | guards) - arriving) & guards
        if not_less == guards:
            return target
        depths, redirects = not_less & self._depth_guards, not_less & self._redirect_guard
        keep = depths - (depths >> (self.width - 1)) | redirects - (redirects >> (_REDIRECT_BITS - 1))
        return (target & keep) | (arriving & (self._values ^ keep))


def reach_bytes(reach: int) -> bytearray:
    """A reach as the database stores it: as few bytes as it needs. (sqlite3 adapts bytes, not bytearrays.)"""
    return bytearray(reach.to_bytes((reach.bit_length() + 7) // 8, "little"))
