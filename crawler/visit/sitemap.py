"""PURE. A sitemap's bytes → the addresses in it. The content decides what it is, never its name or type.

    urlset       sitemaps.org, in any namespace or none; `xhtml:link rel=alternate` names pages too
    index        sitemaps of sitemaps
    feed         RSS and Atom: one address an entry
    text         one address a line
    invalid      none of these

gzip is recognised by its first bytes. XML is read by lxml's pull parser, piece by piece: what was read is dropped from
the tree at once, so memory does not grow with the file. It repairs what it can, follows no entity and no network, and
keeps its own limits on depth and text. A document type is refused, whatever it declares. An entry counts when its end
tag was read: at a truncated end the parser would close what is open, and the address in there may be half of one.

lxml is imported by the first sitemap that is XML: neither a start nor a fetcher without sitemaps pays for it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from crawler.model.urls import UrlError, domain_of, resolve, wire_of
from crawler.visit.gzip_stream import BadEncoding, Gzip, TooCostly

MAX_UNPACKED = 50 * 1024 * 1024  # bytes; sitemaps.org allows no more
MAX_ENTRIES = 50_000  # likewise
MAX_SITEMAPS = 500  # of one domain, in one run
MAX_LEVEL = 3  # of sitemaps named by sitemaps; those of robots.txt are on level 1
LONGEST_ADDRESS = 16_384  # characters
MAX_ATTRIBUTES = 10_000  # in a row
MAX_ELEMENTS = 1_000_000  # of one file, some two seconds; 50 MiB of real ones (with pictures, languages) hold 600,000

_PIECE = 64 * 1024
_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n\x00"
_UTF_16 = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"<\x00", "utf-16-le"), (b"\x00<", "utf-16-be"))
_DECLARATION = re.compile(rb"<\?xml[^>]{0,200}\?>")
_PROLOGUE = re.compile(rb"(?:\s+|<\?(?:[^?]|\?(?!>))*\?>|<!--(?:[^-]|-(?!->))*-->)*")
_LINE = re.compile(r"[^\r\n]+")
_ADDRESS = re.compile(r"https?://[^\s<>\"]+", re.I)
_DATE = re.compile(
    r"(\d{4}(?:-\d\d(?:-\d\d)?)?)"
    r"(?:[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)\s*([Zz]|[+-]\d\d:?\d\d)?)?"
)
_ROOTS = {"urlset": "urlset", "sitemapindex": "index", "rss": "feed", "rdf": "feed", "feed": "feed"}
_ITEMS = frozenset({"url", "sitemap", "item", "entry"})
_DATES = frozenset({"lastmod", "pubdate", "date", "updated", "modified", "published", "issued"})


@dataclass(frozen=True, slots=True)
class Sitemap:
    """What a sitemap names: pages and other sitemaps, each once, as they were written.

    `lastmod`: by address, as precise as it was written, in UTC where it names a zone. `is_cut`: it was longer than is
    read. `error`: why it is `invalid`.
    """

    kind: str
    urls: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()
    lastmod: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False
    error: str | None = None


def read_sitemap(body: bytes, *, most_bytes: int = MAX_UNPACKED, most_entries: int = MAX_ENTRIES) -> Sitemap:
    """Read a sitemap, whatever it holds: no input is an error."""
    reader = _Reader(most_entries)
    size = 0
    is_cut = False
    try:
        for piece in _unpacked(body):
            size += len(piece)
            if size > most_bytes:
                piece = piece[: len(piece) - (size - most_bytes)]
                is_cut = True
            if not reader.feed(piece) or is_cut:
                break
        return reader.finish(is_cut)
    except BadEncoding:
        return Sitemap("invalid", error="its gzip data is broken")
    except TooCostly as problem:
        return Sitemap("invalid", error=str(problem))
    except _Refused as problem:
        return Sitemap("invalid", error=str(problem))


def counts(address: str, sitemap: str, announced_by: str) -> bool:
    """Does an address in the sitemap at the URL `sitemap` count? A sitemap speaks for its own domain, and for the one
    whose robots.txt announced it.
    """
    target = resolve(sitemap, address)
    try:
        return target is not None and domain_of(wire_of(target)) in (domain_of(wire_of(sitemap)), announced_by)
    except UrlError:
        return False


def date_of(text: str) -> str | None:
    """A date of a sitemap or feed as W3C writes it, with as many fields as it had; None: it is none."""
    text = text.strip()
    found = _DATE.fullmatch(text)
    if found is None:
        return _mail_date(text)
    day, time, zone = found.groups()
    if time is None:
        return day if _is_real(day) else None
    if len(day) < 10:
        return None
    if zone is None:
        return f"{day}T{time}" if _is_real(day, time[:5]) else None
    try:
        offset = "+00:00" if zone in "Zz" else f"{zone[:3]}:{zone[-2:]}"
        moment = datetime.fromisoformat(f"{day}T{time[:5]}{offset}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return f"{moment:%Y-%m-%dT%H:%M}{time[5:]}Z" if moment.year > 999 else None


def _is_real(day: str, time: str = "") -> bool:
    """Is there such a day (missing month and day are the first), and such a time?"""
    try:
        datetime.fromisoformat(f"{day}{'-01-01'[len(day) - 4 :]}T{time or '00:00'}")
    except ValueError:
        return False
    return True


def _mail_date(text: str) -> str | None:
    """The date of an RSS entry. One without a zone says nothing: it is the writer's clock."""
    if not 10 < len(text) < 60:
        return None
    try:
        moment = parsedate_to_datetime(text)
        return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z" if moment.tzinfo is not None else None
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _unpacked(body: bytes) -> Iterator[bytes]:
    """The body in pieces; a compressed one as far as it can be read."""
    pieces = (body[start : start + _PIECE] for start in range(0, len(body), _PIECE))
    if body[:2] != b"\x1f\x8b":
        yield from pieces
        return
    stream = Gzip()
    for piece in pieces:
        yield from stream.pieces(piece)


