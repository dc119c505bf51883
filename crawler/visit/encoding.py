"""PURE. The encoding of a page, found as browsers find it: BOM, header, `<meta>`, else windows-1252."""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from io import BytesIO

import webencodings

from crawler.model.content_types import charset_of
from crawler.visit.scanner import scan

PRESCAN_LENGTH = 1024
LATE_LENGTH = 512 * 1024  # bytes that are searched for a `<meta>`
FALLBACK = "windows-1252"
PIECE = 256 * 1024  # bytes that are decoded at a time

_SPACES = b"\t\n\x0c\r "
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_BE, "utf-16be"), (codecs.BOM_UTF16_LE, "utf-16le"))
_META_CHARSET = re.compile(rb"charset[\t\n\x0c\r ]*=[\t\n\x0c\r ]*", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"<\?xml[^>]*?\bencoding[\t\n\r ]*=[\t\n\r ]*[\"']([A-Za-z][A-Za-z0-9._-]*)[\"']")


def find_encoding(body: bytes, content_type: str | None) -> str:
    """The WHATWG name of the page's encoding, in lower case (`utf-8`, `windows-1252`, `euc-jp`, …)."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return name
    label = charset_of(content_type)
    if label is not None and (named := _name_of(label)) is not None:
        return named
    head = body[:PRESCAN_LENGTH]
    return _xml_declared(head) or prescan(head) or _late_meta(body) or FALLBACK


def decode(body: bytes, encoding: str) -> str:
    """The page as text; invalid bytes become U+FFFD, a BOM is removed. Never raises."""
    for mark, name in _BOMS:
        if name == encoding and body.startswith(mark):
            body = body[len(mark) :]
    if encoding == "utf-8":
        return body.decode("utf-8", "replace")
    if encoding == "replacement":
        return "\N{REPLACEMENT CHARACTER}" if body else ""
    found = webencodings.lookup(encoding)
    if found is None:
        return body.decode("cp1252", "replace")
    text: str = found.codec_info.decode(body, "replace")[0]
    return text


def recoded(body: bytes, encoding: str) -> bytes:
    """The page in UTF-8, as `decode` reads it. In pieces: one character can make a text four times its bytes."""
    found = webencodings.lookup(encoding)
    if len(body) <= PIECE or found is None or encoding in ("utf-8", "replacement"):
        return decode(body, encoding).encode("utf-8", "replace")
    for mark, name in _BOMS:
        if name == encoding and body.startswith(mark):
            body = body[len(mark) :]
    decoder = found.codec_info.incrementaldecoder("replace")
    text = BytesIO()
    for start in range(0, len(body), PIECE):
        is_last = start + PIECE >= len(body)
        text.write(decoder.decode(body[start : start + PIECE], is_last).encode("utf-8", "replace"))
    return text.getvalue()


@lru_cache(maxsize=256)
def _name_of(label: str) -> str | None:
    found = webencodings.lookup(label)
    return None if found is None else str(found.name).lower()


def _xml_declared(head: bytes) -> str | None:
    """An XML declaration's encoding, which browsers use where no `<meta>` comes first."""
    if not head.startswith(b"<?xml"):
        return None
    match = _XML_ENCODING.match(head)
    return _usable(match[1]) if match is not None else None


def _usable(label: bytes) -> str | None:
    """The encoding named by a label inside the page. UTF-16 is impossible there: the label was readable."""
    name = _name_of(label.decode("latin-1"))
    if name in ("utf-16le", "utf-16be"):
        return "utf-8"
    return FALLBACK if name == "x-user-defined" else name


def prescan(head: bytes) -> str | None:
    """The encoding that a `<meta>` among the first bytes names: the HTML standard's prescan algorithm."""
    position = 0
    while (position := head.find(b"<", position)) >= 0:
        rest = head[position : position + 5].lower()
        if rest.startswith(b"<!--"):
            end = head.find(b"-->", position + 2)
            if end < 0:
                return None
            position = end + 3
        elif rest == b"<meta" and head[position + 5 : position + 6] in (
            b"\t",
            b"\n",
            b"\x0c",
            b"\r",
            b" ",
            b"/",
        ):
            scanner = _Attributes(head, position + 5)
            encoding = _of_meta(dict(scanner.all_first()))
            if encoding is not None:
                return encoding
            position = scanner.position
        elif _is_tag(rest):
            position = _end_of_name(head, position)
            scanner = _Attributes(head, position)
            for _ in scanner.all_first():
                pass
            position = scanner.position
        elif rest[:2] in (b"<!", b"</", b"<?"):
            position = head.find(b">", position)
            if position < 0:
                return None
        else:
            position += 1
    return None


