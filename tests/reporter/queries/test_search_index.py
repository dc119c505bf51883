"""Search over titles and URLs: it finds what a plain search over all rows finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.database.map_errors import NotAMap
from crawler.database.reader import open_map
from reporter.queries.search_index import (
    build_index,
    candidate_pages,
    has_words,
    map_stamp,
    stamp_of,
    words_of,
)
from tests.reporter.terrain import MapBuilder

PAGES = {
    "https://q.test/": "The Tea Almanac",
    "https://q.test/brewing": 'Brewing "with" snow',
    "https://q.test/über": "Über den Tee",
    "https://other.test/Tea-pots": None,
    "https://other.test/x": "AND OR NOT NEAR(tea)",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("search")
    b = MapBuilder(folder / "map.db")
    for url, title in PAGES.items():
        b.page(url, title=title)
    b.save()
    assert build_index(folder / "map.db", folder / "search.db", "one")
    return folder / "map.db", folder / "search.db"


def search(found: tuple[Path, Path], text: str) -> list[str]:
    words, _ = words_of(text)
    if not words:
        return []
    with open_map(found[0]) as reader:
        pages = {page: (url, title) for page, url, title in reader.rows("SELECT id, url, title FROM pages")}
    hits = [pages[page] for page in candidate_pages(found[1], words, 0)]
    return [url for url, title in hits if has_words(words, url, title)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tea", ["https://q.test/", "https://other.test/Tea-pots", "https://other.test/x"]),
        ("TEA almanac", ["https://q.test/"]),
        ("almanac tea", ["https://q.test/"]),
        ("ÜBER", ["https://q.test/über"]),
        ('"with"', ["https://q.test/brewing"]),
        ("near(tea)", ["https://other.test/x"]),
        ("not", ["https://other.test/x"]),
        ("teapot", []),
        ("https://q.test/brew", ["https://q.test/brewing"]),
        ("ea", []),
    ],
)
def test_a_search_finds_pages_with_all_words(found: tuple[Path, Path], text: str, expected: list[str]) -> None:
    assert search(found, text) == expected


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.sampled_from('tea alm"*()^:-.брüßx'), max_size=12))
def test_no_question_fails_and_none_finds_other_pages_than_a_plain_search(found: tuple[Path, Path], text: str) -> None:
    words, _ = words_of(text)
    plain = [url for url, title in PAGES.items() if words and has_words(words, url, title)]
    assert search(found, text) == plain


def test_an_index_names_the_map_that_it_was_made_of(found: tuple[Path, Path], tmp_path: Path) -> None:
    assert stamp_of(found[1]) == "one"
    assert stamp_of(tmp_path / "none.db") is None
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\0 and nothing else")
    assert stamp_of(tmp_path / "broken.db") is None
    with open_map(found[0]) as reader:
        assert map_stamp(reader).startswith("1 2025-01-15T10:30:00Z completed 2025-01-15T14:45:23Z ")


def test_an_index_that_is_not_wanted_any_more_leaves_no_file(found: tuple[Path, Path], tmp_path: Path) -> None:
    assert not build_index(found[0], tmp_path / "search.db", "two", is_wanted=lambda: False)
    assert not (tmp_path / "search.db").exists()


def test_a_broken_index_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "broken.db").write_bytes(b"no database at all, but long enough to be looked at" * 30)
    with pytest.raises(NotAMap):
        list(candidate_pages(tmp_path / "broken.db", ["tea"], 0))


def test_a_question_goes_on_after_a_page(found: tuple[Path, Path]) -> None:
    pages = list(candidate_pages(found[1], ["tea"], 0))
    assert list(candidate_pages(found[1], ["tea"], pages[0])) == pages[1:]
