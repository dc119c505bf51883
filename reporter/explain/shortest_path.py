"""Why is a page as deep as it is? A shortest path, found backwards along the depths that the map keeps.

A page at depth d > 0 of an origin has a page before it: one at d - 1 that links to it (a followed link), or one at
d that redirects to it. So the search never leaves shortest paths, needs no memory worth mentioning, and every edge
it returns is a row of `links`.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from typing import NamedTuple

from crawler.rules.lists import matches
from reporter import queries


class Step(NamedTuple):
    """One page on the way. `via` is how it is reached: `start`, `link` or `redirect`."""

    page: int
    depth: int
    via: str


def shortest_path(
    connection: sqlite3.Connection, page: queries.PageRow, origin: int, pattern: str, depth: int
) -> list[Step] | None:
    """A way of `depth` followed links from a page inside `pattern` to this one, first to last.

    None if the map no longer has one: the run that found it is over, and pages on the way have been walked anew.
    """
    run = page.seen_run
    steps: list[Step] = []
    here = page
    while True:
        found = _nearest_entry(connection, here, origin, pattern, depth, run)
        if found is None:
            return None
        chain, source = found  # `chain` goes backwards over redirects: here, …, the page that `source` links to
        steps += [Step(number, depth, "redirect") for number in chain[:-1]]
        if source is None:
            steps.append(Step(chain[-1], depth, "start"))
            return steps[::-1]
        steps.append(Step(chain[-1], depth, "link"))
        before = queries.page_by_id(connection, source)
        if before is None:
            return None
        here = before
        depth -= 1


def _nearest_entry(
    connection: sqlite3.Connection, page: queries.PageRow, origin: int, pattern: str, depth: int, run: int
) -> tuple[list[int], int | None] | None:
    """Back over redirects, which cost no depth, to where this depth is entered.

    The pages passed, and the page whose link enters it; None for the latter where the way begins.
    """
    came_from: dict[int, int | None] = {page.id: None}
    waiting = deque([page])
    while waiting:
        here = waiting.popleft()
        source = None if depth == 0 else _linked_from(connection, here, origin, depth - 1, run)
        if source is not None or (depth == 0 and matches(pattern, here.domain)):
            return _chain(came_from, here.id, page.id), source
        for number in queries.redirects_here(connection, here.id):
            if (
                number not in came_from
                and queries.link_kind(connection, number, here.id, run) == queries.LINK_REDIRECT
                and queries.depth_of(connection, number, origin) == depth
            ):
                before = queries.page_by_id(connection, number)
                if before is not None:
                    came_from[number] = here.id
                    waiting.append(before)
    return None


def _chain(came_from: dict[int, int | None], entry: int, page: int) -> list[int]:
    """From the page back to the entry."""
    forwards = [entry]
    while (following := came_from[forwards[-1]]) is not None:
        forwards.append(following)
    assert forwards[-1] == page
    return forwards[::-1]


def _linked_from(
    connection: sqlite3.Connection, page: queries.PageRow, origin: int, depth: int, run: int
) -> int | None:
    """A page at this depth of the origin with a followed link to this one."""
    for number, kind in queries.linking_pages(connection, page.id, page.domain_id, run, depth):
        if kind == queries.LINK_FOLLOWED and queries.depth_of(connection, number, origin) == depth:
            return number
    return None