class _Refused(Exception):
    """It is no sitemap that is read. The text says why."""


class _Reader:
    """Takes the first bytes to see what it is, then hands everything on."""

    def __init__(self, most: int) -> None:
        self._found = _Found(most)
        self._head = b""
        self._inner: _Xml | _Text | None = None

    def feed(self, piece: bytes) -> bool:
        """False: no more is wanted."""
        if self._inner is None:
            self._head += piece
            if len(self._head) < _PIECE:
                return True
            self._inner, piece = self._begin()
        return self._inner.feed(piece)

    def _begin(self) -> tuple[_Xml | _Text, bytes]:
        """The reader for what this is, and the bytes for it so far."""
        head, self._head = self._head, b""
        head = head.removeprefix(_BOM).lstrip(_SPACE) if head[:2] != b"\x00<" else head
        for mark, encoding in _UTF_16:
            if head.startswith(mark):
                return _Utf16(encoding, self._found), head
        return (_Xml(self._found) if head.startswith(b"<") else _Text(self._found)), head

    def finish(self, is_cut: bool) -> Sitemap:
        inner, rest = (self._inner, b"") if self._inner is not None else self._begin()
        inner.feed(rest)
        inner.finish()
        return self._found.sitemap(is_cut)


class _Found:
    """Addresses so far."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.kind = "invalid"
        self.error: str | None = "it is neither XML nor a list of addresses"
        self._urls: dict[str, str | None] = {}
        self._sitemaps: dict[str, str | None] = {}
        self.is_full = False

    def add(self, address: str, lastmod: str | None, *, is_sitemap: bool = False) -> bool:
        """Add an address. False: there is no room for more."""
        if not address or len(address) > LONGEST_ADDRESS:
            return True
        into = self._sitemaps if is_sitemap else self._urls
        if address not in into and len(self._urls) + len(self._sitemaps) >= self._most:
            self.is_full = True
            return False
        into[address] = into.get(address) or lastmod
        return True

    def sitemap(self, is_cut: bool) -> Sitemap:
        if self.kind == "invalid":
            return Sitemap("invalid", error=self.error)
        dates = {
            address: date
            for found in (self._urls, self._sitemaps)
            for address, date in found.items()
            if date is not None
        }
        return Sitemap(self.kind, tuple(self._urls), tuple(self._sitemaps), dates, is_cut or self.is_full)


class _Text:
    """One address a line. A text of other lines for the greater part is no sitemap."""

    def __init__(self, found: _Found) -> None:
        self._found = found
        self._rest = b""
        self._good = self._bad = 0

    def feed(self, piece: bytes) -> bool:
        whole, newline, rest = (self._rest + piece).rpartition(b"\n")
        if not newline and len(rest) > 4 * LONGEST_ADDRESS:
            raise _Refused("it is neither XML nor a list of addresses")
        self._rest = rest
        return self._take(whole)

    def finish(self) -> None:
        self._take(self._rest)
        if self._good and self._good >= self._bad:
            self._found.kind = "text"

    def _take(self, data: bytes) -> bool:
        for line in _LINE.finditer(data.decode("utf-8", "replace")):
            text = line[0].strip("\ufeff").strip()
            if not text:
                continue
            if _ADDRESS.fullmatch(text) is None:
                self._bad += 1
                if self._bad > 100 + self._good:
                    raise _Refused("it is neither XML nor a list of addresses")
                continue
            self._good += 1
            if not self._found.add(text, None):
                return False
        return True


class _Xml:
    """XML, by the pull parser. The state is that of the innermost entry."""

    def __init__(self, found: _Found) -> None:
        from lxml import etree

        self._found = found
        self._parser = etree.XMLPullParser(
            events=("start", "end"),
            recover=True,
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            huge_tree=False,
            remove_comments=True,
            remove_pis=True,
        )
        self._error = etree.XMLSyntaxError
        self._has_begun = False
        self._root: Any = None
        self._events = 0
        self._attributes = 0  # that may have been fed since the last event
        self._entry = _Entry()

    def feed(self, piece: bytes) -> bool:
        if not self._has_begun:
            self._has_begun = True
            prologue = _PROLOGUE.match(piece)
            end = prologue.end() if prologue else 0
            if piece[end : end + 9].upper() == b"<!DOCTYPE":
                raise _Refused("it has a document type, which no sitemap needs")
        try:
            self._parser.feed(piece)
            events = list(self._parser.read_events())
        except self._error:  # beyond repair: what was read before counts
            return False
        self._events += len(events)
        # One tag with a million attributes is built whole before its event comes.
        self._attributes = 0 if events else self._attributes + piece.count(b"='") + piece.count(b'="')
        if self._events > 2 * MAX_ELEMENTS or self._attributes > MAX_ATTRIBUTES:
            self._found.is_full = True
            return False
        goes_on = all(self._take(event, element) for event, element in events)
        self._drop_entities()
        return goes_on

    def _drop_entities(self) -> None:
        """Drop all but the last child of every open element: entities are children without an event of their own."""
        here = self._root
        while here is not None and len(here):
            del here[:-1]
            here = here[0]

    def finish(self) -> None:
        """The parser is not closed: it would close the elements that are open, too."""
        if self._root is None:
            self._found.kind, self._found.error = "invalid", "it has no root element"

    def _take(self, event: str, element: Any) -> bool:
        namespace, name = _name(element)
        if event == "start":
            if self._root is None:
                self._begin(element, name)
            elif name in _ITEMS:
                self._entry = _Entry()
            return True
        goes_on = True
        parent = element.getparent()
        if parent is not None:
            if name in _ITEMS:
                goes_on = self._end_entry(name, element)
                self._entry = _Entry()
            elif _name(parent) == (namespace, parent_name := _name(parent)[1]) and parent_name in _ITEMS:
                self._entry.take(name, parent_name, element)
            elif name == "link" and _name(parent)[1] == "url" and element.get("rel") == "alternate":
                self._entry.others.append((element.get("href") or "").strip())
            elif name in _DATES and _name(parent)[1] == "item":  # dc:date
                self._entry.date(element)
        element.clear(keep_tail=True)
        if parent is not None:
            while element.getprevious() is not None:
                del parent[0]
        return goes_on

    def _begin(self, element: Any, name: str) -> None:
        self._root = element
        if element.getroottree().docinfo.internalDTD is not None:
            raise _Refused("it has a document type, which no sitemap needs")
        kind = _ROOTS.get(name)
        if kind is None:
            raise _Refused(f"its root element is {name[:40]!r}")
        self._found.kind, self._found.error = kind, None

    def _end_entry(self, name: str, element: Any) -> bool:
        """Add an entry whose end tag was read. One without `loc` may hold its address as plain text."""
        entry = self._entry
        if not entry.pages and name in ("url", "sitemap"):
            text = _text(element)
            if _ADDRESS.fullmatch(text):
                entry.pages.append((text, None))
        if not entry.pages and entry.guid:
            entry.pages.append((entry.guid, entry.pending))
        goes_on = True
        for address, date in entry.pages:
            goes_on = self._found.add(address, date, is_sitemap=name == "sitemap") and goes_on
        for address in entry.others:
            goes_on = self._found.add(address, None) and goes_on
        return goes_on


class _Utf16(_Xml):
    """XML in UTF-16, handed on as UTF-8 (without the declaration, which would say otherwise)."""

    def __init__(self, encoding: str, found: _Found) -> None:
        super().__init__(found)
        self._decode = codecs.getincrementaldecoder(encoding)("replace").decode
        self._is_first = True

    def feed(self, piece: bytes) -> bool:
        data = self._decode(piece).encode("utf-8", "replace")
        if self._is_first:
            self._is_first = False
            data = _DECLARATION.sub(b"", data.removeprefix(_BOM).lstrip(_SPACE), count=1)
        return super().feed(data)


class _Entry:
    """The parts of one entry that were read: its addresses, each with the date that follows it."""

    def __init__(self) -> None:
        self.pages: list[tuple[str, str | None]] = []
        self.others: list[str] = []
        self.pending: str | None = None  # a date that came before every address
        self.guid = ""

    def take(self, name: str, parent: str, element: Any) -> None:
        if name in ("loc", "link"):
            address = self._address(name, parent, element)
            if address and len(self.pages) < MAX_ENTRIES:
                self.pages.append((address, self.pending))
                self.pending = None
        elif name == "guid":
            text = _text(element)
            self.guid = text if _ADDRESS.fullmatch(text) else ""
        elif name in _DATES:
            self.date(element)

    def _address(self, name: str, parent: str, element: Any) -> str:
        if name == "loc":
            return _text(element) if parent in ("url", "sitemap") else ""
        if self.pages:  # the first one is the entry's own
            return ""
        if parent == "entry":
            return (element.get("href") or "").strip() if element.get("rel", "alternate") == "alternate" else ""
        return _text(element) if parent == "item" else ""

    def date(self, element: Any) -> None:
        date = date_of(_text(element))
        if date is None:
            return
        if not self.pages:
            self.pending = self.pending or date
        elif self.pages[-1][1] is None:
            self.pages[-1] = (self.pages[-1][0], date)


def _name(element: Any) -> tuple[str, str]:
    """(namespace, name in lower case) of an element."""
    tag = element.tag
    if not isinstance(tag, str):  # an entity that nobody declared
        return "", ""
    space, brace, name = tag.rpartition("}")
    return space[1:] if brace else "", name.lower()


def _text(element: Any) -> str:
    """The text of an element; none if there is anything else in it."""
    if len(element):
        return ""
    return (element.text or "").strip().strip("\ufeff\u200b").strip()
