"""PURE. HTML bytes to title, base and raw hrefs: one pass of the scanner. Bad bytes are data.

A link is an `<a href>` without `download`, a `<link rel=canonical>` or `<link rel=next>`, or the target of a meta
refresh.
Only what can be http or https is kept; `rel=nofollow` on a link is not a reason to drop it. An address counts once a
page, whatever fragments it is written with; a reference into the page itself is no link.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from dataclasses import dataclass

import ada_url

from crawler.model.content_types import charset_of, media_type
from crawler.model.link_context import LinkContext, merged_rel
from crawler.model.page_claims import LONGEST_KEY, links_within
from crawler.model.pagination import LIST_WORDS
from crawler.visit.clean_text import cleaned
from crawler.visit.encoding import FALLBACK, find_encoding, recoded
from crawler.visit.link_text import link_text
from crawler.visit.page_reading import NO_FACTS, Facts, Reading
from crawler.visit.scanner import LONGEST_ADDRESS, LONGEST_TEXT, Element, Link, Scan, scan
from crawler.visit.simhash import simhash

LONGEST_TITLE = 500  # of descriptions, too
LONGEST_HEADING = 300
LONGEST_HREF = LONGEST_ADDRESS
LONGEST_REL = 512  # of one link
LONGEST_HASHED_TEXT = 1024 * 1024  # bytes of shown text that its hash covers

_OUTSIDE = "".join(map(chr, range(0x21)))  # stripped from both ends by the URL standard
_REFRESH = re.compile(
    r"[\t\n\f\r ]*(?:\d+(?:\.[\d.]*)?|\.[\d.]*)(?:[\t\n\f\r ]*[;,]|[\t\n\f\r ])[\t\n\f\r ]*"
    r"(?:url[\t\n\f\r ]*=[\t\n\f\r ]*)?(?:\"([^\"]*)|'([^']*)|(.*))",
    re.IGNORECASE | re.DOTALL,
)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_DIRECTIVES_WITH_VALUES = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_NOFOLLOW = frozenset({"nofollow", "none"})
_NOARCHIVE = frozenset({"noarchive"})
_BLANKS = b"\t\n\v\f\r "
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8}){0,5}")


@dataclass(frozen=True, slots=True)
class Extracted:
    """The facts of one page. `base` is absolute; `hrefs` are stripped, without fragments, in order, each once.

    `contexts` are what the page says about each of them, if that was asked for; else None.
    `links_cut` counts the addresses that were left out: beyond the limit, or too long to be one. `text` is the
    beginning of the text that is shown, as the scanner gives it (`Scan.text`).
    """

    title: str | None
    base: str
    hrefs: tuple[str, ...]
    nofollow: bool
    links_cut: int
    text: bytes = b""
    contexts: tuple[LinkContext, ...] | None = None
    rel_next: tuple[str, ...] = ()  # addresses that the page itself marks as its next page; only if asked for
    numbered: tuple[str, ...] = ()  # hrefs that may be pages of a list, by their form; only if asked for
    facts: Facts = NO_FACTS


def extract(
    body: bytes,
    content_type: str | None,
    url: str,
    max_links: int,
    *,
    agent: str | None = None,
    longest_base: int = LONGEST_KEY,
    longest_text: int = LONGEST_TEXT,
    has_link_text: bool = False,
    wants_next: bool = False,
    wants_simhash: bool = False,
) -> Extracted:
    """Read a page. `agent` is the crawler's name, for a `<meta>` that speaks to it alone. Never raises.

    A base over `longest_base` is no base. Links beyond what one page can claim are left out (`page_claims`).
    """
    found = read(
        body,
        content_type,
        max_links,
        agent=agent,
        longest_text=longest_text,
        has_link_text=has_link_text,
        wants_next=wants_next,
        wants_simhash=wants_simhash,
    )
    return extracted(found, url, longest_base)


def extracted(page: Reading, url: str, longest_base: int = LONGEST_KEY) -> Extracted:
    """The facts of a page that was read, at the address that answered."""
    base = url if page.base is None else _resolve_base(page.base, url, longest_base)
    kept = links_within(base, page.hrefs)
    return Extracted(
        title=page.title,
        base=base,
        hrefs=page.hrefs[:kept],
        nofollow=page.nofollow,
        links_cut=page.left_out + len(page.hrefs) - kept,
        text=page.text,
        contexts=None if page.contexts is None else page.contexts[:kept],
        rel_next=page.rel_next,
        numbered=page.numbered,
        facts=page.facts,
    )


def read(
    body: bytes,
    content_type: str | None,
    max_links: int,
    *,
    agent: str | None = None,
    longest_text: int = LONGEST_TEXT,
    has_link_text: bool = False,
    wants_next: bool = False,
    wants_simhash: bool = False,
) -> Reading:
    """What a page says, wherever it is. The parameters are those of `extract`. Never raises."""
    is_xml = media_type(content_type) == "application/xhtml+xml"
    encoding = _xml_encoding(body, content_type) if is_xml else find_encoding(body, content_type)
    data = _in_utf8(body, encoding)
    page = scan(
        data,
        max_links,
        refresh_target,
        is_xml=is_xml,
        elements=("meta", "html"),
        longest_text=max(longest_text, LONGEST_HASHED_TEXT),
        has_links=has_link_text,
        list_words=LIST_WORDS if wants_next else None,
    )
    written = hrefs = page.addresses
    if not body.isascii():
        written = [href if href.isascii() else _in_page_encoding(href, encoding) for href in hrefs]
        hrefs = list(dict.fromkeys(written))
    metas = _named_metas(page.elements)
    return Reading(
        size=len(body),
        title=None if page.title is None else cleaned(page.title, LONGEST_TITLE) or None,
        base=page.base,
        hrefs=tuple(hrefs),
        nofollow=_says(_NOFOLLOW, metas, agent),
        left_out=page.left_out,
        text=page.text[:longest_text],
        contexts=_contexts(data, page.links, written, hrefs, is_xml) if has_link_text else None,
        rel_next=tuple(dict.fromkeys([written[number] for number in page.marked])) if page.marked else (),
        numbered=tuple([written[number] for number in page.numbered]) if page.numbered else (),
        facts=_facts(data, page, metas, agent, is_xml=is_xml, wants_simhash=wants_simhash),
    )


def _facts(
    data: bytes, page: Scan, metas: list[tuple[str, str]], agent: str | None, *, is_xml: bool, wants_simhash: bool
) -> Facts:
    shown = page.text[:LONGEST_HASHED_TEXT]
    letters = shown.translate(None, _BLANKS)  # without blanks: markup inside of words does not count
    canonical = None if page.canonical is None else page.canonical.strip(_OUTSIDE)
    heading = link_text(data, *page.heading, is_xml=is_xml, longest=LONGEST_HEADING) if page.heading else None
    return Facts(
        description=cleaned(next((text for name, text in metas if name == "description"), ""), LONGEST_TITLE) or None,
        language=_language(page.elements),
        canonical=canonical if canonical and len(canonical) <= LONGEST_HREF else None,
        heading=heading or None,
        noarchive=_says(_NOARCHIVE, metas, agent),
        text_hash=hashlib.sha256(letters).hexdigest()[:32] if letters else None,
        simhash=simhash(shown.split()) if wants_simhash else None,
    )


def _named_metas(elements: list[Element]) -> list[tuple[str, str]]:
    """(name, content) of each `<meta name>`."""
    return [
        (attributes["name"].strip().lower(), attributes.get("content", ""))
        for _, tag, attributes in elements
        if tag == "meta" and "name" in attributes
    ]


def _language(elements: list[Element]) -> str | None:
    """The `lang` of the first `<html>` that has one, if it is a language tag."""
    for _, tag, attributes in elements:
        if tag == "html":
            return language_of(attributes.get("lang", ""))
    return None


def language_of(text: str) -> str | None:
    """The first language tag of an attribute or a `Content-Language`; None: it is none."""
    found = _LANGUAGE.fullmatch(text.partition(",")[0].strip())
    return found[0] if found else None


def _contexts(
    data: bytes, links: list[Link], written: list[str], hrefs: list[str], is_xml: bool
) -> tuple[LinkContext, ...]:
    """The text and rel of each href. `links` name their addresses by their places in `written`."""
    texts: dict[str, str] = {}
    rels: dict[str, list[str]] = {}
    for number, start, end, rel in links:
        href = written[number]
        if not texts.get(href):
            texts[href] = link_text(data, start, end, is_xml=is_xml)
        rels.setdefault(href, []).append("" if rel is None else cleaned(rel, LONGEST_REL))
    together = {href: merged_rel(found) for href, found in rels.items() if any(found)}
    return tuple([LinkContext(texts.get(href, ""), together.get(href, "")) for href in hrefs])


def _xml_encoding(body: bytes, content_type: str | None) -> str:
    """XML is in UTF-8 unless something says otherwise. Its `<meta>` elements do not count, and do no harm."""
    encoding = find_encoding(body[:1024], content_type)
    if encoding == FALLBACK and charset_of(content_type) is None and b"encoding" not in body[:256]:
        return "utf-8"
    return encoding


def _in_utf8(body: bytes, encoding: str) -> bytes:
    """The page in UTF-8. What is already, or nearly, stays as it is: the scanner replaces single bytes itself."""
    if encoding == "utf-8" or (body.isascii() and encoding in _LIKE_ASCII):
        return body
    return recoded(body, encoding)


def _says(directives: frozenset[str], metas: list[tuple[str, str]], agent: str | None) -> bool:
    """Does a `<meta>` for robots, or for this crawler, hold one of these words?"""
    names = ("robots", agent.lower()) if agent else ("robots",)
    return any(
        name in names and not directives.isdisjoint(content.lower().replace(",", " ").split())
        for name, content in metas
    )


def _resolve_base(href: str, url: str, longest: int) -> str:
    """The first `<base href>` decides, even if that means that there is none. Too long for an address, it is none."""
    if len(href) > LONGEST_HREF:
        return url
    try:
        base = ada_url.URL(href, base=url)
    except ValueError:
        return url
    return base.href if base.protocol in ("http:", "https:") and len(base.href) <= longest else url


def _in_page_encoding(href: str, encoding: str) -> str:
    """Escape a query as browsers do: in the page's encoding, not in UTF-8."""
    if encoding in ("utf-8", "utf-16le", "utf-16be", "replacement", "x-user-defined"):
        return href
    path, mark, query = href.partition("?")
    if query.isascii():
        return href
    return path + mark + _NOT_ASCII.sub(lambda found: _escape(found[0], encoding), query)


