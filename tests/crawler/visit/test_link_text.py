"""The text of a link: what a reader sees, on one line, in 120 characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.link_context import LONGEST_TEXT
from crawler.visit.html import extract
from crawler.visit.link_text import LONGEST_CONTENT, link_text


def text_of(content: str | bytes, *, is_xml: bool = False) -> str:
    data = content.encode() if isinstance(content, str) else content
    return link_text(b"<a>" + data + b"</a>", 3, 3 + len(data), is_xml=is_xml)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Read more", "Read more"),
        ("  Read \n\t more\xa0 ", "Read more"),
        ("R&amp;D &eacute;t&eacute &notin; &#8217;", "R&D été ∉ ’"),
        ("un<b>bro</b>ken <i>word</i>", "unbroken word"),
        ("<div>Title</div><div>By me</div>", "Title By me"),
        ("one<br>two", "one two"),
        ("<img src=x alt='A &amp; B'>", "A & B"),
        ('<img alt="it\'s" src=x>and<img>', "it's and"),
        ("<img src='alt=no'>", ""),
        ("<svg viewBox='0 0'><title>Home</title><path d='M0'/></svg>", "Home"),
        ("<script>no('</b>')</script>yes<style>a{}</style>", "yes"),
        ("<template><b>no</b></template>yes", "yes"),
        ("<noscript><img alt=shown></noscript>", "shown"),
        ("<!-- no > --> yes <!x> <?y> </ z>", "yes"),
        ("a < b <3", "a < b <3"),
        ("<span title='a>b'>x</span>", "x"),
        ("<b title=it's>x", "x"),
        ("\x1b[31mred\u202eder\u200b", "[31mredder"),
        ("", ""),
        ("<img alt=''>", ""),
    ],
)
def test_the_text_is_what_a_reader_sees(content: str, text: str) -> None:
    assert text_of(content) == text


def test_in_xml_prefixes_are_passed_over_and_sections_are_text() -> None:
    assert text_of("<h:img alt='a'/><![CDATA[b < c]]><h:script>no</script>", is_xml=True) == "a b < c"


def test_a_long_text_is_trimmed() -> None:
    assert text_of("x" * 500) == "x" * LONGEST_TEXT
    assert text_of("word " * 100) == ("word " * 24).rstrip()
    assert text_of(" " * LONGEST_CONTENT + "too far") == ""


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_have_a_text_on_one_line(data: bytes, is_xml: bool) -> None:
    text = text_of(data, is_xml=is_xml)
    assert len(text) <= LONGEST_TEXT and text == " ".join(text.split())


def contexts(body: str | bytes, content_type: str = "text/html; charset=utf-8") -> list[tuple[str, str, str]]:
    data = body.encode() if isinstance(body, str) else body
    page = extract(data, content_type, "https://a.test/", 100, has_link_text=True)
    assert page.contexts is not None and len(page.contexts) == len(page.hrefs)
    return [(href, *context) for href, context in zip(page.hrefs, page.contexts, strict=True)]


def test_every_href_has_the_text_and_rel_of_its_links() -> None:
    body = (
        "<link rel=canonical href=/c><a href=/1 rel='NoFollow me'>one</a><a href=/2><img src=x></a> between"
        "<a href='/2#part'>two</a><a href=/1>again<a href=/3>unclosed <a href=/4 download>file</a><a href=/5>"
    )
    assert contexts(body) == [
        ("/c", "", "canonical"),
        ("/1", "one", "me"),
        ("/2", "two", ""),
        ("/3", "unclosed", ""),
        ("/5", "", ""),
    ]


def test_the_first_four_links_to_an_address_are_read() -> None:
    empty = "<a href=/x></a>"
    assert contexts(empty * 3 + "<a href=/x>fourth</a>") == [("/x", "fourth", "")]
    assert contexts(empty * 4 + "<a href=/x>fifth</a>") == [("/x", "", "")]


def test_texts_follow_their_hrefs_through_the_encoding_of_the_page() -> None:
    """Two spellings of an address become one href; its text is the first of both."""
    body = "<a href='/?q=ä'></a><a href='/b'>b</a><a href='/?q=%E4'>Größe</a>".encode("latin-1")
    assert contexts(body, "text/html; charset=iso-8859-1") == [("/?q=%E4", "Größe", ""), ("/b", "b", "")]


def test_nothing_is_read_that_was_not_asked_for() -> None:
    assert extract(b"<a href=/x>text</a>", "text/html", "https://a.test/", 100).contexts is None
