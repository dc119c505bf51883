"""The next page of a list: recorded pages of other suites, and addresses that look like lists and are none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crawler.model.pagination import HINT, label_next, next_pages, number_in, page_beyond
from crawler.model.urls import normalize
from crawler.visit.html import extract
from tests.places import CONFORMANCE


def cases() -> list[Any]:
    path = CONFORMANCE / "pagination_cases.json"
    if not path.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"the conformance cases are not at {CONFORMANCE}"))]
    return [
        pytest.param(case, id=f"{number}-{case['url'][:60]}")
        for number, case in enumerate(json.loads(path.read_bytes()))
    ]


def keys(urls: list[str]) -> list[str]:
    return [normalize(url) for url in urls]


@pytest.mark.parametrize("case", cases())
def test_the_next_page_is_labelled_as_recorded(case: dict[str, Any]) -> None:
    found = next_pages(normalize(case["url"]), keys(case["links"]), keys(case.get("rel_next") or []))
    assert found == keys(case["expect_next"])


# Its neighbours lie under other paths: no linked member agrees with it, and two are asked for.
TOO_LITTLE_EVIDENCE = "amazon.com/Python-Data-Analysis"


@pytest.mark.parametrize("case", cases())
def test_only_recorded_pages_would_be_guessed(case: dict[str, Any]) -> None:
    key, links = normalize(case["url"]), keys(case["links"])
    guess = None if next_pages(key, links, keys(case.get("rel_next") or [])) else page_beyond(key, links)
    expected = [] if TOO_LITTLE_EVIDENCE in key else keys(case["expect_speculate"])
    assert ([normalize(guess)] if guess else []) == expected


@pytest.mark.parametrize("case", cases())
def test_a_link_with_a_number_passes_the_first_look(case: dict[str, Any]) -> None:
    for link in case["links"]:
        if number_in(normalize(link)):
            assert HINT.search(link)


BASE = "https://www.a.test/blog/"


@pytest.mark.parametrize(
    ("key", "hrefs", "rel_next", "expected"),
    [
        ("https://a.test/blog", ["page/2/", "post-1"], [], (BASE + "page/2/", "address")),
        ("https://a.test/blog", ["page/2/", "older"], ["older"], (BASE + "older", "rel")),
        ("https://a.test/blog", ["https://b.test/blog/page/2/"], [], None),
        ("https://a.test/blog", ["page/2/"], ["https://b.test/next"], (BASE + "page/2/", "address")),
        ("https://a.test/blog", ["post-1", "post-2"], [], None),
        ("https://a.test/blog/page/2", ["page/3/", "x"], [], (BASE + "page/3/", "address")),
        ("https://a.test/blog?page=2", ["?page=3", "?page=1", "?page=3&sort=x"], [], (BASE + "?page=3", "address")),
        ("https://a.test/blog", ["http://[", "page/2/"], ["http://["], (BASE + "page/2/", "address")),
    ],
)
def test_the_label_of_a_page_is_found_among_its_raw_hrefs(
    key: str, hrefs: list[str], rel_next: list[str], expected: tuple[str, str] | None
) -> None:
    assert label_next(key, BASE, hrefs, rel_next) == expected


@pytest.mark.parametrize(
    "markup",
    [
        b'<link rel="next" href="/p/2">',
        b"<link rel='prefetch next' href='/p/2'>",
    ],
)
def test_what_the_page_marks_as_next_is_extracted_when_it_is_asked_for(markup: bytes) -> None:
    page = b"<!DOCTYPE html><title>t</title>" + markup + b'<a href="/other">next</a>'
    found = extract(page, "text/html", "https://a.test/", 10, wants_next=True)
    assert found.rel_next == ("/p/2",)
    assert found.hrefs == ("/p/2", "/other")
    assert extract(page, "text/html", "https://a.test/", 10).rel_next == ()
    assert extract(page, "text/html", "https://a.test/", 10).hrefs == ("/p/2", "/other")
