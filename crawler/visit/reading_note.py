"""PURE. A reading as bytes that lie beside the stored page, so that a 304 needs no second look at the page.

A note is a memory and no more: it is used only where reading the page again would give the very same. So it begins with
a print of all that the reading depends on besides the page's bytes: the code that reads, the settings, and the
`Content-Type`. With another print, or anything that does not decode, there is no note, and the page is read.

Not every page has one. A page that shows next to nothing is judged by its markup (`crawler.visit.validation`), and so
is every page where a user's selector or text has to be looked for.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import NamedTuple

import msgspec

from crawler.visit.page_reading import Reading
from crawler.visit.validation import LITTLE, is_judged_by_its_markup

LONGEST_NOTE = 64 * 1024  # bytes; the reading of an ordinary page has one to four thousand
_PRINT = 12  # bytes of each of the two prints

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, Reading]).decode


class NoteKey(NamedTuple):
    """The prints of what a reading depends on: the code and the settings, and the type that the server gives."""

    way: bytes
    type: bytes

    def is_way_of(self, note: bytes) -> bool:
        """Was the note made by the same code and settings? It may be of another type all the same."""
        return note.startswith(self.way)


@lru_cache(maxsize=256)
def key_of(code: bytes, settings: tuple[object, ...], content_type: str) -> NoteKey:
    """The key of readings that were made so. `code` is the print of the code that reads."""
    return NoteKey(_print(code + repr(settings).encode()), _print(content_type.encode("utf-8", "surrogatepass")))


def note_of(page: Reading, key: NoteKey) -> bytes:
    """The note of a page; empty: it cannot have one.

    Of a text that is not short, only its length says anything (`crawler.visit.validation`).
    """
    if is_judged_by_its_markup(page.text, page.hrefs):
        return b""
    shown = len(page.text)
    kept = page if shown < LITTLE else msgspec.structs.replace(page, text=b"")
    try:
        data = _encode((shown, kept))
    except (UnicodeEncodeError, OverflowError):  # a lone surrogate
        return b""
    return key.way + key.type + data if len(data) <= LONGEST_NOTE - 2 * _PRINT else b""


def reading_in(note: bytes, key: NoteKey) -> Reading | None:
    """The reading that a note holds; None: there is none, or it was made in another way."""
    if not note.startswith(key.way + key.type):
        return None
    try:
        shown, page = _decode(memoryview(note)[2 * _PRINT :])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if shown < LITTLE:
        return page if shown == len(page.text) and not is_judged_by_its_markup(page.text, page.hrefs) else None
    return msgspec.structs.replace(page, text=bytes(min(shown, LONGEST_NOTE)))


def _print(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_PRINT).digest()