def _late_meta(body: bytes) -> str | None:
    """The encoding of a `<meta>` after the prescan: a browser meets it while parsing and starts over with it."""
    if len(body) <= PRESCAN_LENGTH or _META_CHARSET.search(body, PRESCAN_LENGTH, LATE_LENGTH) is None:
        return None
    # The scanner knows comments, scripts and templates, where a `<meta>` is none.
    for _, _, attributes in scan(body[:LATE_LENGTH], 0, lambda _: None).elements:
        encoding = _of_meta({name.encode(): value.lower().encode() for name, value in attributes.items()})
        if encoding is not None:
            return encoding
    return None


def _is_tag(rest: bytes) -> bool:
    letter = rest[2:3] if rest[1:2] == b"/" else rest[1:2]
    return letter.isalpha() and letter.isascii()


def _end_of_name(head: bytes, position: int) -> int:
    while position < len(head) and head[position] not in b"\t\n\x0c\r >":
        position += 1
    return position


def _of_meta(attributes: dict[bytes, bytes]) -> str | None:
    charset = attributes.get(b"charset")
    if charset is not None:
        return _usable(charset)
    if attributes.get(b"http-equiv") != b"content-type":
        return None
    label = _charset_in(attributes.get(b"content", b""))
    return None if label is None else _usable(label)


def _charset_in(content: bytes) -> bytes | None:
    """The charset in a `content` attribute, as the standard extracts it."""
    match = _META_CHARSET.search(content)
    if match is None:
        return None
    rest = content[match.end() :]
    quote = rest[:1]
    if quote in (b'"', b"'"):
        end = rest.find(quote, 1)
        return rest[1:end] if end > 0 else None
    end = next((i for i, byte in enumerate(rest) if byte in b"\t\n\x0c\r ;"), len(rest))
    return rest[:end] or None


class _Attributes:
    """The standard's "get an attribute" over one tag. `position` ends at the tag's `>` or the input's end."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self.position = position

    def all_first(self) -> list[tuple[bytes, bytes]]:
        """Names and values in lower case, the first of each name; none if the input ends inside the tag."""
        found: dict[bytes, bytes] = {}
        while True:
            attribute = self._next()
            if attribute is None:
                break
            found.setdefault(*attribute)
        return list(found.items()) if self.position < len(self._data) else []

    def _next(self) -> tuple[bytes, bytes] | None:
        data, end = self._data, len(self._data)
        self._skip(b"\t\n\x0c\r /")
        if self.position >= end or data[self.position] == 0x3E:
            return None
        start = self.position
        while self.position < end and not (data[self.position] == 0x3D and self.position > start):
            if data[self.position] in _SPACES:
                name = data[start : self.position].lower()
                self._skip(_SPACES)
                if self.position >= end or data[self.position] != 0x3D:
                    return name, b""
                break
            if data[self.position] in b"/>":
                return data[start : self.position].lower(), b""
            self.position += 1
        else:
            name = data[start : self.position].lower()
        if self.position >= end:
            return None
        self.position += 1
        self._skip(_SPACES)
        return name, self._value()

    def _value(self) -> bytes:
        data, end = self._data, len(self._data)
        if self.position >= end:
            return b""
        quote = data[self.position]
        if quote in b"\"'":
            start = self.position + 1
            close = data.find(bytes((quote,)), start)
            self.position = end if close < 0 else close + 1
            return data[start : self.position - 1].lower()
        start = self.position
        while self.position < end and data[self.position] not in b"\t\n\x0c\r >":
            self.position += 1
        return data[start : self.position].lower()

    def _skip(self, what: bytes) -> None:
        data, end = self._data, len(self._data)
        while self.position < end and data[self.position] in what:
            self.position += 1
