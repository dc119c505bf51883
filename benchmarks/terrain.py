"""The scaled terrain: hundreds of sites drawn from a seed, the same on every machine.

Pages average 40 KB and 100 links (median 45, with a heavy tail): a menu that is the same on all pages of a site,
links within the site, links to other sites (mostly to the same few), links to pages on stub and blacklisted domains
that nobody visits.
Nothing is kept rendered: a page is a handful of slices of shared bytes, joined when it is asked for.
"""

from __future__ import annotations

import math
import random
from array import array
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from crawler.demo.sites import Answer, Certificate, response

HUB = "hub.bench.test"
QUALITY_SITES = 2  # besides the hub
_NEIGHBOURS = 12  # sites on either side that a site mostly links to
STUB = "*.shelf.test"
BLACKLIST = "*.lantern.test"
MEDIAN_LINKS, MEAN_LINKS = 45, 100
MEAN_BYTES = 40_000
_SPREAD = math.sqrt(2 * math.log(MEAN_LINKS / MEDIAN_LINKS))  # of a log-normal with that median and mean
_MOST_LINKS = 1500
_VOCABULARY = """
    garden paper river lantern moss copper kettle harbour letter island winter orchard ink bridge thread
    cedar window ladder market pebble willow saddle anchor basket candle feather granite hollow ivory juniper
    marble needle oyster pepper quartz ribbon silver timber umber velvet walnut yarrow almond barley clover
    damson
"""
_WORDS = _VOCABULARY.split()


@dataclass(frozen=True, slots=True)
class Shape:
    """What to draw. `giant` gives the first site that many pages; the last `slow` sites think for `slow_delay` s."""

    seed: int = 20_260
    sites: int = 400
    pages: int = 50  # per site
    outside: int = 10  # distinct stub and blacklisted URLs, per page
    giant: int = 0
    slow: int = 0
    slow_delay: float = 1.0

    def sizes(self) -> list[int]:
        sizes = [self.pages] * self.sites
        if self.giant:
            sizes[0] = self.giant
        return sizes


class ScaledTerrain:
    """A terrain for the demo server. It travels as its shape, and is drawn where it arrives, before it is used."""

    certificates = (Certificate(("*.bench.test",)),)

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._drawn: _Drawn | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"shape": self.shape}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.shape = state["shape"]
        self._drawn = _Drawn(self.shape)

    @property
    def drawn(self) -> _Drawn:
        if self._drawn is None:
            self._drawn = _Drawn(self.shape)
        return self._drawn

    def urls(self) -> list[str]:
        """Every page there is, sites interleaved, as a crawl of many domains would meet them."""
        sizes = self.shape.sizes()
        by_turn = [
            f"https://{host_of(site)}{path_of(page)}"
            for page in range(max(sizes))
            for site in range(len(sizes))
            if page < sizes[site]
        ]
        return [f"https://{HUB}{path_of(page)}" for page in range(_hub_pages(self.shape.sites))] + by_turn

    def answer(self, host: str, method: str, target: str) -> Answer:
        return self.drawn.answer(host, method, target)


def host_of(site: int) -> str:
    return f"{_WORDS[site % len(_WORDS)]}-{site}.bench.test"


def path_of(page: int) -> str:
    if page == 0:
        return "/"
    return f"/{_WORDS[page % 7]}/{_WORDS[page * 13 % len(_WORDS)]}-{page}"


def _outside_url(number: int) -> str:
    word = _WORDS[number % len(_WORDS)]
    if number % 4 == 3:
        return f"https://{word}{number % 97}.lantern.test/show/{number}?slot={number % 5}"
    return f"https://{word}{number % 499}.shelf.test/{word}/{number}"


def _hub_pages(sites: int) -> int:
    return max(1, math.ceil(sites / 50))


