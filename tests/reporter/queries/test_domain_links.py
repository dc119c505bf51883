"""A reader sees the same while a crawl is under way as if all links had been summed up."""

from __future__ import annotations

import sqlite3
from itertools import combinations
from pathlib import Path

import pytest

from crawler.database.reader import open_map
from reporter.queries.domain_links import domain_links, linked_by_quality, links_to_quality, mark_quality
from reporter.queries.one_page import linking_pages, page_by_key
from reporter.queries.overview import domains
from tests.older_maps import TO_FORMAT_2
from tests.reporter.terrain import MapBuilder

Q1, Q2, R1, X1, X2, Y1 = (
    "https://q.test/1",
    "https://q.test/2",
    "https://r.test/1",
    "https://x.test/1",
    "https://x.test/2",
    "https://y.test/1",
)
PAGES = (Q1, Q2, R1, X1, X2, Y1)
LINKS = [(Q1, Q2), (Q1, X1), (Q2, X1), (Q2, X2), (R1, X1), (R1, Y1), (X1, Q1), (X1, R1), (X2, Q2), (X2, Y1), (Y1, R1)]
ORIGINS = ("q.test", "r.test")


def build(path: Path, unsummed: tuple[str, ...]) -> Path:
    b = MapBuilder(path, ORIGINS)
    for page in PAGES:
        b.page(page)
    for source, target in LINKS:
        b.link(source, target)
    return b.save(unsummed=unsummed)


def seen(path: Path) -> dict[str, object]:
    with open_map(path) as reader:
        mark_quality(reader, domains(reader).values())
        target = page_by_key(reader, X1)
        assert target is not None
        return {
            "linked by quality": linked_by_quality(reader),
            "links to quality": links_to_quality(reader),
            "domain links": list(domain_links(reader)),
            "linking pages": sorted(linking_pages(reader, target.id, target.domain_id, 1)),
        }


def test_a_map_with_everything_added_up_is_read_right(tmp_path: Path) -> None:
    q, r, x, y = 1, 2, 3, 4
    assert seen(build(tmp_path / "map.db", ())) == {
        "linked by quality": [(x, 2, 4), (y, 1, 1)],
        "links to quality": [(x, 2, 3), (y, 1, 1)],
        "domain links": [(q, q, 1), (q, x, 3), (r, x, 1), (r, y, 1), (x, q, 2), (x, r, 1), (x, y, 1), (y, r, 1)],
        "linking pages": [(1, 0), (2, 0), (3, 0)],
    }


@pytest.mark.parametrize("count", range(1, len(PAGES) + 1))
def test_links_that_are_not_added_up_yet_count_as_those_that_are(tmp_path: Path, count: int) -> None:
    expected = seen(build(tmp_path / "settled.db", ()))
    for number, unsummed in enumerate(combinations(PAGES, count)):
        assert seen(build(tmp_path / f"{number}.db", unsummed)) == expected, unsummed


def test_a_map_of_the_format_before_is_read_as_it_is(tmp_path: Path) -> None:
    path = build(tmp_path / "map.db", ())
    expected = seen(path)
    with sqlite3.connect(path) as db:
        db.executescript(TO_FORMAT_2)
    db.close()
    assert seen(path) == expected
