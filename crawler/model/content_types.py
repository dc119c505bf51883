"""PURE. Content-Type headers, read as browsers read them."""

from __future__ import annotations

import re
from functools import lru_cache

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_ESSENCE = re.compile(rf"[\t\n\r ]*({_TOKEN}/{_TOKEN})[\t\n\r ]*(?:;|$)")
_CHARSET = re.compile(r";[\t\n\r ]*charset=(?:\"((?:[^\"\\]|\\.)*)\"?|([^;\t\n\r ]*))", re.IGNORECASE)
_COMMA = re.compile(r",(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)")

# Beginnings that make a page without a type HTML (the list of the MIME Sniffing standard).
_LOOKS_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?[\t\n\x0c\r ]*(?:<!--|<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style"
    rb"|title|b|body|br|p|meta|link)[\t\n\x0c\r />])",
    re.IGNORECASE,
)
_LOOKS_XHTML = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\x0c\r ]*<\?xml\b.*<html[\t\n\x0c\r >]", re.IGNORECASE | re.DOTALL)
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")

SNIFF_LENGTH = 1024
LONGEST = 1024  # characters of a Content-Type that are read


def _parts(content_type: str) -> list[tuple[str, str]]:
    """(essence, whole) of each valid type in a header that may hold several; `*/*` is ignored."""
    pieces = _COMMA.split(content_type) if "," in content_type else [content_type]
    found = []
    for piece in pieces:
        match = _ESSENCE.match(piece)
        if match is not None and match[1] != "*/*":
            found.append((match[1].lower(), piece))
    return found


def media_type(content_type: str | None) -> str | None:
    """`text/html` of `Text/HTML; charset=utf-8`; the last of several; None if there is no valid one."""
    return _essence(content_type[:LONGEST]) if content_type else None


@lru_cache(maxsize=256)  # most answers have one of a few types, and each is looked up several times
def _essence(content_type: str) -> str | None:
    parts = _parts(content_type)
    return parts[-1][0] if parts else None


def charset_of(content_type: str | None) -> str | None:
    """The charset parameter that counts, as written."""
    return _charset(content_type[:LONGEST]) if content_type else None


@lru_cache(maxsize=256)
def _charset(content_type: str) -> str | None:
    charset = None
    essence = None
    for name, whole in _parts(content_type):
        match = _CHARSET.search(whole)
        if match is not None:
            charset = match[2] if match[1] is None else re.sub(r"\\(.)", r"\1", match[1])
        elif name != essence:
            charset = None  # the Fetch standard: a charset carries over only within one type
        essence = name
    return charset or None


def is_html(content_type: str | None, body_prefix: bytes = b"") -> bool:
    """Is this HTML? Without a type, the first bytes decide."""
    kind = media_type(content_type)
    if kind is not None:
        return kind in HTML_TYPES
    prefix = body_prefix[:SNIFF_LENGTH]
    if prefix.startswith(_UTF16_MARKS):
        prefix = prefix.replace(b"\0", b"")[2:]
    return _LOOKS_HTML.match(prefix) is not None or _LOOKS_XHTML.match(prefix) is not None
