"""The one-pass extraction against an independent reading of the same pages with parsel's selectors."""

from __future__ import annotations

import pytest
from parsel import Selector

from crawler.demo.sites import HTML
from crawler.demo.terrain import demo_terrain
from crawler.visit.html import extract

_FOREIGN = ("javascript:", "mailto:", "tel:", "data:")


def _pages() -> list[tuple[str, str, bytes]]:
    """(URL, encoding, body) of every HTML page of the demo, as the server would send it."""
    terrain = demo_terrain()
    found = []
    for site in terrain.sites:
        for page in site.pages:
            if page.status == 200 and page.content_type == HTML and page.raw is None:
                answer = terrain.answer(site.host, "GET", page.path)
                found.append((f"https://{site.host}{page.path}", page.encoding, answer.data.split(b"\r\n\r\n", 1)[1]))
    return found


@pytest.mark.parametrize(("url", "encoding", "body"), _pages())
def test_both_readings_find_the_same_links_and_title(url: str, encoding: str, body: bytes) -> None:
    page = Selector(text=body.decode(encoding, "replace"))
    hrefs = [href.strip().partition("#")[0] for href in page.xpath("//a[not(@download)]/@href").getall()]
    wanted = {href for href in hrefs if href and not href.lower().startswith(_FOREIGN)}
    found = extract(body, f"text/html; charset={encoding}", url, 10_000)
    assert wanted <= set(found.hrefs)
    title = page.xpath("string(//title)").get() or ""
    if title.isprintable():  # what is not is taken out: see test_extract.py
        assert (found.title or "") == " ".join(title.split())