class _Drawn:
    """The terrain as tables: for each page its menu, its link numbers and its stretch of filler text."""

    def __init__(self, shape: Shape) -> None:
        rng = random.Random(shape.seed)
        self.shape = shape
        sizes = shape.sizes()
        starts = [0, *accumulate(sizes)]
        total = starts[-1]
        self._home = {host_of(site): site for site in range(shape.sites)}
        self._pages = {
            host_of(site): {path_of(page): starts[site] + page for page in range(size)}
            for site, size in enumerate(sizes)
        }
        self._near = [_link(path_of(page), page) for size in sizes for page in range(size)]
        self._far = [
            _link(f"https://{host_of(site)}{path_of(page)}", page)
            for site, size in enumerate(sizes)
            for page in range(size)
        ]
        outside = max(1, shape.outside * total)
        self._outside = [_link(_outside_url(number), number) for number in range(outside)]
        self._filler, self._cuts = _filler(rng)
        self._menus = [
            b"".join([_menu_item(path_of(page)) for page in range(min(size, rng.randint(6, 22)))]) for size in sizes
        ]
        menu_counts = [menu.count(b"<a ") for menu in self._menus]
        self._near_links: list[array[int]] = []
        self._far_links: list[array[int]] = []
        self._outside_links: list[array[int]] = []
        self._stretches: list[tuple[int, int]] = []
        self.links = array("I")  # on each page, its menu included
        self._sizes: dict[int, int] = {}
        for site, (start, end) in enumerate(pairwise(starts)):
            for page in range(start, end):
                wanted = min(_MOST_LINKS, round(rng.lognormvariate(math.log(MEDIAN_LINKS), _SPREAD)))
                count = max(3, wanted - menu_counts[site])
                near = min(max(1, count * 55 // 100), end - start)  # no page twice
                far = max(0, count - near - max(1, count * 12 // 100))
                following = start + (page + 1 - start) % (end - start)  # so that every page can be reached
                self._near_links.append(array("I", [following, *rng.sample(range(start, end), near - 1)]))
                about = range(starts[max(0, site - _NEIGHBOURS)], starts[min(shape.sites, site + _NEIGHBOURS)])
                anywhere = far // 5
                self._far_links.append(
                    array("I", rng.choices(about, k=far - anywhere) + rng.choices(range(total), k=anywhere))
                )
                self._outside_links.append(array("I", rng.choices(range(outside), k=count - near - far)))
                self._stretches.append(self._stretch(rng, count))
                self.links.append(count + menu_counts[site])
        self._hub = self._draw_hub()
        self._robots = {
            method: response(200, b"User-agent: *\nDisallow: /private/\n", "text/plain", with_body=method == "GET")
            for method in ("GET", "HEAD")
        }

    def answer(self, host: str, method: str, target: str) -> Answer:
        if target == "/robots.txt":
            return Answer(self._robots[method])
        if host == HUB:
            body = self._hub.get(target)
            return Answer(_missing(method) if body is None else _head(len(body)) + (body if method == "GET" else b""))
        page = self._pages.get(host, {}).get(target)
        if page is None:
            return Answer(_missing(method))
        site = self._home[host]
        delay = self.shape.slow_delay if site >= self.shape.sites - self.shape.slow else 0.0
        if method == "HEAD" and page in self._sizes:
            return Answer(_head(self._sizes[page]), delay=delay)
        parts = self._parts(site, page, target)
        size = self._sizes[page] = sum(map(len, parts))
        head = _head(size)
        return Answer(head if method == "HEAD" else b"".join([head, *parts]), delay=delay)

    def _parts(self, site: int, page: int, target: str) -> list[bytes]:
        first, last = self._stretches[page]
        return [
            b"<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>Page ",
            target.encode(),
            _HEAD,
            self._menus[site],
            b"</ul></nav><main><article>\n",
            *map(self._near.__getitem__, self._near_links[page]),
            self._filler[first:last],
            *map(self._far.__getitem__, self._far_links[page]),
            *map(self._outside.__getitem__, self._outside_links[page]),
            _FOOT,
        ]

    def _stretch(self, rng: random.Random, count: int) -> tuple[int, int]:
        """A stretch of filler that brings the page to its size: log-normal, 40 KB on average."""
        size = min(400_000.0, rng.lognormvariate(math.log(MEAN_BYTES) - 0.32, 0.8))
        wanted = max(1_500, int(size) - count * 92 - 2_500)
        first = rng.randrange(len(self._cuts) // 2)
        last = bisect_left(self._cuts, self._cuts[first] + wanted)
        return self._cuts[first], self._cuts[min(last, len(self._cuts) - 1)]

    def _draw_hub(self) -> dict[str, bytes]:
        """The curated list that a crawl starts from: every site's home page, and the next page of the list."""
        pages = _hub_pages(self.shape.sites)
        hub = {}
        for page in range(pages):
            links = [
                _link(f"https://{host_of(site)}/", site)
                for site in range(page * 50, min((page + 1) * 50, self.shape.sites))
            ]
            menu = b"".join([_menu_item(path_of(number)) for number in range(pages)])
            hub[path_of(page)] = b"".join(
                [b"<!DOCTYPE html>\n<html><head><title>Hub", _HEAD, menu, b"</ul></nav><main>", *links, _FOOT]
            )
        return hub


_HEAD = (
    b'</title>\n<link rel=stylesheet href="/style.css"><meta name=viewport content="width=device-width">'
    b'<script src="/app.js" defer></script></head>\n<body class="page wide"><header><div class=brand><span>Bench</span>'
    b'</div></header><nav class="menu main"><ul>\n'
)
_FOOT = (
    b'</article></main><footer class="foot"><div class=columns><p>Set in a machine, read by a machine.</p>'
    b'<p><a href="mailto:hub@bench.test">Post</a></p></div></footer></body></html>\n'
)


def _head(size: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n" % size


def _missing(method: str) -> bytes:
    return response(404, b"<!DOCTYPE html><title>Not found</title>", with_body=method != "HEAD")


def _menu_item(path: str) -> bytes:
    return f'<li class="item"><a href="{path}">{path.rpartition("/")[2] or "home"}</a></li>\n'.encode()


def _link(href: str, number: int) -> bytes:
    one, two = _WORDS[number % 43], _WORDS[number * 7 % 41]
    return f'<p>The {one} <a href="{href}">{two} and {one}</a> {two}.</p>\n'.encode()


def _filler(rng: random.Random) -> tuple[bytes, list[int]]:
    """A megabyte of marked-up text, and the places where it may be cut."""
    blocks: list[bytes] = []
    cuts = [0]
    while cuts[-1] < 1_000_000:
        words = rng.choices(_WORDS, k=rng.randint(40, 120))
        middle = len(words) // 2
        block = (
            f'<section class="entry card-{rng.randrange(9)}" id="s{len(blocks)}"><h3>{words[0]} {words[1]}</h3>'
            f'<div class="meta"><span class="by">{words[2]}</span> <time>{rng.randrange(2000)}</time></div>'
            f"<p>{' '.join(words[3:middle])} <em>{words[middle]}</em> {' '.join(words[middle + 1 :])}.</p>"
            f'<ul class="tags"><li>{words[4]}</li><li>{words[5]}</li></ul>'
            f'<img src="/images/{words[6]}.jpg" alt="{words[7]} {words[8]}" width="320" height="200"></section>\n'
        ).encode()
        blocks.append(block)
        cuts.append(cuts[-1] + len(block))
    return b"".join(blocks), cuts
