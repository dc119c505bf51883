"""PURE. What a page says, wherever it is: what reading its bytes gives, before an address is put to it.

`crawler.visit.html` makes it of the bytes; with the address that answered it becomes an `Extracted`. It is small and
can be kept (`crawler.visit.reading_note`), so that a page that has not changed need not be read again.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from crawler.model.link_context import LinkContext


class Facts(NamedTuple):
    """What a page says about itself. `canonical` is as written, `heading` is the text of the first `<h1>`.

    `text_hash` is the same for pages that show the same text; None: the page shows none.
    """

    description: str | None = None
    language: str | None = None
    canonical: str | None = None
    heading: str | None = None
    noarchive: bool = False
    text_hash: str | None = None
    simhash: str | None = None  # only if asked for


NO_FACTS = Facts()


class Reading(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What the bytes of a page say. `size` counts them; `base` is as written, None where the page has none.

    The other members are those of `crawler.visit.html.Extracted`; `hrefs` and `contexts` are those of all links,
    `left_out` counts what the scanner left out.
    """

    size: int
    title: str | None
    base: str | None
    hrefs: tuple[str, ...]
    nofollow: bool
    left_out: int
    text: bytes
    contexts: tuple[LinkContext, ...] | None = None
    rel_next: tuple[str, ...] = ()
    numbered: tuple[str, ...] = ()
    facts: Facts = NO_FACTS
