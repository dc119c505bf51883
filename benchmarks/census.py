"""What HTML pages are made of: sizes, links, fragments, titles. Pure; the figures that describe a terrain."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urldefrag, urljoin

from lxml import etree

_HOST = "https://site.test/"  # stands for the page's own host
_GIANT = 2_000  # hrefs; a page with more is counted as a giant


@dataclass(frozen=True, slots=True)
class PageCount:
    """One page, counted. `targets` are distinct addresses without fragments, `outside` those on other hosts.

    `in_page` counts hrefs that are a fragment alone, `with_fragment` all that have one.
    """

    size: int
    tags: int
    hrefs: int
    in_page: int
    with_fragment: int
    targets: int
    outside: int
    title: int


def count_page(path: str, body: bytes) -> PageCount:
    """Count one page. `path` is relative to the site's root and decides where its relative links lead."""
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True)
    root = etree.fromstring(body, parser) if body.strip() else None
    if root is None:
        return PageCount(len(body), 0, 0, 0, 0, 0, 0, 0)
    hrefs = [href for element in root.iter("a") if (href := element.get("href")) is not None]
    title = next((element.text or "" for element in root.iter("title")), "")
    targets = {target for href in hrefs if (target := resolve(path, href)) is not None}
    return PageCount(
        size=len(body),
        tags=body.count(b"<"),
        hrefs=len(hrefs),
        in_page=sum(href.startswith("#") for href in hrefs),
        with_fragment=sum("#" in href for href in hrefs),
        targets=len(targets),
        outside=sum(not target.startswith(_HOST) for target in targets),
        title=len(title.strip()),
    )


def links_within(path: str, body: bytes) -> list[str]:
    """Paths on the same host that a page links to, in the page's order, each once; queries are left out."""
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True)
    root = etree.fromstring(body, parser) if body.strip() else None
    if root is None:
        return []
    found: dict[str, None] = {}
    for element in root.iter("a"):
        target = resolve(path, element.get("href") or "")
        if target is not None and target.startswith(_HOST):
            found[target.removeprefix(_HOST).partition("?")[0]] = None
    return list(found)


def resolve(path: str, href: str) -> str | None:
    """The address that an href leads to, without its fragment; None for an href that is no address."""
    try:
        return urldefrag(urljoin(_HOST + path, href.strip()))[0]
    except ValueError:
        return None


def summarise(pages: Sequence[PageCount]) -> dict[str, Any]:
    """Means, medians, 90th and 99th percentiles and the largest of every count, and the shares of fragments."""
    if not pages:
        return {"pages": 0}
    columns = {name: [asdict(page)[name] for page in pages] for name in PageCount.__slots__}
    hrefs = max(1, sum(columns["hrefs"]))
    return {
        "pages": len(pages),
        "in_page_share": sum(columns["in_page"]) / hrefs,
        "fragment_share": sum(columns["with_fragment"]) / hrefs,
        "giants": sum(page.hrefs > _GIANT for page in pages),
        **{name: _spread(values) for name, values in columns.items()},
    }


def _spread(values: Iterable[int]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "mean": statistics.mean(ordered),
        "median": statistics.median(ordered),
        "p90": ordered[len(ordered) * 9 // 10],
        "p99": ordered[len(ordered) * 99 // 100],
        "most": ordered[-1],
    }
