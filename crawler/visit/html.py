"""HTML bytes to title, base and raw hrefs. One parse, one pass over lxml's tree; bad bytes are data.

A link is an `<a href>` without `download`, a `<link rel=canonical>`, or the target of a meta refresh.
Only what can be http or https is kept; `rel=nofollow` on a link is not a reason to drop it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import ada_url
from lxml import etree

from crawler.visit.content_types import media_type
from crawler.visit.encoding import decode, find_encoding

LONGEST_TITLE = 500
LONGEST_HREF = 64 * 1024
MOST_ATTRIBUTES = 1000  # of one tag; a tag with more is left out
HARMLESS = 64 * 1024  # bytes; in a page this short even a tag that is all attributes takes half a second at most
MOST_TITLES = 8  # that are looked at to find one that is not a picture's

_TAGS = ("a", "title", "base", "link", "meta")
_XML_TAGS = tuple(f"{{*}}{name}" for name in _TAGS)

_OUTSIDE = "".join(map(chr, range(0x21)))  # what the URL standard strips from both ends
_INSIDE = re.compile(r"[\t\n\r]")  # and what it removes anywhere
_FOREIGN = re.compile(r"(?!https?:)[a-z][a-z0-9+.\-]*:", re.IGNORECASE)
_REFRESH = re.compile(
    r"[\t\n\f\r ]*(?:\d+(?:\.[\d.]*)?|\.[\d.]*)(?:[\t\n\f\r ]*[;,]|[\t\n\f\r ])[\t\n\f\r ]*"
    r"(?:url[\t\n\f\r ]*=[\t\n\f\r ]*)?(?:\"([^\"]*)|'([^']*)|(.*))",
    re.IGNORECASE | re.DOTALL,
)
# Never shown to anyone: controls (terminal escapes begin with one), direction marks, surrogates and the like.
_UNSAFE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e007f]"
)
# A tag's attributes as the HTML standard splits them. libxml2 takes time in the square of their number. Nothing here
# is ever tried in a second way, or a page could make this take for ever instead.
_ATTRIBUTE = (
    rb"[\t\n\x0c\r /]*+[^\t\n\x0c\r />][^\t\n\x0c\r />=]*+"
    rb"(?>[\t\n\x0c\r ]*+=[\t\n\x0c\r ]*+(?>\"[^\"]*+\"|'[^']*+'|[^\t\n\x0c\r >\"'][^\t\n\x0c\r >]*+)?+)?+"
)
# A whole tag; the last group is there if it has too many of them. Tags are passed over as wholes, for what looks like
# another one inside would otherwise be counted anew from there.
_TAG = rb"<[a-z][^\t\n\x0c\r />]*+(?:(?>(?:%b){%d})(?:%b)*+[^>]*+>?()|(?:%b)*+)" % (
    _ATTRIBUTE,
    MOST_ATTRIBUTES,
    _ATTRIBUTE,
    _ATTRIBUTE,
)
_WHOLE_TAG = re.compile(_TAG, re.IGNORECASE)
# An attribute takes two bytes at least. So a tag of that many either goes on for long without a `>`, or hides one in
# quotes. Both are quickly looked for, and hardly any page has them; only where one does are its attributes counted.
_LONG_TAG = re.compile(rb"<[A-Za-z][^>]{%d}" % (2 * MOST_ATTRIBUTES - 1))
_HIDDEN_END = re.compile(rb"=[\t\n\x0c\r ]*+(?:\"[^\">]*+>|'[^'>]*+>)")
# What only looks like a tag, being in a comment or a script, is stepped over.
_SKIPPED_OR_TAG = re.compile(
    rb"<!--(?>.*?-->|.*)|<(script|style|textarea|title|xmp|iframe|noframes)(?![a-z0-9-])(?>.*?</\1|.*)|" + _TAG,
    re.IGNORECASE | re.DOTALL,
)
# For a page nested deeper than the parser goes: every tag that holds neither a link nor raw text.
_NESTING = re.compile(
    rb"</?(?!(?:a|title|base|link|meta|script|style|textarea|xmp|iframe|noframes|svg)[\t\n\x0c\r />])[a-z][^>]*+>",
    re.IGNORECASE,
)
_DIRECTIVES_WITH_VALUES = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_NOFOLLOW = frozenset({"nofollow", "none"})


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a page says. `base` is absolute; `hrefs` are as written, stripped, in order, each once.

    `links_cut` counts the links that were left out: beyond the limit, or too long to be one.
    """

    title: str | None
    base: str
    hrefs: tuple[str, ...]
    nofollow: bool
    links_cut: int


