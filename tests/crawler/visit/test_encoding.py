"""The encoding of a page, in the order browsers look for it: BOM, header, meta, fallback."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.content_types import charset_of, is_html, media_type
from crawler.visit.encoding import decode, find_encoding


@pytest.mark.parametrize(
    ("body", "content_type", "encoding"),
    [
        (b"plain", None, "windows-1252"),
        (b"\xef\xbb\xbf<meta charset=koi8-r>", "text/html; charset=iso-8859-2", "utf-8"),
        (b"\xff\xfea\0", "text/html; charset=utf-8", "utf-16le"),
        (b"\xfe\xff\0a", None, "utf-16be"),
        (b"<meta charset=koi8-r>", "text/html; charset=iso-8859-2", "iso-8859-2"),
        (b"<meta charset=koi8-r>", "text/html; charset=nonsense", "koi8-r"),
        (b"<meta charset=koi8-r>", "text/html", "koi8-r"),
        (b"<meta charset=latin1>", None, "windows-1252"),
        (b"<meta charset=utf-16>", None, "utf-8"),
        (b"<meta charset=utf-16be>", None, "utf-8"),
        (b"<meta charset=x-user-defined>", None, "windows-1252"),
        (b"<meta charset=nonsense><meta charset=koi8-r>", None, "koi8-r"),
        (b"<meta http-equiv=Content-Type content='text/html; charset=\"koi8-r\"'>", None, "koi8-r"),
        (b"<meta content='text/html; charset=koi8-r'>", None, "windows-1252"),
        (b"<!-- <meta charset=koi8-r> -->", None, "windows-1252"),
        (b"<script>'<meta charset=koi8-r>'</script>" + b" " * 2000, None, "koi8-r"),  # the prescan knows no scripts
        (b" " * 2000 + b"<script>'<meta charset=koi8-r>'</script>", None, "windows-1252"),  # the parser does
        (b" " * 2000 + b"<meta charset=koi8-r>", None, "koi8-r"),
        (b" " * 2000 + b"<!-- <meta charset=koi8-r> --><meta charset=euc-jp>", None, "euc-jp"),
        (b"<?xml version='1.0' encoding='euc-jp'?><html>", None, "euc-jp"),
        (b"<a title='<meta charset=koi8-r>'>", None, "windows-1252"),
        (b"<meta charset", None, "windows-1252"),
        (b"<meta charset='koi8-r", None, "windows-1252"),
        (b"<", None, "windows-1252"),
        (b"<meta charset=iso-2022-kr>", None, "replacement"),
    ],
)
def test_encodings_are_found_in_the_order_of_the_standard(body: bytes, content_type: str | None, encoding: str) -> None:
    assert find_encoding(body, content_type) == encoding


LATE = b"<p>" + b"x" * 1024


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (LATE + b"<meta charset=KOI8-R>", "koi8-r"),
        (LATE + b"<meta http-equiv=Content-Type content='text/html; charset=KOI8-R'>", "koi8-r"),
        (LATE + b"<!--<meta charset=koi8-r>--><script><meta charset=koi8-r></script>", "windows-1252"),
        (LATE + b"<template><meta charset=koi8-r></template><meta charset=euc-jp>", "euc-jp"),
        (LATE + b"<meta " * 80_000 + b"charset=koi8-r", "windows-1252"),  # once took a quarter of a minute
        (LATE + b"<meta " * 40_000 + b"charset=koi8-r>", "koi8-r"),
    ],
)
def test_a_meta_far_down_is_found_while_reading(body: bytes, encoding: str) -> None:
    assert find_encoding(body, None) == encoding


@pytest.mark.parametrize(
    ("raw", "encoding", "text"),
    [
        ("é".encode(), "utf-8", "é"),
        (b"\xef\xbb\xbfa", "utf-8", "a"),
        (b"\xff\xfea\0", "utf-16le", "a"),
        (b"\xe9\x80", "windows-1252", "é€"),
        (b"\xff", "utf-8", "\ufffd"),
        (b"\xed\xa0\x80", "utf-8", "\ufffd\ufffd\ufffd"),
        (b"a\xd8\x00", "utf-16be", "\u61d8\ufffd"),
        (b"anything", "replacement", "\ufffd"),
        (b"a\x80", "x-user-defined", "a\uf780"),
        (b"a", "no such thing", "a"),
        ("日本".encode("euc-jp"), "euc-jp", "日本"),
    ],
)
def test_decoding_replaces_what_is_broken(raw: bytes, encoding: str, text: str) -> None:
    assert decode(raw, encoding) == text


@given(st.binary(max_size=300), st.one_of(st.none(), st.text(max_size=60)))
def test_any_bytes_under_any_header_have_an_encoding_and_decode(body: bytes, content_type: str | None) -> None:
    decode(body, find_encoding(body, content_type)).encode("utf-8", "surrogatepass")


@given(st.text(alphabet="<>meta chrs='\"/!-x=;kiop8ulf16\n", max_size=200))
def test_any_tag_soup_has_an_encoding(soup: str) -> None:
    find_encoding(soup.encode(), None)


@pytest.mark.parametrize(
    ("content_type", "kind", "charset"),
    [
        ("text/html", "text/html", None),
        ("Text/HTML; Charset=UTF-8", "text/html", "UTF-8"),
        ('text/html; charset="utf-8"', "text/html", "utf-8"),
        ("text/html;charset=a;charset=b", "text/html", "a"),
        ("text/plain, text/html; charset=x", "text/html", "x"),
        ("text/html; charset=x, text/html", "text/html", "x"),
        ("text/html; charset=x, text/plain", "text/plain", None),
        ("text/html, */*", "text/html", None),
        ('text/html; a="x,y"; charset=z', "text/html", "z"),
        ("html", None, None),
        ("", None, None),
        (None, None, None),
        ("text/html;" + "," * 100_000, "text/html", None),
    ],
)
def test_content_types_are_read_as_browsers_read_them(
    content_type: str | None, kind: str | None, charset: str | None
) -> None:
    assert media_type(content_type) == kind
    assert charset_of(content_type) == charset


@pytest.mark.parametrize(
    ("content_type", "prefix", "expected"),
    [
        ("text/html", b"", True),
        ("application/xhtml+xml; charset=utf-8", b"", True),
        ("application/pdf", b"<html>", False),
        ("text/plain", b"<html>", False),
        (None, b"  \n<!DOCTYPE HTML><p>", True),
        (None, b"<HTML lang=en>", True),
        (None, b"\xef\xbb\xbf<html>", True),
        (None, b"\xff\xfe<\0h\0t\0m\0l\0>\0", True),
        (None, b"<?xml version='1.0'?>\n<html xmlns='x'>", True),
        (None, b"<?xml version='1.0'?><rss>", False),
        (None, b"<!-- note -->", True),
        (None, b"<abbr>", False),
        (None, b"%PDF-1.4", False),
        (None, b"", False),
        ("nonsense", b"<p>", True),
    ],
)
def test_a_page_is_html_by_its_type_or_without_one_by_its_first_bytes(
    content_type: str | None, prefix: bytes, expected: bool
) -> None:
    assert is_html(content_type, prefix) is expected
