"""PURE. HTML bytes to addresses, title, base and a few elements, in one linear pass without a tree.

`scan` reads tags as the HTML standard's tokenizer does: quotes, duplicate attributes, character references, comments,
CDATA, and elements whose content is text (script with its escapes, style, title, textarea, …). Of the tree it keeps
only the parts that change the reading of links: foreign content (`svg`, `math`, and the places inside of them where
HTML goes on) and `<template>`. Deliberately so:

- Markup counts wherever it is: after `</html>`, in a second `<html>`, misplaced in a table.
- `<noscript>` is read: the crawler runs no scripts. `<noframes>`, `<iframe>`, `<noembed>` hold text, as in browsers.
- Inside of `<template>` is no part of the document, except where `shadowrootmode` puts it on display.
- An element of `svg` or `math` is no title, base, link or meta. An `<a>` in them is a link.
- An unclosed `svg` ends at a tag that cannot be in it. Browsers ask for open elements here, this asks for names alone.

With `is_xml`, tags that end in `/>` have no content, prefixes are passed over (`h:a`), CDATA sections are text, and a
DOCTYPE may hold declarations. Nothing else is XML about it: a page that is not well-formed is read all the same.

There are two implementations with equal results, one compiled from `_scanner.c` where a compiler was found, and
`pure_scanner`. `IMPLEMENTATION` tells which one is in use; with SUMI_RIPPLE_PURE=1 in the environment it is the latter.
CPU and memory grow with the input's length and no faster, whatever it holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crawler.visit import pure_scanner
from crawler.visit.pure_scanner import Element, Link, address_of
from crawler.visit.references import in_attribute, in_text

__all__ = ["IMPLEMENTATION", "LONGEST_ADDRESS", "Element", "Link", "Scan", "address_of", "scan"]

CONTRACT = 5  # what `_scanner.c` must say too: a build left over from other sources is not used
LONGEST_ADDRESS = 64 * 1024  # bytes
LONGEST_VALUE = 80 * 1024  # bytes as written of a title or an attribute; the rest is cut off, which keeps memory small
MOST_ELEMENTS = 10_000  # reported of one page
LONGEST_TEXT = 2048  # bytes of a page's text: enough to tell that there is little of it


def _compiled() -> Any:
    if os.environ.get("SUMI_RIPPLE_PURE"):
        return None
    try:
        from crawler.visit import _scanner
    except ImportError:
        return None
    return _scanner if _scanner.CONTRACT == CONTRACT else None


compiled: Any = _compiled()
IMPLEMENTATION = "python" if compiled is None else "c"


@dataclass(frozen=True, slots=True)
class Scan:
    """The findings of one pass.

    `addresses` are those of `<a href>` without `download`, `<link rel=canonical>`, `<link rel=next>` and refreshes: in
    document order, each once, stripped, without fragments; what can be neither http nor https is left out, and so are
    references to the page itself (`#top`, an empty href). `left_out` counts addresses beyond the limit or too long.
    `title` and `base` are those of the first `<title>` and the first `<base href>`, or None; `canonical` is the href of
    the first `<link rel=canonical>`, or None; `heading` are the offsets of the content of the first `<h1>`, or None.
    `elements` are (offset of
    the tag, name, attributes), for the names asked for. `text` is the beginning of the text that is shown: pieces
    between markup with a blank between them, as written, without titles, scripts, styles, templates and a closed
    `<noscript>`. `links`, if asked for, are (number of the address, offsets of the link's content, its rel or None): of
    each address the first four, in document order. A link's content ends with `</a>`, and where another link begins;
    that of a `<link>` is empty. `numbered` and `marked`, if asked for, are numbers of addresses: those that may be
    pages of a list (`page=2`, `/page/2`, `/page-2.html`, or nothing but a number), and those of every `<link>` or
    `<a>` with rel=next.
    """

    title: str | None
    base: str | None
    addresses: list[str]
    left_out: int
    elements: list[Element]
    text: bytes
    links: list[Link]
    numbered: list[int]
    marked: list[int]
    canonical: str | None
    heading: tuple[int, int] | None


def scan(
    data: bytes,
    most: int,
    refresh: Callable[[str], str | None],
    *,
    is_xml: bool = False,
    elements: tuple[str, ...] = ("meta",),
    longest_text: int = LONGEST_TEXT,
    has_links: bool = False,
    list_words: frozenset[str] | None = None,
) -> Scan:
    """Read a page in UTF-8 (bytes that are not become U+FFFD), keeping `most` addresses.

    `refresh` tells the target in a meta refresh's content, or None. `elements` may name a, area, link, meta and html.
    `list_words` are words for a page, in lower case and without digits at their end; None: lists are not asked for.
    """
    limits = (LONGEST_ADDRESS, LONGEST_VALUE, MOST_ELEMENTS, longest_text)
    if compiled is None:
        found = pure_scanner.scan(data, most, is_xml, elements, refresh, limits, has_links, list_words)
    else:
        found = compiled.scan(data, most, is_xml, elements, refresh, limits, has_links, list_words, in_attribute)
    title, base, addresses, left_out, reported, text, links, numbered, marked, canonical, heading = found
    if title is not None and is_xml:
        title = title.replace(b"<![CDATA[", b"").replace(b"]]>", b"")
    return Scan(
        title=None if title is None else in_text(title).decode("utf-8", "replace"),
        base=None if base is None else in_attribute(base).decode("utf-8", "replace"),
        addresses=addresses,
        left_out=left_out,
        elements=reported,
        text=text,
        links=links,
        numbered=numbered,
        marked=marked,
        canonical=None if canonical is None else in_attribute(canonical).decode("utf-8", "replace"),
        heading=None if heading[0] < 0 else heading,
    )
