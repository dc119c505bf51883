"""PURE. Pages that list what a site published in a year or a month, by the addresses of its own pages.

`https://a.test/blog/2023/05/frost` shows two forms, `https://a.test/blog/{year}` and
`https://a.test/blog/{year}/{month}`, and an address in each. `https://a.test/archives/old` shows
`https://a.test/archives`. No other date and no other word is made up.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_DATED = re.compile(r"(https://[^/?#]+(?:/[^/?#]+)*?)/((?:19|20)\d\d)(?:/(0[1-9]|1[0-2]))?(?=[/?]|\Z)")
_NAMED = re.compile(r"https://[^/?#]+/(?:archives?|sitemap)(?=/[^/?])", re.IGNORECASE)
_LONGEST = 2048  # characters of an address that is looked at


class ArchiveAddress(NamedTuple):
    """An address that a site's own page shows, and its form."""

    form: str
    url: str


def archives_shown(wire: str) -> list[ArchiveAddress]:
    """The archives that may lie above this page; it is none of them itself."""
    if len(wire) > _LONGEST or not wire.startswith("https://"):
        return []
    found: list[ArchiveAddress] = []
    named = _NAMED.match(wire)
    if named is not None:
        found.append(ArchiveAddress(named[0], named[0]))
    dated = _DATED.match(wire)
    if dated is not None:
        before, year, month = dated[1], dated[2], dated[3]
        found.append(ArchiveAddress(f"{before}/{{year}}", f"{before}/{year}"))
        if month is not None:
            found.append(ArchiveAddress(f"{before}/{{year}}/{{month}}", f"{before}/{year}/{month}"))
    slash = "/" if wire.endswith("/") else ""
    return [ArchiveAddress(form, url + slash) for form, url in found if url != wire.rstrip("/")]
