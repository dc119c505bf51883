"""A terrain made like documentation, drawn from a seed: for machines that have none, and next to real pages.

The distributions were measured on what five documentation packages of Debian 12 install (`FAMILIES`; Python 3.11,
530 pages; PostgreSQL 15, 1,169; Django 3.2, 692; SQLite 3.40, 766; cppreference, 4,424). All pages of each:

                          Python  PostgreSQL  Django  SQLite    C++
    bytes, mean           95,639      13,790  41,937  28,242  37,278
    bytes, median         54,168       6,876  15,811   7,411  33,675
    bytes, 90 %          219,452      30,350 103,872  27,568  54,781
    bytes, largest     2,565,599     444,862 586,495 1,852,164 333,808
    hrefs, mean              310          22      69     100      93
    hrefs, median            145          12      26      28      83
    of them fragments       86 %        26 %    73 %    37 %     1 %
    fragments alone (#x)    36 %       0.5 %    36 %     6 %     0 %
    targets, mean             43          11      17      29      79
    targets, median           25           7      11      17      72
    targets outside, mean     12           2       3       4       3
    title, mean               60          23      55      30      48
    bytes a tag               24          30      22      48      21
    pages linked from most    12           1       4       8      17

Giant index pages hold most hrefs: Python's has 17,242 hrefs to 418 targets, SQLite's 14,228 to 648. Bytes, targets
and hrefs of a page are drawn log-normal from median and 90 %, hrefs in proportion to bytes; then each family's
giants are put in. Pages near the start page, which a crawl meets first, are larger than the average of all: 60 KB,
213 hrefs and 54 targets in the layout of `benchmarks/sites.py`, where all pages of the five have 43 KB, 119 and 36.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SEED = 20_261
_FRONT = 1.3  # pages near the start, which are those drawn, against all pages of a site, in bytes and targets
_NORMAL_90 = 1.2816  # of the standard normal distribution
_VOCABULARY = """
    value index module table query column object method return string buffer parameter expression type class
    function iterator operator template default error handler signal socket thread process memory pointer row
    schema view trigger cursor commit pattern encoding locale format argument keyword constant header library
