"""The difference between two maps that no statement can read together: a file and an engine, or two engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from crawler.database.reader import MapReader, open_map
from crawler.model.map_place import MapPlace
from ingest.writing.engine import Difference


class _Page(NamedTuple):
    hash: int
    url: str
    state: str
    depth: int | None


def compare_across(now: MapPlace, before: MapPlace) -> Difference:
    """Memory holds a page of each at a time, and the domains. Raises MapError."""
    states: Counter[tuple[str, str]] = Counter()
    only_before = only_now = depths = 0
    with open_map(before) as old, open_map(now) as new:
        for was, page in _side_by_side(_pages(old), _pages(new)):
            if was is None or page is None:
                only_before += page is None
                only_now += was is None
                continue
            states[was.state, page.state] += was.state != page.state
            depths += was.depth != page.depth
        return Difference(
            only_before,
            only_now,
            _most_first(states),
            depths,
            _most_first(_changed_classes(old, new)),
            new.number("SELECT count(*) FROM frontier"),
        )


def _pages(reader: MapReader) -> Iterator[tuple[int, dict[str, _Page]]]:
    """All pages by hash: engines do not order texts alike."""
    rows = reader.rows("SELECT url_hash, url, state, depth FROM pages ORDER BY url_hash")
    for hash_, found in groupby((_Page(*row) for row in rows), key=lambda page: page.hash):
        yield hash_, {page.url: page for page in found}


def _side_by_side(
    old: Iterator[tuple[int, dict[str, _Page]]], new: Iterator[tuple[int, dict[str, _Page]]]
) -> Iterator[tuple[_Page | None, _Page | None]]:
    was, now = next(old, None), next(new, None)
    while was is not None or now is not None:
        hash_ = min(each[0] for each in (was, now) if each is not None)
        before: dict[str, _Page] = {}
        after: dict[str, _Page] = {}
        if was is not None and was[0] == hash_:
            before, was = was[1], next(old, None)
        if now is not None and now[0] == hash_:
            after, now = now[1], next(new, None)
        for url in before | after:
            yield before.get(url), after.get(url)


def _changed_classes(old: MapReader, new: MapReader) -> Counter[tuple[str, str]]:
    before: dict[str, str] = dict(old.rows("SELECT domain, class FROM domain_states"))
    changed: Counter[tuple[str, str]] = Counter()
    for domain, klass in new.rows("SELECT domain, class FROM domain_states"):
        if domain in before and before[domain] != klass:
            changed[before[domain], klass] += 1
    return changed


def _most_first(changes: Counter[tuple[str, str]]) -> tuple[tuple[str, str, int], ...]:
    found = [(was, now, count) for (was, now), count in changes.items() if count]
    return tuple(sorted(found, key=lambda each: (-each[2], each[0], each[1])))
