"""PURE. Depth by relaxation: what a page's distances become when a link to it is followed.

A page's distances are a *profile*: the set of (origin, depth) over the quality entries that reach it. Crawls have
few different profiles and very many links, so profiles are numbered and every sum is worked out once: relaxing a
link is then one dictionary look-up, and it is nearly always the look-up that says "nothing new".

Invariants:
- a profile holds no depth above `max_depth + 1`; deeper is not recorded;
- `merge` only ever lowers depths or adds origins, so relaxation ends, in whatever order it is done.
"""

from __future__ import annotations

Vector = tuple[tuple[int, int], ...]  # ((origin, depth), …), origins ascending

NOWHERE = 0  # the number of the empty profile: no followed way leads here


class Profiles:
    """Numbers profiles and remembers what becomes of them. `fresh` are those made since it was last emptied."""

    def __init__(self, max_depth: int) -> None:
        self.max_depth = max_depth
        self._vectors: dict[int, Vector] = {NOWHERE: ()}
        self._numbers: dict[Vector, int] = {(): NOWHERE}
        self._nearest: dict[int, int | None] = {NOWHERE: None}
        self._arrivals: dict[tuple[int, bool], int] = {}
        self._merged: dict[tuple[int, int, int], int] = {}
        self.fresh: list[int] = []

    def load(self, number: int, vector: Vector) -> None:
        """Take in a profile that the database already numbers."""
        self._vectors[number] = vector
        self._numbers[vector] = number
        self._nearest[number] = min(depth for _, depth in vector) if vector else None

    def number(self, vector: Vector) -> int:
        """The number of a profile, new ones counted on."""
        found = self._numbers.get(vector)
        if found is None:
            found = len(self._vectors)
            self.load(found, vector)
            self.fresh.append(found)
        return found

    def vector(self, number: int) -> Vector:
        return self._vectors[number]

    def nearest(self, number: int) -> int | None:
        """The least depth of a profile; None where there is no followed way."""
        return self._nearest[number]

    def pinned(self, origins: tuple[int, ...]) -> int:
        """The profile of a page that lies inside these quality entries: depth 0 for each."""
        return self.number(tuple((origin, 0) for origin in sorted(origins)))

    def arrival(self, source: int, is_redirect: bool) -> int:
        """What a followed link (one step more) or a redirect (no step) brings from a page with this profile."""
        key = (source, is_redirect)
        found = self._arrivals.get(key)
        if found is None:
            step = 0 if is_redirect else 1
            # A page at max_depth + 1 for an origin is not crawled on that origin's account, so it leads no further.
            found = self.number(
                tuple((origin, depth + step) for origin, depth in self._vectors[source] if depth <= self.max_depth)
            )
            self._arrivals[key] = found
        return found

    def merge(self, target: int, arriving: int, pin: int) -> int:
        """The target's profile once this has arrived; `pin` is what it has for lying inside quality entries."""
        key = (target, arriving, pin)
        found = self._merged.get(key)
        if found is None:
            best: dict[int, int] = {}
            for part in (target, arriving, pin):
                for origin, depth in self._vectors[part]:
                    if depth < best.get(origin, depth + 1):
                        best[origin] = depth
            found = self.number(tuple(sorted(best.items())))
            if len(self._merged) > 500_000:  # a memory of sums, not a store: it may be forgotten at any time
                self._merged.clear()
            self._merged[key] = found
        return found


def vector_text(vector: Vector) -> str:
    """A profile as the database keeps it: `1:0,4:2`."""
    return ",".join(f"{origin}:{depth}" for origin, depth in vector)


def parse_vector(text: str) -> Vector:
    if not text:
        return ()
    return tuple((int(origin), int(depth)) for origin, _, depth in (part.partition(":") for part in text.split(",")))