"""
_WORDS = tuple(_VOCABULARY.split())


@dataclass(frozen=True, slots=True)
class Giant:
    """A page of very many links."""

    hrefs: int
    targets: int
    size: int


@dataclass(frozen=True, slots=True)
class Family:
    """How the pages of one kind of documentation are made: what was measured, by the names of the table above."""

    name: str
    size: int  # median bytes
    size_90: int
    bytes_per_href: int
    targets: int  # median
    targets_90: int
    in_page: float  # share of hrefs that are a fragment alone
    fragments: float  # share of hrefs that have one
    outside: float  # share of targets
    menu: int
    title: int  # mean characters
    bytes_per_tag: int
    giants: tuple[Giant, ...]


FAMILIES = (
    Family(
        *("script", 54_168, 219_452, 330, 25, 61, 0.36, 0.86, 0.28, 12, 60, 24),
        (Giant(14_000, 300, 1_700_000), Giant(13_962, 489, 2_000_000), Giant(3_795, 321, 316_233)),
    ),
    Family(*("server", 6_876, 30_350, 630, 7, 13, 0.005, 0.26, 0.10, 1, 23, 30), (Giant(3_478, 801, 444_862),)),
    Family(*("frame", 15_811, 103_872, 600, 11, 27, 0.36, 0.73, 0.18, 4, 55, 22), (Giant(4_339, 176, 586_495),)),
    Family(
        *("embedded", 7_411, 27_568, 260, 17, 39, 0.06, 0.37, 0.14, 8, 30, 48),
        (Giant(14_228, 648, 1_033_335), Giant(10_447, 644, 1_852_164), Giant(3_584, 727, 345_756)),
    ),
    Family(*("compiled", 33_675, 54_781, 400, 72, 118, 0.0, 0.01, 0.04, 17, 48, 21), (Giant(2_442, 279, 333_808),)),
)


def write_sites(folder: Path, pages: int, seed: int = SEED) -> list[Path]:
    """Draw one site of each family with that many pages into folders of their own; returns the folders."""
    roots = []
    for family in FAMILIES:
        root = folder / family.name
        for path, body in draw_site(family, pages, seed):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(body)
        roots.append(root.resolve())
    return roots


def draw_site(family: Family, pages: int, seed: int = SEED) -> Iterator[tuple[str, bytes]]:
    """All pages of a site, (path, HTML). The same seed draws the same bytes on every machine."""
    rng = random.Random(f"{seed} {family.name}")
    paths = [path_of(number) for number in range(pages)]
    filler = _filler(rng, family)
    # The first giant stands near the start, where real sites link their index; the start page is a table of contents.
    places = dict(zip((2, pages // 3, 2 * pages // 3), family.giants, strict=False))
    for number, path in enumerate(paths):
        giant = places.get(number)
        if giant is None:
            size = _FRONT * _lognormal(rng, family.size, family.size_90)
            wanted = round(_FRONT * _lognormal(rng, family.targets, family.targets_90))
            giant = Giant(max(family.menu + 2, round(size / family.bytes_per_href)), wanted, round(size))
        if number == 0:
            giant = Giant(max(giant.hrefs, min(pages, 200)), min(pages, 200), giant.size)
        hrefs = _hrefs(rng, family, paths, number, giant)
        yield path, _render(rng, family, path, hrefs, giant.size, filler)


def path_of(number: int) -> str:
    if number == 0:
        return "index.html"
    word = _WORDS[number * 7 % len(_WORDS)]
    return f"{word}-{number}.html" if number < 9 else f"{_WORDS[number % 11]}/{word}-{number}.html"


def _lognormal(rng: random.Random, median: float, ninth: float) -> float:
    """From a log-normal distribution of that median and 90th percentile, the outermost tail cut off."""
    spread = math.log(ninth / median) / _NORMAL_90
    return median * math.exp(spread * max(-2.2, min(2.2, rng.gauss(0.0, 1.0))))


# -- links ---------------------------------------------------------------------------------------------------


def _hrefs(rng: random.Random, family: Family, paths: list[str], number: int, wanted: Giant) -> list[str]:
    """The page's hrefs in order: the site's menu, neighbours, a table of contents, then links in the text."""
    up = "../" if "/" in paths[number] else ""
    following = paths[(number + 1) % len(paths)]
    hrefs = [up + path for path in dict.fromkeys([*paths[: family.menu], following])]
    if number == 0:
        hrefs += paths[: wanted.targets]
    room = max(0, wanted.hrefs - len(hrefs))
    in_page = min(room, _share(rng, family.in_page, wanted.hrefs))
    hrefs += [f"#{_anchor(rng)}" for _ in range(in_page)]
    targets = _targets(rng, family, paths, up, max(1, wanted.targets - family.menu - 1))
    loose = room - in_page
    with_fragment = min(loose, _share(rng, family.fragments - family.in_page, wanted.hrefs))
    text = targets[:loose] + rng.choices(targets, k=max(0, loose - len(targets)))
    rng.shuffle(text)
    return hrefs + [f"{href}#{_anchor(rng)}" for href in text[:with_fragment]] + text[with_fragment:]


def _share(rng: random.Random, share: float, of: int) -> int:
    """A share of a number, rounded up or down by lot, so that small shares of small numbers add up."""
    exact = share * of
    return int(exact) + (rng.random() < exact % 1)


def _targets(rng: random.Random, family: Family, paths: list[str], up: str, count: int) -> list[str]:
    """Addresses that a page links to. A site of few pages has no more than it has; the rest is named by queries."""
    outside = _share(rng, family.outside, count)
    inside = rng.sample(paths, min(len(paths), count - outside))
    found = [up + path for path in inside]
    found += [f"{up}{rng.choice(paths)}?section={extra}" for extra in range(count - outside - len(inside))]
    return found + [
        f"https://{rng.choice(_WORDS)}{rng.randrange(60)}.elsewhere.test/{rng.choice(_WORDS)}/{rng.randrange(9_000)}"
        for _ in range(outside)
    ] or [up + paths[0]]


def _anchor(rng: random.Random) -> str:
    return f"{rng.choice(_WORDS)}.{rng.choice(_WORDS)}_{rng.randrange(400)}"


# -- markup --------------------------------------------------------------------------------------------------


def _render(rng: random.Random, family: Family, path: str, hrefs: list[str], size: int, filler: bytes) -> bytes:
    words = rng.choices(_WORDS, k=12)
    title = (path.rpartition("/")[2] + " - " + " ".join(words))[: max(8, round(rng.gauss(family.title, 8)))]
    head = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<link rel="stylesheet" href="_static/page.css"><script src="_static/page.js"></script></head>\n<body>'
        f'<div class="related" role="navigation"><h3>Navigation</h3><ul>\n'
    ).encode()
    foot = b"</div><footer><p>Drawn from a seed.</p></footer></body></html>\n"
    links = [_link(href, place, family.menu) for place, href in enumerate(hrefs)]
    room = size - len(head) - len(foot) - sum(map(len, links))
    return b"".join([head, *_mix(rng, links, room, filler), foot])


def _link(href: str, place: int, menu: int) -> bytes:
    word = _WORDS[place % len(_WORDS)]
    if place < menu:
        return f'<li class="right"><a href="{href}" accesskey="I">{word}</a> |</li>\n'.encode()
    if href.startswith("#"):
        return f'<a class="headerlink" href="{href}">¶</a>'.encode()
    return f'<a class="reference internal" href="{href}"><code>{word}</code></a>'.encode()


def _mix(rng: random.Random, links: list[bytes], room: int, filler: bytes) -> Iterator[bytes]:
    """The links, with stretches of marked-up text between them that bring the page to its size."""
    if room <= 0:
        yield from links
        return
    every = max(1, len(links) * 600 // room)  # links between two stretches of about 600 bytes
    stretches = -(-len(links) // every)
    written = 0
    for turn in range(stretches):
        yield from links[turn * every : (turn + 1) * every]
        wanted = room * (turn + 1) // stretches
        while written < wanted:
            first = filler.find(b"\n", rng.randrange(len(filler) // 2)) + 1
            last = filler.find(b"\n", min(first + wanted - written, len(filler) - 1)) + 1 or len(filler)
            yield filler[first:last]
            written += last - first


def _filler(rng: random.Random, family: Family) -> bytes:
    """Text with as many tags as the family has, in lines that may be cut apart."""
    lines: list[str] = []
    size = 0
    while size < 400_000:
        words = rng.choices(_WORDS, k=8)
        texts = [f'<span class="{word[:2]}">{word}</span>' for word in words]
        plain = " ".join(rng.choices(_WORDS, k=max(1, 3 * family.bytes_per_tag // 8 - 2)))
        line = f'<p id="{words[0]}-{len(lines)}">{" ".join(texts[:4])} {plain} {" ".join(texts[4:6])}</p>\n'
        lines.append(line)
        size += len(line)
    return "".join(lines).encode()
