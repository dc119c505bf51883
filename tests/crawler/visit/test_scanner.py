"""The scanner: HTML's rules as far as links need them, in both implementations, in linear time and memory."""

from __future__ import annotations

import gc
import html
import os
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.demo.sites import HTML
from crawler.demo.terrain import demo_terrain
from crawler.model.pagination import LIST_WORDS
from crawler.visit import pure_scanner, scanner
from crawler.visit.html import refresh_target
from crawler.visit.pure_scanner import Found, Limits
from crawler.visit.references import in_attribute, in_text
from crawler.visit.scanner import LONGEST_ADDRESS, LONGEST_TEXT, LONGEST_VALUE, Scan, scan

NOT_BUILT = "the compiled scanner is not built here"
EVERYTHING = ("a", "area", "link", "meta", "html")


@pytest.fixture(params=["c", "python"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Has `scan` use one implementation, then the other."""
    if request.param == "python":
        monkeypatch.setattr(scanner, "compiled", None)
    elif scanner.compiled is None:
        pytest.skip(NOT_BUILT)
    return str(request.param)


def read(
    body: str | bytes,
    *,
    is_xml: bool = False,
    most: int = 1000,
    elements: tuple[str, ...] = (),
    has_links: bool = False,
    list_words: frozenset[str] | None = None,
) -> Scan:
    data = body.encode() if isinstance(body, str) else body
    return scan(
        data, most, refresh_target, is_xml=is_xml, elements=elements, has_links=has_links, list_words=list_words
    )


# --- which implementation


def run_with(environment: dict[str, str]) -> str:
    code = "from crawler.visit.scanner import IMPLEMENTATION; print(IMPLEMENTATION)"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_environment_can_ask_for_the_one_in_python() -> None:
    assert run_with({**os.environ, "SUMI_RIPPLE_PURE": "1"}) == "python"


def test_the_compiled_one_is_used_where_it_is_built() -> None:
    if scanner.compiled is None:
        pytest.skip(NOT_BUILT)
    assert run_with({name: value for name, value in os.environ.items() if name != "SUMI_RIPPLE_PURE"}) == "c"


# --- tags and attributes (HTML standard, 13.2.5.6 to 13.2.5.40)


@pytest.mark.parametrize(
    ("body", "addresses"),
    [
        ("<a href=x>", ["x"]),
        ("<a href='x'>", ["x"]),
        ('<a href="x">', ["x"]),
        ("<a\n\thref\f=\r'x'>", ["x"]),
        ("<A HREF=X>", ["X"]),
        ("<a/href=x>", ["x"]),
        ("<a x='y'href=z>", ["z"]),  # no space between attributes
        ("<a href=x href=y>", ["x"]),  # the first of a name counts
        ("<a href href=y>", []),
        ("<a href= x>", ["x"]),
        ("<a href=x/>", ["x/"]),
        ("<a href=a=b'c\"d>", ["a=b'c\"d"]),
        ("<a title=it's href=x>", ["x"]),
        ("<a title=\"<a href=no>\" href='x'>", ["x"]),
        ("<p title='<a href=no>'><a href=x>", ["x"]),
        ("<p ='a href=no><a href=x>", ["x"]),  # an attribute whose name begins with `=`
        ("<p a=b='c><a href=x>'>", ["x"]),  # quotes inside of a bare value are part of it
        ("<p a='b'='c><a href=x>'>", ["x"]),
        ("<a hreflang=y href=x>", ["x"]),
        ("<ahref=x><abbr href=x><a-b href=x>", []),
        ("< a href=x>", []),
        ("<a href=x", []),  # the input ends inside of the tag
        ("<a href='x>", []),
        ("<p title='><a href=no>", []),
        ("<<a href=x>", ["x"]),
        ("a < b && <a href=x>", ["x"]),
        ("a<b && <a href=no>", []),
        ("</a href='><a href=no>'><a href=x>", ["x"]),
        ("</><a href=x></ ><a href=y>", ["x", "y"]),
    ],
)
def test_tags(implementation: str, body: str, addresses: list[str]) -> None:
    assert read(body).addresses == addresses


# --- comments and their like (13.2.5.41 to 13.2.5.53)


@pytest.mark.parametrize(
    ("body", "addresses"),
    [
        ("<!-- <a href=no> --><a href=x>", ["x"]),
        ("<!--><a href=x>-->", ["x"]),
        ("<!---><a href=x>-->", ["x"]),
        ("<!----><a href=x>", ["x"]),
        ("<!--no--!><a href=x>", ["x"]),
        ("<!--!><a href=no>--><a href=x>", ["x"]),
        ("<!---!><a href=no>--><a href=x>", ["x"]),
        ("<!----!><a href=x>", ["x"]),
        ("<!-- > -> -- > <a href=no> ---><a href=x>", ["x"]),
        ("<!--<!--><a href=x>", ["x"]),
        ("<!-- <a href=no>", []),
        ("<!doctype html '><a href=x>", ["x"]),
        ("<!anything '><a href=x>", ["x"]),
        ("<?php echo '><a href=x>", ["x"]),
        ("</3 '><a href=x>", ["x"]),
        ("<![CDATA[<a href=x>]]>", []),  # outside of svg it is a comment up to the first `>`
        ("<![CDATA[>]]><a href=x>", ["x"]),
        ("<svg><![CDATA[><a href=no>]]><a href=x>", ["x"]),
    ],
)
def test_comments_and_declarations(implementation: str, body: str, addresses: list[str]) -> None:
    assert read(body).addresses == addresses


# --- elements whose content is text (13.2.5.2 to 13.2.5.31)


@pytest.mark.parametrize("name", ["script", "style", "xmp", "iframe", "noembed", "noframes", "textarea", "title"])
def test_text_is_no_markup(implementation: str, name: str) -> None:
    body = f"<{name.upper()}><a href=no></{name}x></ {name}><!--</{name.upper()} x='>'><a href=x><{name}>"
    assert read(body).addresses == ["x"]


@pytest.mark.parametrize(
    ("body", "addresses"),
    [
        ("<script><!-- <script> </script> <a href=no> --></script><a href=x>", ["x"]),
        ("<script><!-- <script> </script> <a href=no> </script><a href=x>", ["x"]),
        ("<script><!-- </script><a href=x>", ["x"]),
        ("<script><!-- <script> --> </script><a href=x>", ["x"]),
        ("<script><!--> <script> </script><a href=x>", ["x"]),
        ("<script><!-- <scripty> </script><a href=x>", ["x"]),
        ("<script><script></script><a href=x>", ["x"]),
        ("<script/><a href=no></script><a href=x>", ["x"]),  # HTML knows no empty script
        ("<plaintext><a href=no></plaintext><a href=no>", []),
        ("<noscript><a href=x></noscript>", ["x"]),
        ("<select><a href=x>", ["x"]),
    ],
)
def test_scripts_and_other_text(implementation: str, body: str, addresses: list[str]) -> None:
    assert read(body).addresses == addresses


# --- foreign content and templates (13.2.6.5, 4.12.3)


@pytest.mark.parametrize(
    ("body", "addresses", "title"),
    [
        ("<svg><a href=x></a></svg>", ["x"], None),
        ("<svg><title>no</title></svg><title>t</title>", [], "t"),
        ("<math><title>no</title></math><title>t</title>", [], "t"),
        ("<svg><desc><title>t</title></desc></svg>", [], "t"),  # HTML goes on in there
        ("<svg><foreignObject><title>t</title></foreignObject><title>no", [], "t"),
        ("<svg/><title>t</title>", [], "t"),
        ("<svg a=b/><title>no</title></svg><title>t</title>", [], "t"),  # the slash is part of the value
        ("<svg><svg></svg><title>no</title></svg><title>t</title>", [], "t"),
        ("<svg><style><a href=x></style></svg>", ["x"], None),  # text in HTML alone
        ("<svg><path></svg><style><a href=no></style>", [], None),
        ("<div><svg></div><title>t</title>", [], "t"),
        ("<svg><p><title>t</title>", [], "t"),
        ("<svg><font><title>no</title></font><font color=x><title>t</title>", [], "t"),
        ("<svg><link rel=canonical href=no></svg>", [], None),
        ("<math><annotation-xml encoding=Text/HTML><title>t</title>", [], "t"),
        ("<math><annotation-xml><title>no</title>", [], None),
        ("<math><mi><title>t</title>", [], "t"),
        ("<template><a href=no><title>no</title></template><a href=x>", ["x"], None),
        ("<template><template></template><a href=no></template><a href=x>", ["x"], None),
        ("<template><svg></template><title>t</title>", [], "t"),
        ("<template><script></template></script><a href=no></template><a href=x>", ["x"], None),
        ("<template shadowrootmode=open><a href=x></template><a href=y>", ["x", "y"], None),
        ("<template><a href=no>", [], None),
        ("</template><a href=x>", ["x"], None),
        ("<svg><template><a href=x>", ["x"], None),  # an element of svg like any other
    ],
)
def test_foreign_content_and_templates(implementation: str, body: str, addresses: list[str], title: str | None) -> None:
    found = read(body)
    assert (found.addresses, found.title) == (addresses, title)


def test_markup_behind_the_end_of_the_page_is_read(implementation: str) -> None:
    """One real page keeps 37 of its 38 links there."""
    assert read("<html><a href=x></html><a href=y><html><body><a href=z>").addresses == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("body", "base"),
    [
        ("<base href=x><base href=y>", "x"),
        ("<base target=_top><base href=y>", "y"),
        ("<base href=''><base href=y>", ""),
        ("<template><base href=no></template><svg><base href=no></svg><base href=y>", "y"),
        ("<base href='?a&amp;b'>", "?a&b"),
        ("<base>", None),
    ],
)
def test_the_first_base_with_an_href_is_the_base(implementation: str, body: str, base: str | None) -> None:
    assert read(body).base == base


# --- character references (13.2.5.72 to 13.2.5.84)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("?a=1&amp;b=2", "?a=1&b=2"),
        ("?a=1&b=2", "?a=1&b=2"),
        ("?a&copy=1", "?a&copy=1"),
        ("?a&copyx", "?a&copyx"),
        ("?a&copy", "?a©"),
        ("?a&copy;", "?a©"),
        ("?a&copy&amp", "?a©&"),
        ("?a&notit;", "?a&notit;"),
        ("?a&notin;", "?a∉"),
        ("?a&amp;copy;", "?a&copy;"),
        ("/&#49;&#x32;&#X33", "/123"),
        ("/&#128;&#x9F;&#x81;", "/€Ÿ\x81"),
        ("/&#0;&#xD800;&#x110000;&#99999999999999999999;", "/" + "\ufffd" * 4),
        ("/&#;&#x;&;&", "/&#;&#x;&;&"),
        ("/&nGt;", "/≫⃒"),
        ("/a\0b", "/a\ufffdb"),
    ],
)
def test_references_in_addresses(implementation: str, written: str, value: str) -> None:
    assert read(f'<a href="{written}">', elements=("a",)).elements == [(0, "a", {"href": value})]


@given(
    st.lists(
        st.sampled_from(
            ["&", "amp", "&amp", "&not", "&notin", "in", ";", "=", " ", "&#65", "&#x42;", "&COPY", "é", "&lt"]
        )
    ).map("".join)
)
def test_references_in_text_are_read_as_the_standard_library_does(text: str) -> None:
    assert in_text(text.encode()).decode() == html.unescape(text)


def test_a_title_is_read_with_the_rules_for_text(implementation: str) -> None:
    assert read("<title>&notit; &amp=\0</title>").title == "¬it; &=\ufffd"


# --- addresses


@pytest.mark.parametrize(
    ("hrefs", "addresses"),
    [
        (["x#1", "x#2", "x", "#x", "#", ""], ["x"]),
        ([" x ", "\x01x\x1f", "\nx\t", "x"], ["x"]),
        (["/a\tb\r\nc"], ["/abc"]),
        (["/a #f", "/a\x02\x03#f"], ["/a%20", "/a%02%03"]),
        (["/a\t#f"], ["/a"]),
        (["javascript:x", "JAVA\nSCRIPT:x", "mailto:x", "a+b.c-d:x", "data:,x#y"], []),
        (["http:x", "HTTPS://x", "httpx", "1a:x", "a/b:c", "?a:b", ":x"], None),
        (["é", "\xe9"], ["é"]),
    ],
)
def test_addresses(implementation: str, hrefs: list[str], addresses: list[str] | None) -> None:
    body = "".join(f'<a href="{href}">' for href in hrefs)
    assert read(body).addresses == (hrefs if addresses is None else addresses)


def test_canonical_links_and_refreshes_are_addresses_in_their_place(implementation: str) -> None:
    body = (
        "<a href=1><link rel='x CANONICAL' href=2><meta http-equiv=' Refresh ' content='0; url=3#f'><a href=2>"
        "<link rel=canonicals href=no><link href=no><a href=4>"
    )
    assert read(body).addresses == ["1", "2", "3", "4"]


def test_addresses_beyond_the_limit_are_counted_once_each(implementation: str) -> None:
    body = "".join(f"<a href=/{i % 30}#{i}>" for i in range(300))
    found = read(body, most=20)
    assert (len(found.addresses), found.left_out) == (20, 10)


@pytest.mark.parametrize(
    ("href", "kept", "left_out"),
    [
        ("x" * LONGEST_ADDRESS, 1, 0),
        ("x" * (LONGEST_ADDRESS + 1), 0, 1),
        ("x" * (LONGEST_VALUE + 1), 0, 1),
        ("x#" + "y" * LONGEST_VALUE, 1, 0),
        ("x" + "\n" * LONGEST_VALUE, 0, 1),
        ("data:" + "x" * LONGEST_VALUE, 0, 0),
        ("#" + "x" * LONGEST_VALUE, 0, 0),
    ],
)
def test_endless_addresses_are_left_out_and_counted(implementation: str, href: str, kept: int, left_out: int) -> None:
    found = read(f"<a href='{href}'><a href='{href}'>")
    assert (len(found.addresses), found.left_out) == (kept, left_out)


def test_the_beginning_of_an_endless_address_is_not_that_address(implementation: str) -> None:
    endless = "x" + "\n" * LONGEST_VALUE + "y"
    found = read(f"<a href='{endless}'><a href=x><a href='{endless}'>")
    assert (found.addresses, found.left_out) == (["x"], 1)


# --- elements


def test_elements_that_were_asked_for_are_reported_with_their_attributes(implementation: str) -> None:
    body = (
        "<html lang=en><meta name=a content='&lt;' name=b><meta><link rel='next' href=/2><area href=x rel=y>"
        "<a rel=prev href=/0><svg><a href=s></svg><template><link rel=no></template>"
    )
    assert read(body, elements=EVERYTHING).elements == [
        (0, "html", {"lang": "en"}),
        (body.index("<meta"), "meta", {"name": "a", "content": "<"}),
        (body.index("<link rel='n"), "link", {"rel": "next", "href": "/2"}),
        (body.index("<area"), "area", {"href": "x", "rel": "y"}),
        (body.index("<a rel"), "a", {"rel": "prev", "href": "/0"}),
        (body.index("<a href=s"), "a", {"href": "s"}),
    ]
    assert [name for _, name, _ in read(body, elements=("link",)).elements] == ["link"]


# --- links and their content


@pytest.mark.parametrize(
    ("body", "contents"),
    [
        ("<a href=x>one</a> two", [("x", "one", None)]),
        ("<a href=x rel='a &amp; b'>one<a href=y>two</A >", [("x", "one", "a & b"), ("y", "two", None)]),
        ("<a href=x>one<a name=n>two</a>", [("x", "one", None)]),
        ("<a href=x>one<a href=no download>two</a>", [("x", "one", None)]),
        ("<a href=x><b>one</b></ab></a>", [("x", "<b>one</b></ab>", None)]),
        ("<a href=x>one<script></a></script></a>", [("x", "one<script></a></script>", None)]),
        (
            "<a href=x>one<template><a href=no></a></template></a>",
            [("x", "one<template><a href=no></a></template>", None)],
        ),
        ("<svg><a href=x/>no<a href=y>two</a></svg>", [("x/", "no", None), ("y", "two", None)]),
        ("<svg><a href='x'/>no<a href=y>two</a></svg>", [("x", "", None), ("y", "two", None)]),
        ("<a href=x>to the end", [("x", "to the end", None)]),
        ("<a href=x>one</a", [("x", "one", None)]),
        ("<a href=x>1</a><a href=x>2</a><a href=#y>no</a>", [("x", "1", None), ("x", "2", None)]),
        ("<a href=x>one<link rel='x canonical' href=y>", [("x", "one", None), ("y", "", "x canonical")]),
        ("<a href=x>" * 9, [("x", "", None)] * 4),
    ],
)
def test_links_are_reported_with_their_content(
    implementation: str, body: str, contents: list[tuple[str, str, str | None]]
) -> None:
    found = read(body, has_links=True)
    assert [(found.addresses[n], body[start:end], rel) for n, start, end, rel in found.links] == contents
    assert read(body).links == []


# --- XHTML


@pytest.mark.parametrize(
    ("body", "addresses", "title"),
    [
        ("<script src='a'/><title>t</title><a href='x'/>", ["x"], "t"),
        ("<h:title>t</h:title><h:a href='x'></h:a>", ["x"], "t"),
        ("<h:script>&lt;<h:a href='no'/></h:script><h:a href='x'/>", ["x"], None),
        ("<title/><title>no</title>", [], ""),
        ("<title><![CDATA[a < b]]></title>", [], "a < b"),
        ("<p><![CDATA[<a href='no'/>]]></p><a href='x'/>", ["x"], None),
        ("<?php '>' <a href='no'/> ?><a href='x'/>", ["x"], None),
        ("<!--><a href='no'/>--><a href='x'/>", ["x"], None),
        ("<!DOCTYPE html [<!-- ' ]> --><!ENTITY a ']><a href=no>'>]><a href='x'/>", ["x"], None),
        ("<svg:svg><svg:title>no</svg:title></svg:svg><title>t</title>", [], "t"),
        ("<template/><a href='x'/>", ["x"], None),
        ("<p>unclosed &nbsp;<a href=x>", ["x"], None),
    ],
)
def test_xhtml(implementation: str, body: str, addresses: list[str], title: str | None) -> None:
    found = read(body, is_xml=True)
    assert found.addresses == addresses
    assert title is None or found.title == title


# --- text that is shown


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (" a\n b\v\tc \v", b"a\n b\v\tc"),
        ("\n<p>\v \f</p>\r", b""),
        ("<p>a</p><p>b</p>c<b>d</b>", b"a b c d"),
        ("<title>no</title><style>no</style><script>no</script><textarea>no</textarea><iframe>no</iframe>yes", b"yes"),
        ("<!-- no -->a<!DOCTYPE no>b<?no?>c", b"a b c"),
        ("<template>no<svg>no</svg></template>a<template shadowrootmode=open>b</template>", b"a b"),
        ("a<noscript>no <a href=x>no</a></noscript>b", b"a b"),
        ("<noscript>no<noscript>no</noscript>b", b"b"),
        ("a<noscript>shown, for it never ends", b"a shown, for it never ends"),
        ("a<noscript>shown</noscript", b"a shown"),
        ("a</noscript>b<svg><noscript>c</noscript>d</svg>", b"a b c d"),
        ("<svg><title>a</title><text>b</text></svg>", b"a b"),
        ("a &lt; b &amp; c < d", b"a &lt; b &amp; c d"),  # as written; a bare `<` is left out
        ("", b""),
    ],
)
def test_the_text_that_is_shown(implementation: str, body: str, text: bytes) -> None:
    assert read(body).text == text


def test_text_is_kept_up_to_its_limit_and_a_noscript_gives_its_room_back(implementation: str) -> None:
    def text(body: bytes, longest: int) -> bytes:
        return scan(body, 10, refresh_target, longest_text=longest).text

    assert text(b"abc def ghi", 6) == b"abc de"
    assert text(b"abc def ghi", 4) == b"abc "
    assert text(b"abc", 0) == b""
    assert text(b"ab<noscript>" + b"no " * 100 + b"</noscript>cd" + b"<p>" * 50 + b"ef gh", 8) == b"ab cd ef"


# --- pages of lists


@pytest.mark.parametrize(
    ("href", "is_numbered"),
    [
        *((href, True) for href in ("?page=2", "/x?a=b&PAGE=2", "x?PAGEN_1=3", "?start=50&x", "page/2/", "/a/page-2")),
        *((href, True) for href in ("/p2", "pg_3.html", "Seite/4.php", "page2?x=y", "3", "./3/", "../3")),
        *((href, False) for href in ("?id=2", "?page=", "?page=x2", "?page=12345678", "/article/1022", "a/3", ".html")),
        *((href, False) for href in ("/page/12345678", "fn.u64.html", "/2023/05/", "page", "?2", "/homepage2", "éé2")),
    ],
)
def test_addresses_that_may_be_pages_of_a_list(implementation: str, href: str, is_numbered: bool) -> None:
    found = read(f"<a href='{href}'></a>", list_words=LIST_WORDS)
    assert found.numbered == ([0] if is_numbered else [])
    assert read(f"<a href='{href}'></a>").numbered == []


def test_links_that_are_marked_as_next(implementation: str) -> None:
    page = (
        "<link rel=canonical href=/a><link rel='prefetch NEXT' href=/b><a rel=nofollow href=/c></a>"
        "<a href=/d rel='n&#101;xt'></a><a rel=next href=/b></a><a rel=next href='#x'></a><a rel=next download href=/e>"
        "<template><a rel=next href=/f></a></template><a rel=next href=/too-many></a>"
    )
    found = read(page, list_words=LIST_WORDS, most=4)
    assert found.addresses == ["/a", "/b", "/c", "/d"]
    assert found.marked == [1, 3, 1]
    assert read(page).marked == []


# --- both implementations


def both(
    data: bytes, most: int, is_xml: bool, limits: Limits, has_links: bool = True, has_lists: bool = True
) -> tuple[Found, Found]:
    assert scanner.compiled is not None
    words = LIST_WORDS if has_lists else None
    arguments = (data, most, is_xml, EVERYTHING, refresh_target, limits, has_links, words)
    return scanner.compiled.scan(*arguments, in_attribute), pure_scanner.scan(*arguments)


PIECES = [
    *re.split(
        " ",
        "< > / /> </ = \" ' # ? & ; - -- --> --!> <!-- <! <? ?> <![CDATA[ ]]> [ ] ! : a A x <!DOCTYPE &amp; &amp "
        "&copy &copy= &#38; &#x &notin; &not http: java script: é 0;url= canonical refresh <a href download rel= href= "
        "<a/ <A <link <base <meta <area <html http-equiv= content= name= lang= <title> </title> <title/> <script> "
        "</script> </script <script <style> </style> <textarea> </textarea> <svg> <svg/> </svg> <math> </math> "
        "<desc> </desc> <foreignObject> </foreignObject> <mi> </mi> <p> </p> </div> </td> <font> <template> "
        "</template> <plaintext> <xmp> </xmp> <h:a <h: </h: <svg:title> </h:title> <h:script> </h:script> "
        "<iframe> </iframe> <noscript> </noscript> </noscript <noscript/> </a> </A > </h:a> </a <a rel=b href=x> "
        "<a rel=next href=y> page= p= /page/ 2 12345678 .html "
        "<h1> <h1 </h1> </h1 <h1/> <h:h1> </h:h1> <H1> <link rel=canonical href=",
    ),
    *("<annotation-xml encoding=text/html>", "<template shadowrootmode=open>", "<font color=x>", "<a href='"),
    *(" ", "\n", "\t", "\x0b", "\x0c", "\0", "\x1f"),
]
LIMITS = st.sampled_from([(40, 60, 8, 30), (5, 12, 2, 7), (30, 9, 3, 2048), (30, 9, 3, 0)])
SOUP = st.lists(st.sampled_from([*(piece.encode() for piece in PIECES), b"\xff", b"\xed\xa0\x80"]), max_size=40)


@pytest.mark.skipif(scanner.compiled is None, reason=NOT_BUILT)
@settings(max_examples=1500, deadline=None)
@given(SOUP.map(b"".join), st.sampled_from([0, 1, 3, 1000]), st.booleans(), LIMITS, st.booleans())
def test_both_read_tag_soup_alike(data: bytes, most: int, is_xml: bool, limits: Limits, has_links: bool) -> None:
    compiled, pure = both(data, most, is_xml, limits, has_links, has_lists=not has_links)
    assert compiled == pure
    assert has_links or not compiled[6]
    assert not has_links or not (compiled[7] or compiled[8])


def _pages() -> list[bytes]:
    terrain = demo_terrain()
    return [
        terrain.answer(site.host, "GET", page.path).data.split(b"\r\n\r\n", 1)[1]
        for site in terrain.sites
        for page in site.pages[:8]
        if page.status == 200 and page.content_type == HTML and page.raw is None
    ]


PAGES = _pages()


@pytest.mark.skipif(scanner.compiled is None, reason=NOT_BUILT)
@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(PAGES),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 3), st.sampled_from(PIECES)), max_size=12),
    st.booleans(),
)
def test_both_read_damaged_pages_alike(page: bytes, damage: list[tuple[int, int, str]], is_xml: bool) -> None:
    data = bytearray(page)
    for place, length, piece in damage:
        start = place % (len(data) + 1)
        data[start : start + length] = piece.encode()
    compiled, pure = both(bytes(data), 1000, is_xml, (LONGEST_ADDRESS, LONGEST_VALUE, 10_000, LONGEST_TEXT))
    assert compiled == pure


# --- linear, whatever comes

FLOODS = [
    *("<", "<b", "<a ", "<a x='", '<a x="', "<a =", "<a ///", "</", "</a ", "<!-", "<!--", "<!--x--!>", "<!-- -", "<?"),
    *("<svg><![CDATA[]]", "<script>", "<script><!--<script>", "<!--<script></script", "<title>", "</title", "<p>x"),
    *("&", "<a href='&x", "<a href='&ampx;'>", "<a href='\0\0'>", "<a href=#x>", "<a href='x    #'>", "<a href='\tx'>"),
    *(
        "<div>",
        "<svg>",
        "<script></x:",
        "<svg><foreignObject>",
        "<svg></svg>",
        "<math></svg>",
        "<svg><p>",
        "<svg></div>",
        "<template>",
    ),
    *("<meta name=a content=b>", "<base href=x>", "<link rel=canonical href=x>", "<html lang=x>", "<!DOCTYPE ["),
    *("<meta http-equiv=refresh content='0;url=x'>", "<textarea></textarea>", "<x:", "<svg><![CDATA["),
    *("<noscript>x", "<noscript>x</noscript>", "<noscript>x</noscript", "x ", "\n<b> "),
]
MANY: dict[str, Callable[[int], bytes]] = {
    "addresses": lambda size: b"".join(b"<a href=%x>" % i for i in range(size // 14)),
    "attributes": lambda size: b"<a %b>" % b" ".join(b"a%x" % i for i in range(size // 8)),
    "one href": lambda size: b"<a href='%b'>" % (b"x" * size),
    "one href of references": lambda size: b"<a href='%b'>" % (b"&x;" * (size // 3)),
    "one href of NULs": lambda size: b"<a href='%b'>" % (b"\0" * size),
    "one href of spaces": lambda size: b"<a href='x%b#'>" % (b" " * size),
    "one number": lambda size: b"<a href='&#%b;'>" % (b"9" * size),
    "one title of references": lambda size: b"<title>" + b"&x" * (size // 2),
    "svg never closed": lambda size: b"<svg>" * (size // 10) + b"</math>" * (size // 14),
    "svg closed": lambda size: b"<svg><desc>" * (size // 22) + b"</svg>" * (size // 12),
    **{piece: lambda size, piece=piece: piece.encode() * (size // len(piece)) for piece in FLOODS},  # type: ignore[misc]
}


SIZES = {"c": 400_000, "python": 100_000}  # bytes; the pure twin needs twenty times as long for each


def cpu(data: bytes, is_xml: bool) -> float:
    gc.disable()  # a collection looks at everything the tests hold
    try:
        start = time.process_time()
        read(data, is_xml=is_xml, elements=EVERYTHING, has_links=True)
        return time.process_time() - start
    finally:
        gc.enable()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("is_xml", [False, True], ids=["html", "xml"])
@pytest.mark.parametrize("shape", MANY)
def test_four_times_the_page_is_four_times_the_work(implementation: str, shape: str, is_xml: bool) -> None:
    """Quadratic time would be sixteen times the work. Below a tenth of a second there is nothing to compare."""
    size = SIZES[implementation]
    small, large = MANY[shape](size), MANY[shape](4 * size)
    least = min(cpu(small, is_xml) for _ in range(2))
    assert min(cpu(large, is_xml) for _ in range(2)) <= max(0.1, 8 * least)


@pytest.mark.parametrize("shape", MANY)
def test_memory_is_a_small_factor_of_the_page(implementation: str, shape: str) -> None:
    in_attribute(b"&x;")  # the table of names is not part of a page's memory
    data = MANY[shape](2 * SIZES[implementation])
    tracemalloc.start()
    try:
        read(data, elements=EVERYTHING, has_links=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 9 * len(data) + 6_000_000  # of which a full list of elements takes some 5 MB
