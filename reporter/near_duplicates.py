"""PURE. Groups of texts that are nearly the same, by their SimHashes.

Two numbers that differ in three bits at the most have at least one of their four parts in common: only those are
compared. A group is whatever such pairs connect.
"""

from __future__ import annotations

from collections.abc import Iterable

NEAR = 3  # bits, of SimHashes (crawler/visit/simhash.py)
_PARTS = 4
_BITS = 64 // _PARTS
_MOST_COMPARED = 2000  # texts that have one part in common; of more, each is compared with that many


def near_groups(numbers: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Groups of two and more of these (page, SimHash), the largest first; pages in order."""
    pages = sorted(numbers)
    leader = {page: page for page, _ in pages}

    def first(page: int) -> int:
        while leader[page] != page:
            leader[page] = leader[leader[page]]
            page = leader[page]
        return page

    buckets: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for page, number in pages:
        for part in range(_PARTS):
            bucket = buckets.setdefault((part, number >> (part * _BITS) & ((1 << _BITS) - 1)), [])
            for other, known in bucket[-_MOST_COMPARED:]:
                if (number ^ known).bit_count() <= NEAR:
                    one, two = first(page), first(other)
                    leader[max(one, two)] = min(one, two)
            bucket.append((page, number))
    groups: dict[int, list[int]] = {}
    for page, _ in pages:
        groups.setdefault(first(page), []).append(page)
    found = [group for group in groups.values() if len(group) > 1]
    return sorted(found, key=lambda group: (-len(group), group))


def is_near(one: int, other: int) -> bool:
    return (one ^ other).bit_count() <= NEAR
