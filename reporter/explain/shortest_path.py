"""A shortest path from a quality entry to a page, found backwards along the depths that the map keeps.

A page at depth d > 0 of an origin has a page before it: one at d - 1 that links to it (a followed link), or one at
d that redirects to it. So the search never leaves shortest paths, needs hardly any memory, and every edge that it
returns is a row of `links`.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from crawler.database.format import LINK_FOLLOWED, LINK_REDIRECT
from crawler.database.reader import MapReader
from crawler.rules.lists import is_below, matches
from reporter.queries import one_page
from reporter.queries.rows import PageRow


class Step(NamedTuple):
    """One page of the path. `via`: reached by `start`, `link` or `redirect`."""

    page: int
    depth: int
    via: str


def shortest_path(reader: MapReader, page: PageRow, origin: int, pattern: str, depth: int) -> list[Step] | None:
    """A path of `depth` followed links from a page inside `pattern` to this one, first to last.

    None if the map no longer has one: the run that found it is over, and pages of the path have been crawled again.
    """
    run = page.seen_run
    steps: list[Step] = []
    here = page
    while True:
        found = _nearest_entry(reader, here, origin, pattern, depth, run)
        if found is None:
            return None
        chain, source = found  # `chain` goes backwards over redirects: here, …, the page that `source` links to
        steps += [Step(number, depth, "redirect") for number in chain[:-1]]
        if source is None:
            steps.append(Step(chain[-1], depth, "start"))
            return steps[::-1]
        steps.append(Step(chain[-1], depth, "link"))
        before = one_page.page_by_id(reader, source)
        if before is None:
            return None
        here = before
        depth -= 1


def _nearest_entry(
    reader: MapReader, page: PageRow, origin: int, pattern: str, depth: int, run: int
) -> tuple[list[int], int | None] | None:
    """Go back over redirects, which cost no depth, to the page where this depth is entered.

    Returns the pages passed, and the page whose link enters it; None for the latter where the path begins.
    """
    came_from: dict[int, int | None] = {page.id: None}
    waiting = deque([page])
    while waiting:
        here = waiting.popleft()
        source = None if depth == 0 else _linked_from(reader, here, origin, depth - 1, run)
        if source is not None or (depth == 0 and _is_inside(pattern, here)):
            return _chain(came_from, here.id, page.id), source
        for number in one_page.redirects_here(reader, here.id):
            if (
                number not in came_from
                and one_page.link_kind(reader, number, here.id, run) == LINK_REDIRECT
                and one_page.depth_of(reader, number, origin) == depth
            ):
                before = one_page.page_by_id(reader, number)
                if before is not None:
                    came_from[number] = here.id
                    waiting.append(before)
    return None


def _is_inside(entry: str, page: PageRow) -> bool:
    """Is the page inside this quality entry, which may be a part of a site?"""
    pattern, slash, path = entry.partition("/")
    return matches(pattern, page.domain) and (not slash or is_below(slash + path.removesuffix("/"), page.url))


def _chain(came_from: dict[int, int | None], entry: int, page: int) -> list[int]:
    """The pages from this one back to the entry."""
    forwards = [entry]
    while (following := came_from[forwards[-1]]) is not None:
        forwards.append(following)
    assert forwards[-1] == page
    return forwards[::-1]


def _linked_from(reader: MapReader, page: PageRow, origin: int, depth: int, run: int) -> int | None:
    """A page at this depth of the origin with a followed link to this one."""
    for number, kind in one_page.linking_pages(reader, page.id, page.domain_id, run, depth):
        if kind == LINK_FOLLOWED and one_page.depth_of(reader, number, origin) == depth:
            return number
    return None
