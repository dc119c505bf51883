"""Questions about one page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.database.reader import MapReader, open_map
from crawler.model.urls import hash64
from reporter.queries import one_page
from tests.reporter.terrain import FOLLOWED, NOT_FOLLOWED, MapBuilder

PAGES = ("https://q.test/", "https://q.test/near", "https://far.test/")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[MapReader]:
    builder = MapBuilder(tmp_path / "map.db")
    for url in PAGES:
        builder.page(url)
    builder.link(PAGES[0], PAGES[1], FOLLOWED)
    builder.link(PAGES[1], PAGES[2], NOT_FOLLOWED)
    with open_map(builder.save()) as found:
        yield found


def test_a_page_is_found_by_its_key_and_by_its_number(reader: MapReader) -> None:
    for url in PAGES:
        page = one_page.page_by_key(reader, url)
        assert page is not None and page.url == url
        assert one_page.page_by_id(reader, page.id) == page
    assert one_page.page_by_key(reader, "https://q.test/none") is None
    assert one_page.page_by_id(reader, 999) is None


def test_a_key_whose_hash_is_taken_is_found_under_its_next_one(tmp_path: Path) -> None:
    builder = MapBuilder(tmp_path / "map.db")
    builder.page("https://other.test/", url_hash=hash64("https://q.test/"))
    builder.page("https://q.test/", url_hash=hash64("https://q.test/", 1))
    with open_map(builder.save()) as reader:
        page = one_page.page_by_key(reader, "https://q.test/")
    assert page is not None and page.url == "https://q.test/"


def test_links_and_depths_are_found_by_their_packed_ids(reader: MapReader) -> None:
    first, near, far = (page.id for url in PAGES if (page := one_page.page_by_key(reader, url)))
    assert one_page.link_kind(reader, first, near, 1) == FOLLOWED
    assert one_page.link_kind(reader, near, far, 1) == NOT_FOLLOWED
    assert one_page.link_kind(reader, near, far, 2) is None
    assert one_page.link_kind(reader, far, near, 1) is None
    assert one_page.depths_of(reader, near) == [(0, "q.test", 0)]
    assert one_page.depth_of(reader, near, 0) == 0
    assert one_page.depth_of(reader, near, 1) is None
    assert one_page.depths_of(reader, far) == []
