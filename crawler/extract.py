"""HTML bytes to title, base and raw hrefs. One parse, one pass over lxml's tree; bad bytes are data.

What counts as a link: `<a href>` without `download`, `<link rel=canonical>`, and the target of a meta refresh.
Only what can be http or https is kept; `rel=nofollow` on a link is not a reason to drop it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import ada_url
from lxml import etree

from crawler.encoding import decode, find_encoding
from crawler.media import media_type

LONGEST_TITLE = 500
LONGEST_HREF = 64 * 1024

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
# Never shown to anyone: controls (terminal escapes begin with one), direction marks, surrogates, non-characters.
_UNSAFE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e007f]"
)
_DIRECTIVES_WITH_VALUES = frozenset(
    {"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"}
)
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


def extract(
    body: bytes, content_type: str | None, url: str, max_links: int, *, agent: str | None = None
) -> Extracted:
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
    # A parser each time: lxml would otherwise make threads wait for each other.
    parser = etree.HTMLParser(
        encoding="utf-8", huge_tree=True, no_network=True, remove_comments=True, remove_pis=True
    )
    try:
        return etree.fromstring(text.encode("utf-8", "replace"), parser)
    except (etree.LxmlError, ValueError):
        return None


class _Page:
    """What one pass over the tree gathers."""

    def __init__(self, url: str, max_links: int, encoding: str, agent: str | None) -> None:
        self._url = url
        self._max_links = max_links
        self._encoding = encoding
        self._robot_names = {"robots", agent.lower()} if agent else {"robots"}
        self._title: str | None = None
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
                if self._title is None and not _is_in_svg(element):
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
            tokens = {token.strip() for token in content.lower().split(",")}
            self._nofollow = self._nofollow or not tokens.isdisjoint(_NOFOLLOW)


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
    # Enough for any title once its spaces are collapsed, and little enough to be quick about a megabyte of one.
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
