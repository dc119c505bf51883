"""PURE. User-defined fields of a page ([[extract]]), by CSS or XPath. Imported where a rule concerns a page.

A selector of elements gives their text. One that ends in `::text` or `::attr(name)`, or an XPath of text or
attributes, gives what it selects. What cannot be read gives nothing: a page never fails for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from parsel import Selector, SelectorList

from crawler.model.settings import ExtractRule
from crawler.visit.clean_text import cleaned
from crawler.visit.selector_rules import tree_of

MOST_VALUES = 20  # of one field of a page
LONGEST_FIELD = 1000  # characters of one value
_XPATH = ("/", "./", "(")


def is_xpath(selector: str) -> bool:
    return selector.lstrip().startswith(_XPATH)


def field_fault(selector: str) -> str | None:
    """The fault in a selector; None: there is none."""
    try:
        _select(Selector(text="<p>"), selector)
    except (ValueError, SyntaxError, RuntimeError) as problem:
        return str(problem)
    return None


def fields_of(body: bytes, content_type: str | None, rules: Sequence[ExtractRule]) -> dict[str, tuple[str, ...]]:
    """The values of each field, in document order, each once. A field without a value is left out.

    Several rules may have one name: the first that finds something counts.
    """
    page = tree_of(body, content_type)
    found: dict[str, tuple[str, ...]] = {}
    for rule in rules:
        if rule.name not in found and (values := _values(page, rule.selector)):
            found[rule.name] = values
    return found


def _values(page: Selector, selector: str) -> tuple[str, ...]:
    try:
        selected = _select(page, selector)[: MOST_VALUES * 5]
        texts = [_text(one) for one in selected]
    except (ValueError, RuntimeError, SyntaxError):
        return ()
    return tuple(dict.fromkeys(text for text in texts if text))[:MOST_VALUES]


def _select(page: Selector, selector: str) -> SelectorList[Selector]:
    return page.xpath(selector) if is_xpath(selector) else page.css(selector)


def _text(one: Selector) -> str:
    value = one.root if isinstance(one.root, str) else one.xpath("string()").get("")
    return cleaned(value, LONGEST_FIELD)
