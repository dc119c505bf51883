"""PURE. WHATWG URL parsing, by ada: serialise a URL, and join an href to a base.

ada's public Python layer costs twice the parse itself, so the C functions under it are called directly. They are
private names of `ada_url`: where a version lacks them, the public layer does the same work at its own speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ada_url


class Parser(NamedTuple):
    """`href(url)` and `join(base, href)`: the serialised URL, or None where there is none."""

    href: Callable[[str], str | None]
    join: Callable[[bytes, str], str | None]
    is_direct: bool


def direct_parser() -> Parser:
    """The parser on ada's C functions. Raises ImportError or AttributeError where this version has none of them."""
    from ada_url._ada_wrapper import ffi, lib

    parse, parse_with_base = lib.ada_parse, lib.ada_parse_with_base
    get_href, free, unpack = lib.ada_get_href, lib.ada_free, ffi.unpack

    def text_of(handle: Any) -> str | None:
        """The text of a handle, which is freed. The handle of an invalid URL has an empty one."""
        text = get_href(handle)
        length = text.length
        found = unpack(text.data, length).decode() if length else None
        free(handle)
        return found

    def href(url: str) -> str | None:
        try:
            data = url.encode()
        except UnicodeEncodeError:
            data = encoded(url)
        return text_of(parse(data, len(data)))

    def join(base: bytes, href: str) -> str | None:
        try:
            data = href.encode()
        except UnicodeEncodeError:
            data = encoded(href)
        return text_of(parse_with_base(data, len(data), base, len(base)))

    return Parser(href, join, is_direct=True)


def public_parser() -> Parser:
    """The parser on ada's public functions."""

    def href(url: str) -> str | None:
        try:
            found: str = ada_url.normalize_url(encoded(url).decode())
        except ValueError:
            return None
        return found

    def join(base: bytes, href: str) -> str | None:
        try:
            found: str = ada_url.join_url(base.decode(), encoded(href).decode())
        except ValueError:
            return None
        return found

    return Parser(href, join, is_direct=False)


def encoded(text: str) -> bytes:
    """The text in UTF-8, with lone surrogates replaced, as browsers do before they parse."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


try:
    PARSER = direct_parser()
except (ImportError, AttributeError):
    PARSER = public_parser()