def extract(body: bytes, content_type: str | None, url: str, max_links: int, *, agent: str | None = None) -> Extracted:
    """Read a page. `agent` is the crawler's name, for a `<meta>` that speaks to it alone. Never raises."""
    encoding = find_encoding(body, content_type)
    page = _Page(url, max_links, encoding, agent)
    is_xml = media_type(content_type) == "application/xhtml+xml"
    root = (_parse_xml(body) if is_xml else None) if body else None
    if root is not None:
        page.read(root, _XML_TAGS, has_namespaces=True)
    elif (root := _parse_html(body, encoding)) is not None:
        page.read(root, _TAGS, has_namespaces=False)
    return page.extracted()


def _parse_xml(body: bytes) -> Any:
    """XHTML that is well-formed; what is not is better read as HTML. Entities and DTDs stay untouched."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
    )
    try:
        return etree.fromstring(body, parser)
    except (etree.LxmlError, ValueError, LookupError):
        return None


def _parse_html(body: bytes, encoding: str) -> Any:
    if not body.strip():
        return None
    text = decode(body, encoding)
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    data = text.encode("utf-8", "replace")
    if len(data) > HARMLESS and is_overgrown(data):
        data = _SKIPPED_OR_TAG.sub(lambda found: found[0] if found[2] is None else b"", data)
    root, is_too_deep = _tree(data)
    if is_too_deep:
        root, _ = _tree(_NESTING.sub(b"", data))
    return root


def is_overgrown(data: bytes) -> bool:
    """Is there a tag with more attributes than any honest one has?"""
    may_be = _LONG_TAG.search(data) is not None or _HIDDEN_END.search(data) is not None
    return may_be and has_overgrown_tag(data)


def has_overgrown_tag(data: bytes) -> bool:
    return any(found[1] is not None for found in _WHOLE_TAG.finditer(data))


def _tree(data: bytes) -> tuple[Any, bool]:
    """The tree, and whether the parser gave up because it grew too deep."""
    # A parser each time: lxml would otherwise make threads wait for each other.
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(data, parser)
    except (etree.LxmlError, ValueError):
        root = None
    log = parser.error_log
    return root, len(log) > 0 and log[-1].type == etree.ErrorTypes.ERR_RESOURCE_LIMIT


class _Page:
    """What one pass over the tree gathers."""

    def __init__(self, url: str, max_links: int, encoding: str, agent: str | None) -> None:
        self._url = url
        self._max_links = max_links
        self._encoding = encoding
        self._robot_names = {"robots", agent.lower()} if agent else {"robots"}
        self._title: str | None = None
        self._titles = 0
        self._base: str | None = None
        self._found: dict[str, None] = {}
        self._too_long = 0
        self._nofollow = False

    def read(self, root: Any, tags: tuple[str, ...], *, has_namespaces: bool) -> None:
        found = self._found
        for element in root.iter(*tags):
            name = element.tag
            if has_namespaces:
                name = name.rpartition("}")[2]
            if name == "a":
                href = element.get("href")
                # Nearly every href is plain: seen before, or nothing about it needs a second look.
                if href and href not in found and element.get("download") is None:
                    self._add(href)
            elif name == "meta":
                self._meta(element)
            elif name == "link":
                if "canonical" in (element.get("rel") or "").lower().split():
                    self._add(element.get("href") or "")
            elif name == "title":
                if self._title is None and self._titles < MOST_TITLES:
                    self._titles += 1
                    if not _is_in_svg(element):
                        self._title = clean_title("".join(element.itertext()))
            elif self._base is None and (href := element.get("href")) is not None:
                self._base = _resolve_base(href, self._url)

    def extracted(self) -> Extracted:
        hrefs = tuple(self._found)
        cut = max(0, len(hrefs) - self._max_links)
        return Extracted(
            title=self._title or None,
            base=self._base or self._url,
            hrefs=hrefs[: self._max_links] if cut else hrefs,
            nofollow=self._nofollow,
            links_cut=cut + self._too_long,
        )

    def _add(self, href: str) -> None:
        if len(href) > LONGEST_HREF:
            if not _FOREIGN.match(href.lstrip(_OUTSIDE)):  # a long data: URL is no link that was cut
                self._too_long += 1
            return
        href = href.strip(_OUTSIDE)
        if "\n" in href or "\t" in href or "\r" in href:
            href = _INSIDE.sub("", href)
        if not href or href[0] == "#" or _FOREIGN.match(href):
            return
        if not href.isascii():
            href = _in_page_encoding(href, self._encoding)
        self._found[href] = None

    def _meta(self, element: Any) -> None:
        content = element.get("content")
        if not content:
            return
        if (element.get("http-equiv") or "").strip().lower() == "refresh":
            target = refresh_target(content)
            if target is not None:
                self._add(target)
        elif (element.get("name") or "").strip().lower() in self._robot_names:
            tokens = content.lower().replace(",", " ").split()
            self._nofollow = self._nofollow or not _NOFOLLOW.isdisjoint(tokens)


def _is_in_svg(element: Any) -> bool:
    return any(str(above.tag).rpartition("}")[2] == "svg" for above in element.iterancestors())


def _resolve_base(href: str, url: str) -> str:
    """The first `<base href>` decides, even if that means that there is none."""
    try:
        base = ada_url.URL(href[:LONGEST_HREF], base=url)
    except ValueError:
        return url
    return base.href if base.protocol in ("http:", "https:") else url


def _in_page_encoding(href: str, encoding: str) -> str:
    """Escape a query as browsers do: in the page's encoding, not in UTF-8. No surrogates leave here."""
    href = href.encode("utf-8", "replace").decode("utf-8")
    if encoding in ("utf-8", "utf-16le", "utf-16be", "replacement", "x-user-defined"):
        return href
    address, hash_, fragment = href.partition("#")
    path, mark, query = address.partition("?")
    if query.isascii():
        return href
    return f"{path}{mark}{_escape(query, encoding)}{hash_}{fragment}"


