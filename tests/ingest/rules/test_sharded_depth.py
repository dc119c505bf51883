"""The way to 10⁹ pages on paper (docs/scale.md): depth over shards that know only their own pages, by messages in any
order, is what a plain breadth-first search over the whole graph finds.
"""

from __future__ import annotations

import random
from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from crawler.model.urls import hash64
from ingest.rules.depth import Distances

MAX_DEPTH = 4


class Shard:
    """The pages of some domains: reaches by page number, links by page number, and no other shard's state."""

    def __init__(self, distances: Distances) -> None:
        self._distances = distances
        self._reach: dict[int, int] = {}
        self._links: dict[int, list[int]] = {}

    def link(self, source: int, target: int) -> list[tuple[int, int]]:
        """A link was found; returns the messages that it makes: (page number, reach over the link)."""
        self._links.setdefault(source, []).append(target)
        reach = self._reach.get(source, 0)
        return [(target, self._distances.arrival(reach, False))] if reach else []

    def receive(self, page: int, reach: int) -> list[tuple[int, int]]:
        """A page is at least so near; returns the messages that follow from that."""
        before = self._reach.get(page, 0)
        after = self._distances.merge(before, reach)
        if after == before:
            return []
        self._reach[page] = after
        onward = self._distances.arrival(after, False)
        return [(target, onward) for target in self._links.get(page, ()) if onward]

    def depths(self) -> dict[int, dict[int, int]]:
        return {page: dict(self._distances.unpack(reach)) for page, reach in self._reach.items()}


def searched(origins: list[list[int]], links: list[tuple[int, int]]) -> dict[int, dict[int, int]]:
    """Breadth-first search from each origin's pages, over the whole graph at once."""
    found: dict[int, dict[int, int]] = {}
    onward: dict[int, list[int]] = {}
    for source, target in links:
        onward.setdefault(source, []).append(target)
    for number, starts in enumerate(origins):
        depth = dict.fromkeys(starts, 0)
        queue = deque(depth)
        while queue:
            page = queue.popleft()
            if depth[page] > MAX_DEPTH:
                continue
            for target in onward.get(page, ()):
                if target not in depth:
                    depth[target] = depth[page] + 1
                    queue.append(target)
        for page, value in depth.items():
            found.setdefault(page, {})[number] = value
    return found


@given(
    links=st.lists(st.tuples(st.integers(0, 25), st.integers(0, 25)), max_size=80),
    origins=st.lists(st.lists(st.integers(0, 25), min_size=1, max_size=3, unique=True), min_size=1, max_size=3),
    shards=st.integers(1, 5),
    order=st.randoms(use_true_random=False),
)
def test_shards_that_only_send_messages_find_the_depths_of_a_search_over_everything(
    links: list[tuple[int, int]], origins: list[list[int]], shards: int, order: random.Random
) -> None:
    """Links are found, and messages arrive, in any order and mixed; it is over when none is left."""

    def number(page: int) -> int:
        return hash64(f"https://site-{page % 7}.test/{page}")  # a page's number comes from its key: no shard counts

    distances = Distances(MAX_DEPTH, len(origins))
    parts = [Shard(distances) for _ in range(shards)]
    home = {number(page): parts[hash64(f"site-{page % 7}.test") % shards] for page in range(26)}
    waiting: list[tuple[str, int, int]] = [("link", number(source), number(target)) for source, target in links]
    for origin, pages in enumerate(origins):
        waiting += [("reach", number(page), distances.start | distances.pack([(origin, 0)])) for page in pages]
    while waiting:
        kind, page, value = waiting.pop(order.randrange(len(waiting)))
        shard = home[page]
        sent = shard.link(page, value) if kind == "link" else shard.receive(page, value)
        waiting += [("reach", target, reach) for target, reach in sent]
    found: dict[int, dict[int, int]] = {}
    for part in parts:
        found |= part.depths()
    numbers = {number(page): page for page in range(26)}
    assert {numbers[page]: depths for page, depths in found.items() if depths} == searched(origins, links)
