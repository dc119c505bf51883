"""PURE. A page's HTML as text to read: what stands between tags, a line for each block.

For looking at stored pages without showing a stranger's markup. One pass: every search begins where the last one ended,
so the cost is that of the length, whatever the page is made of.
"""

from __future__ import annotations

import re
from html import unescape

_UNREAD = ("script", "style", "noscript", "template", "svg", "iframe", "object")
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "br",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "option",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "td",
        "th",
        "title",
        "tr",
        "ul",
    ]
)
_NAME = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)")
_BLANKS = re.compile(r"[ \t\r\f\v\u00a0]+")
_LINES = re.compile(r"\s*\n\s*")


def readable_text(html: str, most: int) -> tuple[str, bool]:
    """The text, no longer than `most` characters, and whether something was cut off."""
    pieces: list[str] = []
    length, at, lower = 0, 0, html.lower()
    while at < len(html) and length <= most:
        start = html.find("<", at)
        text = html[at : start if start >= 0 else len(html)]
        pieces.append(text)
        length += len(text)
        if start < 0:
            at = len(html)
            break
        at, is_block = _after_tag(html, lower, start)
        if is_block:
            pieces.append("\n")
        elif at == start + 1:  # no tag begins here
            pieces.append("<")
    joined = _LINES.sub("\n", _BLANKS.sub(" ", unescape("".join(pieces)))).strip()
    return joined[:most], at < len(html) or len(joined) > most


def _after_tag(html: str, lower: str, start: int) -> tuple[int, bool]:
    """The place after the tag that begins here, or after all that it hides; and whether it begins a line."""
    if html.startswith("<!--", start):
        end = html.find("-->", start + 4)
        return (end + 3 if end >= 0 else len(html)), False
    name = _NAME.match(html, start)
    if name is None and not html.startswith(("<!", "<?"), start):
        return start + 1, False
    end = html.find(">", start)
    if end < 0:
        return len(html), False
    word = name[1].lower() if name else ""
    if word in _UNREAD and html[start + 1] != "/":
        close = lower.find(f"</{word}", end)
        if close < 0:
            return len(html), False
        end = html.find(">", close)
        return (end + 1 if end >= 0 else len(html)), False
    return end + 1, word in _BLOCKS