def _escape(query: str, encoding: str) -> str:
    escaped = []
    for character in query:
        if character.isascii():
            escaped.append(character)
            continue
        try:
            raw = character.encode(_PYTHON_NAMES.get(encoding, encoding))
            escaped.append("".join(f"%{byte:02X}" for byte in raw))
        except (UnicodeError, LookupError):
            escaped.append(f"%26%23{ord(character)}%3B")
    return "".join(escaped)


_PYTHON_NAMES = {
    "windows-874": "cp874",
    "x-mac-cyrillic": "mac-cyrillic",
    "macintosh": "mac-roman",
    "iso-8859-8-i": "iso-8859-8",
    "euc-kr": "cp949",
    "shift_jis": "cp932",
    "big5": "big5hkscs",
    "gbk": "gb18030",
}


def clean_title(text: str) -> str:
    """A title that is safe on a terminal and in a file: one line, no controls, at most 500 characters."""
    # Enough for any title once its spaces are collapsed, and quick about one of a megabyte.
    words = _UNSAFE.sub("", text[: LONGEST_TITLE * 40]).split()
    return " ".join(words)[:LONGEST_TITLE].rstrip()


def refresh_target(value: str) -> str | None:
    """Where a Refresh header or `<meta http-equiv=refresh>` leads; None: nowhere, or to the page itself."""
    match = _REFRESH.match(value[: LONGEST_HREF + 64])
    if match is None:
        return None
    target = next((group for group in match.groups() if group is not None), "")
    return target.strip(_OUTSIDE) or None


def header_says_nofollow(value: str | None, agent: str | None = None) -> bool:
    """Does an `X-Robots-Tag` ask this crawler, or everyone, to follow no links?

    `otherbot: nofollow, noindex` speaks to `otherbot` alone, up to the next name.
    """
    if not value:
        return False
    ours = agent.lower() if agent else None
    concerns_us = True
    for part in value.lower().split(","):
        name, colon, rest = part.partition(":")
        name = name.strip()
        if colon and name not in _DIRECTIVES_WITH_VALUES:
            concerns_us = name in ("*", "robots") or name == ours
            name = rest.strip()
        if concerns_us and name in _NOFOLLOW:
            return True
    return False
