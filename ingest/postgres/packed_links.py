"""Links as they lie in `page_links`: a row for all links of a page with the same first run, last run and kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

import orjson

from ingest.writing.engine import LinkSet

Group = tuple[int, int, int]  # first run, last run, kind


def new_lines(found: Iterable[LinkSet], run: int) -> Iterator[str]:
    """The lines of COPY for pages that have had no links before."""
    for source, kind, targets in found:
        yield line_of(source, (run, run, kind), targets)


def packed(rows: Iterable[tuple[int, ...]]) -> Iterator[str]:
    """The same for rows of `links`, page by page: (id, from page, to page, first run, last run, kind)."""
    for source, links in groupby(rows, key=itemgetter(1)):
        groups: dict[Group, list[int]] = {}
        for _, _, target, *group in links:
            groups.setdefault((group[0], group[1], group[2]), []).append(target)
        for group_of, targets in groups.items():
            yield line_of(source, group_of, sorted(targets))


def line_of(source: int, group: Group, targets: list[int]) -> str:
    first, last, kind = group
    numbers = orjson.dumps(targets).decode()[1:-1]
    return f"{source}\t{first}\t{last}\t{kind}\t{{{numbers}}}\n"


def renewed(known: Iterable[tuple[int, list[int]]], kind: int, targets: list[int], run: int) -> dict[Group, list[int]]:
    """The rows of a page whose visit in `run` found these targets: those that change, by their new group.

    `known` is (first run, targets) of the rows that are there. Targets that are found again keep their first run.
    """
    firsts = {target: first for first, known_targets in known for target in known_targets}
    groups: dict[Group, list[int]] = {}
    for target in targets:
        groups.setdefault((firsts.get(target, run), run, kind), []).append(target)
    return groups
