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

    def __init__(self, value: str) -> None:
        # Did the crawl start here, or does a link lead here? (Once a member: it is asked for with every page.)
        self.is_linked = value in ("seed", "linked")


_ORDER = list(Origin)


def nearer(one: Origin, other: Origin) -> Origin:
    """The one of two origins that counts."""
    return min(one, other, key=_ORDER.index)
