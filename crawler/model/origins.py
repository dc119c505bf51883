"""PURE. How a page became known. Only a link makes an edge; the other ways are remembered until one turns up."""

from __future__ import annotations

from enum import StrEnum


class Origin(StrEnum):
    """Of several ways the first of these counts, whichever came first."""

    SEED = "seed"
    LINKED = "linked"
    SITEMAP = "sitemap"
    ARCHIVE = "archive"
    SPECULATED = "speculated"
    ORDERED = "ordered"  # a person asked for it

    @property
    def is_linked(self) -> bool:
        """Did the crawl start here, or does a link lead here?"""
        return self in (Origin.SEED, Origin.LINKED)


_ORDER = list(Origin)


def nearer(one: Origin, other: Origin) -> Origin:
    """The one of two origins that counts."""
    return min(one, other, key=_ORDER.index)