def _escape(text: str, encoding: str) -> str:
    """The text's bytes as %XX. A character that the encoding does not have is written as its number."""
    try:
        data = text.encode(_PYTHON_NAMES.get(encoding, encoding), _AS_NUMBER)
    except (UnicodeError, LookupError):
        data = "".join(f"\0{ord(character)}\0" for character in text).encode()
    # Numbers stand between zeros, which no character of the text is encoded with.
    pieces = data.split(b"\0")
    return "".join(
        [f"%26%23{piece.decode()}%3B" if place % 2 else _percent(piece) for place, piece in enumerate(pieces)]
    )


def _percent(data: bytes) -> str:
    return "%" + data.hex("%").upper() if data else ""


def _number_between_zeros(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    missing = error.object[error.start : error.end]
    return "".join(f"\0{ord(character)}\0" for character in missing), error.end


_AS_NUMBER = "sumi-ripple-number-between-zeros"
codecs.register_error(_AS_NUMBER, _number_between_zeros)


# Encodings in which a page of ASCII bytes is the same in UTF-8. Those with escapes are not among them.
_LIKE_ASCII = frozenset(
    name
    for name in [
        "windows-1252",
        "windows-1250",
        "windows-1251",
        "windows-1253",
        "windows-1254",
        "windows-1255",
        "windows-1256",
        "windows-1257",
        "windows-1258",
        "windows-874",
        "iso-8859-2",
        "iso-8859-3",
        "iso-8859-4",
        "iso-8859-5",
        "iso-8859-6",
        "iso-8859-7",
        "iso-8859-8",
        "iso-8859-8-i",
        "iso-8859-10",
        "iso-8859-13",
        "iso-8859-14",
        "iso-8859-15",
        "iso-8859-16",
        "koi8-r",
        "koi8-u",
        "macintosh",
        "x-mac-cyrillic",
        "gbk",
        "gb18030",
        "big5",
        "euc-jp",
        "euc-kr",
        "shift_jis",
    ]
)
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


def refresh_target(value: str) -> str | None:
    """The target of a Refresh header or `<meta http-equiv=refresh>`; None: it names none, or the page itself."""
    match = _REFRESH.match(value[: LONGEST_HREF + 64])
    if match is None:
        return None
    target = next((group for group in match.groups() if group is not None), "")
    return target.strip(_OUTSIDE) or None


def header_says_nofollow(value: str | None, agent: str | None = None) -> bool:
    """Does an `X-Robots-Tag` ask this crawler, or everyone, to follow no links?"""
    return _header_says(_NOFOLLOW, value, agent)


def header_says_noarchive(value: str | None, agent: str | None = None) -> bool:
    """Does an `X-Robots-Tag` ask this crawler, or everyone, to keep no copy?"""
    return _header_says(_NOARCHIVE, value, agent)


def _header_says(directives: frozenset[str], value: str | None, agent: str | None) -> bool:
    """`otherbot: nofollow, noindex` speaks to `otherbot` alone, up to the next name."""
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
        if concerns_us and name in directives:
            return True
    return False
