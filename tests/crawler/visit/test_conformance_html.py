"""The public suites' word on encodings and links; see the README beside the cases for the relation to check."""

from __future__ import annotations

import base64
import json
from typing import Any

import ada_url
import pytest

from crawler.visit.encoding import find_encoding
from crawler.visit.html import extract
from tests.places import CONFORMANCE


def cases(name: str) -> list[Any]:
    path = CONFORMANCE / name
    if not path.exists():
        reason = f"the conformance cases are not at {CONFORMANCE}"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason))]
    return [
        pytest.param(case, id=f"{number}-{case['source'].rpartition('/')[2]}")
        for number, case in enumerate(json.loads(path.read_bytes()))
    ]


@pytest.mark.parametrize("case", cases("charset_sniff_cases.json"))
def test_encodings_are_found_as_html5lib_finds_them(case: dict[str, Any]) -> None:
    assert find_encoding(base64.b64decode(case["html_b64"]), None) == case["encoding"].lower()


def is_promised_by_both(url: str) -> bool:
    """Scrapy drops files by extension and keeps ftp; the specification has neither rule."""
    return url.startswith(("http:", "https:")) and not url.endswith((".jpg", ".png", ".pdf"))


def without_fragment(url: str) -> str:
    return url.partition("#")[0]


@pytest.mark.parametrize("case", cases("link_extract_cases.json"))
def test_links_are_those_that_scrapy_finds(case: dict[str, Any]) -> None:
    body = base64.b64decode(case["html_b64"])
    kind = "application/xhtml+xml" if case["base"].endswith(".xhtml") else "text/html"
    content_type = f"{kind}; charset={case['encoding']}" if case["encoding"] else kind
    page = extract(body, content_type, case["base"], 1000)
    found = [ada_url.join_url(page.base, href) for href in page.hrefs if _is_valid(page.base, href)]
    expected = [url for url in case["links"] if is_promised_by_both(url)]
    areas = {ada_url.join_url(page.base, href) for href in _area_hrefs(body)}
    expected = [url for url in expected if url not in areas]
    if case["options"].get("canonicalize"):
        found = [_sorted_query(url) for url in found]
    # An address counts once here, whatever fragments it is written with.
    assert _unique(url for url in found if is_promised_by_both(url)) == _unique(map(without_fragment, expected))


def _is_valid(base: str, href: str) -> bool:
    try:
        ada_url.URL(href, base=base)
    except ValueError:
        return False
    return True


def _area_hrefs(body: bytes) -> list[str]:
    from lxml import html

    return [str(value) for value in html.fromstring(body).xpath("//area/@href")]


def _sorted_query(url: str) -> str:
    head, mark, query = url.partition("?")
    return head + mark + "&".join(sorted(query.split("&")))


def _unique(urls: Any) -> list[str]:
    return list(dict.fromkeys(urls))
