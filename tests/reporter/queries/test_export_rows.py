"""The rows of an export pass its filters."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.database.reader import open_map
from reporter.queries.export_rows import ExportRows, Filters
from tests.reporter.terrain import MapBuilder

A, B, C = "https://q.test/a", "https://sub.q.test/b", "https://xq.test/c"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    builder = MapBuilder(tmp_path / "map.db")
    for url, state in ((A, "processed"), (B, "queued"), (C, "queued")):
        builder.page(url, state)
    builder.link(A, B)
    builder.link(A, C)
    return builder.save()


@pytest.mark.parametrize(
    ("filters", "urls", "links"),
    [
        (Filters(), {A, B, C}, 2),
        (Filters(domain="q.test"), {A}, 0),
        (Filters(domain="*.q.test"), {A, B}, 1),
        (Filters(states=("queued",)), {B, C}, 0),
        (Filters(classes=("quality",)), {A}, 0),
        (Filters(depth=0), {A}, 0),
        (Filters(depth=1), {A, B, C}, 2),
        (Filters(run=2), set(), 0),
        (Filters(depth=1, classes=("discovered",), states=("queued",), domain="*.q.test"), {B}, 0),
    ],
)
def test_pages_pass_all_filters_and_links_with_both_ends(
    path: Path, filters: Filters, urls: set[str], links: int
) -> None:
    with open_map(path) as reader:
        rows = ExportRows(reader, filters)
        assert {row[1] for row in rows.pages()} == urls
        assert len(list(rows.links())) == links
        assert sum(1 for _ in rows.pages_of_domains()) == len(urls)
