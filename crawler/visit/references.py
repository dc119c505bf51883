"""PURE. Character references (`&amp;`, `&#233;`) in UTF-8 bytes, resolved as the HTML standard does, in linear time."""

from __future__ import annotations

import re
from functools import cache

REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()
_LONGEST_NAME = 31  # `CounterClockwiseContourIntegral`
_LONGEST_BARE_NAME = 6  # of the old names that need no semicolon
_MOST_DIGITS = 7  # of the largest code point in decimal

_REFERENCE = re.compile(rb"&(?:#(?:[xX]([0-9A-Fa-f]++)|([0-9]++));?|([A-Za-z0-9]++)([;=]?))")


def in_attribute(value: bytes) -> bytes:
    """An attribute's value with its references resolved and U+FFFD for NULs.

    A name without its semicolon that goes on with `=` or a letter is left alone: `?a=1&copy=2` is an address.
    """
    if b"&" in value:
        value = _REFERENCE.sub(_resolve_in_attribute, value)
    return value.replace(b"\0", REPLACEMENT)


def in_text(value: bytes) -> bytes:
    """Text with its references resolved and U+FFFD for NULs. Old names count even where letters follow."""
    if b"&" in value:
        value = _REFERENCE.sub(_resolve_in_text, value)
    return value.replace(b"\0", REPLACEMENT)


def _resolve_in_attribute(found: re.Match[bytes]) -> bytes:
    name = found[3]
    if name is None:
        return _character(found)
    if len(name) > _LONGEST_NAME or found[4] == b"=":
        return found[0]
    return _names().get(name + found[4], found[0])


def _resolve_in_text(found: re.Match[bytes]) -> bytes:
    name = found[3]
    if name is None:
        return _character(found)
    if found[4] == b";" and len(name) <= _LONGEST_NAME and (text := _names().get(name + b";")) is not None:
        return text
    for length in range(min(len(name), _LONGEST_BARE_NAME), 1, -1):
        text = _names().get(name[:length])
        if text is not None:
            return text + name[length:] + found[4]
    return found[0]


def _character(found: re.Match[bytes]) -> bytes:
    digits = (found[1] or found[2]).lstrip(b"0")
    if not digits or len(digits) > _MOST_DIGITS:
        return REPLACEMENT
    number = int(digits, 16 if found[1] is not None else 10)
    if 0x80 <= number <= 0x9F:  # written by those who thought in windows-1252
        return bytes([number]).decode("cp1252", "ignore").encode() or chr(number).encode()
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        return REPLACEMENT
    return chr(number).encode()


@cache
def _names() -> dict[bytes, bytes]:
    from html.entities import html5  # only pages with a reference need it

    return {name.encode(): text.encode() for name, text in html5.items()}
