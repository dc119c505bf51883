"""PURE. Users' signs of garbage that are CSS selectors, asked of a parsed page. Imported where there are some.

A tree costs more than all other work on a page, so pages are parsed only for a config with a selector in it. The parser
is parsel's (lxml): it does without entities, network access and huge trees. What it cannot read matches nothing. It can
take time in the square of a page, so it is given the first megabyte alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from parsel import Selector

from crawler.model.settings import GarbageRule
from crawler.visit.encoding import find_encoding, recoded

LONGEST = 1024 * 1024  # bytes


def fault(selector: str) -> str | None:
    """The fault in a selector; None: there is none."""
    try:
        Selector(text="<p>").css(selector)
    except (ValueError, SyntaxError, RuntimeError) as problem:  # the last two are cssselect's
        return str(problem)
    return None


def tree_of(body: bytes, content_type: str | None) -> Selector:
    """The tree of a page, of its first megabyte."""
    encoding = find_encoding(body, content_type)
    body = body[:LONGEST]
    text = (body if encoding == "utf-8" else recoded(body, encoding)).decode("utf-8", "replace")
    return Selector(text=text.replace("\0", ""), type="html", huge_tree=False)


def matching(body: bytes, content_type: str | None, rules: Sequence[GarbageRule]) -> GarbageRule | None:
    """The first rule whose selector matches an element of the page."""
    page = tree_of(body, content_type)
    return next((rule for rule in rules if page.css(rule.selector)), None)
