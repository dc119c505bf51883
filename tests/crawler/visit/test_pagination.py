"""The next page of a list: recorded pages of other suites, and addresses that look like lists and are none."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawler.model.pagination import LIST_WORDS, label_next, next_pages, number_in, page_beyond
from crawler.model.urls import LinkResolver, domain_of, normalize, resolve
from crawler.visit.html import extract
from tests.places import CONFORMANCE

BASE = "https://www.a.test/blog/"


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


def numbered(hrefs: Sequence[str]) -> tuple[str, ...]:
    """Those that a page with these links is found to have."""
    body = "".join(f'<a href="{html.escape(href)}">x</a>' for href in hrefs)
    return extract(body.encode(), "text/html; charset=utf-8", BASE, 10_000, wants_next=True).numbered


@pytest.mark.parametrize("case", cases())
def test_a_link_with_a_number_passes_the_first_look(case: dict[str, Any]) -> None:
    found = numbered(case["links"])
    assert [link for link in case["links"] if number_in(normalize(link)) and link not in found] == []


WORD = st.sampled_from([*sorted(LIST_WORDS), "PAGEN_1", "Page", "article", "x"])
HREF = st.one_of(
    st.tuples(WORD, st.integers(0, 10**8)).map(lambda it: f"/list?a=b&{it[0]}={it[1]}"),
    st.tuples(
        WORD, st.sampled_from(["", "/", "-", "_"]), st.integers(0, 10**8), st.sampled_from(["", "/", ".html"])
    ).map(lambda it: f"/list/{it[0]}{it[1]}{it[2]}{it[3]}"),
)


@settings(max_examples=300, deadline=None)
@given(HREF)
def test_every_address_with_a_number_is_looked_at(href: str) -> None:
    assert number_in(normalize(f"https://a.test{href}")) is None or numbered([href]) == (href,)


PIECE = st.sampled_from(["a", "b.html", "page", "2", "..", ".", "%41", "é", "~x", "c d", ""])
PATH = st.tuples(st.lists(PIECE, min_size=1, max_size=4).map("/".join), st.sampled_from(["", "/", "?page=3"])).map(
    "".join
)
SITE = st.sampled_from(
    ["https://a.test", "https://www.a.test", "http://a.test", "https://a.test:8443", "https://b.test"]
)


@settings(max_examples=500, deadline=None)
@given(SITE, SITE, PATH, PATH)
@example("https://a.test", "https://a.test", "a/a", "")  # the empty href is the page itself
def test_a_marked_page_is_the_one_that_the_link_leads_to(site: str, other: str, path: str, href: str) -> None:
    key, base = normalize(f"{site}/{path}"), resolve("", f"{other}/{path}")
    assert base is not None
    link = LinkResolver().link(base, href)
    expected = None
    if link is not None and link.domain == domain_of(key) and link.key != key:
        expected = (link.wire, "rel")
    assert label_next(key, base, (), [href]) == expected


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
    assert label_next(key, BASE, numbered(hrefs), rel_next) == expected


@pytest.mark.parametrize(
    "markup",
    [
        b'<link rel="next" href="/p/2">',
        b"<link rel='prefetch next' href='/p/2'>",
        b"<a class=older rel=next href='/p/2#top'>Older</a>",
    ],
)
def test_what_the_page_marks_as_next_is_extracted_when_it_is_asked_for(markup: bytes) -> None:
    page = b"<!DOCTYPE html><title>t</title>" + markup + b'<a href="/other">next</a>'
    found = extract(page, "text/html", "https://a.test/", 10, wants_next=True)
    assert found.rel_next == ("/p/2",)
    assert found.hrefs == ("/p/2", "/other")
    assert extract(page, "text/html", "https://a.test/", 10).rel_next == ()
    assert extract(page, "text/html", "https://a.test/", 10).hrefs == ("/p/2", "/other")
