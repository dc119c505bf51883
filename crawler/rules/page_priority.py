"""PURE. Which of the waiting pages are worth a visit first.

Every page has a level. The first line that fits counts:

    high    a seed or the front page of a domain
    low     a page of a list over several pages; an archive (`/2023`, `/blog/2023/05`, `/archive`)
    high    at most two steps from a quality domain
    low     five steps or more from one
    medium  any other page

The level decides among pages of one depth. With `[crawler] order = "priority"` it decides before the depth does.

A rank is a number: lower goes first. It is stored with every waiting page (`frontier.priority`) and says depth, class
and kind of the page, so that the rank of a page that comes nearer follows from the rank it had.
"""

from __future__ import annotations

import re
from enum import IntEnum

from crawler.model.pagination import number_in

SHALLOW = 2  # the greatest depth that is shallow
DEEP = 5  # the least depth that is deep

_LEVEL_BITS = 32  # where the level is written, if it decides before the depth
KIND_BITS = 3
OUTSIDE = 4  # the bit of pages outside of quality domains
_may_be_listing = re.compile("[0-9]|rchive").search
_ARCHIVE = re.compile(r"/(?:archives?|(?:19|20)\d\d(?:/(?:0?[1-9]|1[0-2]))?)/?(?:\?|\Z)", re.IGNORECASE)


class PageKind(IntEnum):
    """What the address says about a page. The order is that of the levels at any depth."""

    FRONT = 0
    CONTENT = 1
    LISTING = 2


class Level(IntEnum):
    HIGH = 3
    MEDIUM = 2
    LOW = 1


def kind_of(key: str, domain: str, *, is_seed: bool = False) -> PageKind:
    if is_seed or len(key) == len(domain) + 9:  # https:// and a slash
        return PageKind.FRONT
    if _may_be_listing(key, len(domain) + 8) is None:  # nothing after the host
        return PageKind.CONTENT
    return PageKind.LISTING if _ARCHIVE.search(key) or number_in(key) is not None else PageKind.CONTENT


def level_of(kind: PageKind, depth: int) -> Level:
    if kind is PageKind.FRONT:
        return Level.HIGH
    if kind is PageKind.LISTING:
        return Level.LOW
    if depth <= SHALLOW:
        return Level.HIGH
    return Level.LOW if depth >= DEEP else Level.MEDIUM


def rank_of(kind: PageKind, depth: int, *, is_quality: bool, by_level: bool) -> int:
    """The rank: by depth, then class, then kind; `by_level`: by level before all of these."""
    rank = depth << 3 | (0 if is_quality else OUTSIDE) | kind
    return rank | (Level.HIGH - level_of(kind, depth)) << _LEVEL_BITS if by_level else rank
