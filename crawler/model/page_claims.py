"""PURE. The most that one page can claim: the length of a URL, of a base, and of all its links together.

A few kilobytes on the wire can name gigabytes of URLs: a long `<base>` is put in front of every href. So the map and
the memory of every stage grow with the pages that were visited, and each page adds a bounded number of bytes:

- a key that is too long is stored as its beginning, its length and a hash (`cut_key`), and is never visited;
- a base that is too long is no base;
- the addresses of a page's links have at most `MOST_CHARACTERS` together. Links beyond are left out and counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import UNSET, UnsetType

LONGEST_KEY = 16 * 1024  # characters of a key, where [traps] max-url-length is 0
MOST_CHARACTERS = 4 * 1024 * 1024  # 10,000 links of 400 characters each; ordinary pages stay below a twentieth

# A key is ASCII, so no page has a key with this character: a cut key cannot be mistaken for a URL of that text.
_MARK = "…"
_KEPT = 200
_CUT = re.compile(rf"{_MARK}(\d{{1,18}})-[0-9a-f]{{16}}")
_ABSOLUTE = ("https://", "http://")


def longest_key(max_url_length: int) -> int:
    """The longest key that is stored whole, by the setting; 0 turns the setting off, not every limit."""
    return max_url_length or LONGEST_KEY


def cut_key(key: str, hash_: int) -> str:
    """A key that is too long, in a few characters. `hash_` tells apart those that begin alike."""
    return f"{key[:_KEPT]}{_MARK}{len(key)}-{hash_ & 0xFFFF_FFFF_FFFF_FFFF:016x}"


def cut_domain(domain: str, hash_: int) -> str:
    """The domain of a cut key whose host alone is too long to be stored."""
    return domain if len(domain) <= _KEPT - 8 else f"{domain[: _KEPT - 8]}{_MARK}{hash_ & 0xFFFF_FFFF_FFFF_FFFF:016x}"


def whole_length(key: str) -> int | None:
    """The length of the URL that a cut key stands for; None: this key is whole."""
    mark = key.rfind(_MARK)
    found = _CUT.fullmatch(key, mark) if mark >= 0 else None
    return int(found[1]) if found else None


def links_within(base: str, hrefs: Sequence[str]) -> int:
    """The number of hrefs, from the first one on, whose addresses have at most `MOST_CHARACTERS` together."""
    length = len(base)
    if length * len(hrefs) + sum(map(len, hrefs)) <= MOST_CHARACTERS:
        return len(hrefs)
    left = MOST_CHARACTERS
    for count, href in enumerate(hrefs):
        left -= len(href) if href.startswith(_ABSOLUTE) else length + len(href)
        if left < 0:
            return count
    return len(hrefs)


def weight_of(base: str, hrefs: Sequence[str], longest: int, texts: Sequence[str] | UnsetType = UNSET) -> int:
    """Characters of a page's addresses and of their texts, at most: what it costs in memory to apply its result."""
    length = len(base) if len(base) <= longest else 0
    weight = min(length * len(hrefs) + sum(map(len, hrefs)), MOST_CHARACTERS)
    return weight if texts is UNSET else weight + sum(map(len, texts))


__all__ = [
    "LONGEST_KEY",
    "MOST_CHARACTERS",
    "cut_domain",
    "cut_key",
    "links_within",
    "longest_key",
    "weight_of",
    "whole_length",
]
