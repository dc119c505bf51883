"""Extraction (seed 000 §6.3): what is a link, what is not, and pages that mean harm."""

from __future__ import annotations

from dataclasses import replace

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.model.page_claims import MOST_CHARACTERS
from crawler.visit.clean_text import cleaned
from crawler.visit.html import (
    LONGEST_HREF,
    Extracted,
    Facts,
    extract,
    header_says_noarchive,
    header_says_nofollow,
    refresh_target,
)

URL = "https://site.test/dir/page"


def read(
    body: bytes | str, content_type: str | None = "text/html; charset=utf-8", max_links: int = 10_000, url: str = URL
) -> Extracted:
    return extract(body.encode() if isinstance(body, str) else body, content_type, url, max_links, agent="SumiRipple")


def links(body: bytes | str, content_type: str | None = "text/html; charset=utf-8") -> list[str]:
    return list(read(body, content_type).hrefs)


# --- §6.3 Include


@pytest.mark.parametrize(
    "body",
    [
        "<body><a href=/x>x</a></body>",
        "<nav><a href=/x>x</a></nav>",
        "<header><a href=/x>x</a></header>",
        "<footer><a href=/x>x</a></footer>",
        "<link rel=canonical href=/x>",
        '<link rel="alternate CANONICAL" href=/x>',
        "<A HREF=/x>",
        "<a href=/x rel=nofollow>followed per requirements</a>",
        "<a href=' /x\n'>",
        "<a href='/\tx'>",
        "<noscript><a href=/x>x</a></noscript>",
        "<table><tr><a href=/x>misplaced</a></table>",
        "<a href=/x><a href=/x>twice</a></a>",
        '<meta http-equiv=refresh content="5; url=/x">',
    ],
)
def test_included_links(body: str) -> None:
    assert links(body) == ["/x"]


# --- §6.3 Exclude


@pytest.mark.parametrize(
    "body",
    [
        "<link rel=stylesheet href=/x>",
        "<link href=/x>",
        "<script src=/x></script>",
        "<img src=/x>",
        "<a href=/x download>",
        "<a href=/x download='name.zip'>",
        "<a href='javascript:void(0)'>",
        "<a href='JavaScript:void(0)'>",
        "<a href=' \x01java\nscript:void(0)'>",
        "<a href='&#106;avascript:void(0)'>",
        "<a href='mailto:me@site.test'>",
        "<a href='tel:+1'>",
        "<a href='data:text/html,<a href=/y>'>",
        "<a href='ftp://site.test/'>",
        "<a href='whatsapp://send'>",
        "<a href='#top'>",
        "<a href=''>",
        "<a href='  '>",
        "<a name=x>",
        "<area href=/x>",
        "<form action=/x>",
        "<iframe src=/x></iframe>",
        "<!-- <a href=/x> -->",
        "<script>document.write('<a href=/x>')</script>",
        "<style><a href=/x></style>",
        "<textarea><a href=/x></textarea>",
        "<title><a href=/x></title>",
    ],
)
def test_excluded_links(body: str) -> None:
    assert links(body) == []


def test_links_come_in_document_order_and_each_once() -> None:
    assert links("<a href=b><a href=a><link rel=canonical href=c><a href=b><a href='a '>") == ["b", "a", "c"]


def test_an_address_counts_once_whatever_its_fragments() -> None:
    assert links("<a href=a#1><a href=b#2><a href=a><a href=a#3><a href='a?q#1'><a href='a?q'>") == ["a", "b", "a?q"]


def test_a_space_before_a_fragment_is_part_of_the_address() -> None:
    """Browsers go to `/a%20` here; stripped, it would be `/a`."""
    assert links("<a href='/a #f'><a href='/a '>") == ["/a%20", "/a"]


# --- title


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("<title> A \n\t page </title>", "A page"),
        ("<title>one</title><title>two</title>", "one"),
        ("<svg><title>picture</title></svg><title>page</title>", "page"),
        ("<title></title>", None),
        ("<p>none", None),
        ("<title>&lt;b&gt; &amp; co</title>", "<b> & co"),
        ("<title>never closed", "never closed"),
        ("<title>" + "x" * 1000 + "</title>", "x" * 500),
        ("<title>\x1b[31mred\x1b]0;owned\x07</title>", "[31mred]0;owned"),
        ("<title>a\u202eb\u2066c\u200ed</title>", "abcd"),
        ("<title>a\u2028b\x85c\x0bd</title>", "a b c d"),
        ("<title>&#27;[2J</title>", "[2J"),
        ("<title>family 👨\u200d👩 ok</title>", "family 👨\u200d👩 ok"),
        ("<title>" + " " * 100_000 + "</title>", None),
    ],
)
def test_titles_are_one_line_that_is_safe_to_show(body: str, title: str | None) -> None:
    assert read(body).title == title


@pytest.mark.parametrize("nul", ["\0", "&#0;"])
@pytest.mark.parametrize("kind", ["text/html", "text/html; charset=utf-16le", "application/xhtml+xml"])
def test_nothing_that_is_read_has_a_nul(nul: str, kind: str) -> None:
    page = (
        f'<html lang="e{nul}n"><title>t{nul}</title><meta name=description content="d{nul}"><base href="/b{nul}/">'
        f'<link rel=canonical href="/c{nul}"><h1>h{nul}</h1><a href="/a{nul}" rel="r{nul}">x{nul}</a>'
    )
    found = extract(
        page.encode("utf-16le" if "16" in kind else "utf-8"), kind, "https://a.test/", 9, has_link_text=True
    )
    assert "x00" not in repr(replace(found, text=b"")), "its text is only hashed"
    assert (found.title, found.facts.heading, found.facts.description) == ("t\ufffd", "h\ufffd", "d\ufffd")


def test_a_title_keeps_no_half_of_a_surrogate_pair() -> None:
    assert cleaned("a\ud800b", 10) == "ab"


# --- base


@pytest.mark.parametrize(
    ("head", "base"),
    [
        ("", URL),
        ("<base href=/other/>", "https://site.test/other/"),
        ("<base href=//else.test/x>", "https://else.test/x"),
        ("<base href=http://plain.test>", "http://plain.test/"),
        ("<base target=_blank><base href=a><base href=b>", "https://site.test/dir/a"),
        ("<base href=''>", "https://site.test/dir/page"),
        ("<base href='javascript:1'><base href=/late>", URL),
        ("<base href='data:text/html,x'>", URL),
        ("<base href='https://[bad'>", URL),
    ],
)
def test_the_first_base_that_can_be_one_counts(head: str, base: str) -> None:
    assert read(head + "<a href=x>").base == base


def test_a_base_over_the_longest_key_is_no_base() -> None:
    def base(length: int) -> str:
        body = f"<base href=/{'b' * length}/><a href=x>".encode()
        return extract(body, "text/html", URL, 10, longest_base=2000).base

    assert len(base(1900)) > 1900
    assert base(2000) == URL and base(60_000) == URL


def test_the_links_of_a_page_have_a_bounded_length_together_and_those_left_out_are_counted() -> None:
    body = (f"<base href=/{'b' * 1900}/>" + "".join(f"<a href=p{n}>" for n in range(10_000))).encode()
    found = extract(body, "text/html", URL, 10_000, longest_base=2000)
    assert len(found.hrefs) + found.links_cut == 10_000
    assert sum(len(found.base) + len(href) for href in found.hrefs) <= MOST_CHARACTERS
    assert len(found.hrefs) > 2000


# --- nofollow


@pytest.mark.parametrize(
    ("body", "nofollow"),
    [
        ("<meta name=robots content=nofollow>", True),
        ("<meta name=ROBOTS content='NOINDEX, NoFollow'>", True),
        ("<meta name=robots content=none>", True),
        ("<meta name=robots content=noindex>", False),
        ("<meta name=robots content='index,follow'>", False),
        ("<meta name=sumiripple content=nofollow>", True),
        ("<meta name=googlebot content=nofollow>", False),
        ("<meta name=robots>", False),
        ("<meta name=robots content=index><meta name=robots content=nofollow>", True),
        ("<a href=/x rel=nofollow>", False),
    ],
)
def test_page_level_nofollow(body: str, nofollow: bool) -> None:
    assert read(body).nofollow is nofollow


def test_nofollow_pages_still_tell_their_links() -> None:
    assert links("<meta name=robots content=nofollow><a href=/x>") == ["/x"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("nofollow", True),
        ("noindex, NOFOLLOW", True),
        ("none", True),
        ("noindex", False),
        ("otherbot: nofollow", False),
        ("otherbot: noindex, nofollow", False),
        ("SumiRipple: nofollow", True),
        ("otherbot: noindex, sumiripple: nofollow", True),
        ("nofollow, otherbot: noindex", True),
        ("unavailable_after: 25 Jun 2030 15:00:00 PST, nofollow", True),
        ("max-snippet:5, nofollow", True),
        ("", False),
        (None, False),
    ],
)
def test_the_x_robots_tag_header(value: str | None, expected: bool) -> None:
    assert header_says_nofollow(value, "SumiRipple") is expected


# --- refresh


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("0; url=/x", "/x"),
        ("5;URL='/x'", "/x"),
        ('5;url="/x" trailing', "/x"),
        ("5,url=/x", "/x"),
        ("5 url = /x", "/x"),
        ("5 /x", "/x"),
        ("5; /x", "/x"),
        (".5; url=/x", "/x"),
        ("5.7; url=/x", "/x"),
        ("  5  ;  url=/x", "/x"),
        ("0; url=https://e.test/?a=1;b=2", "https://e.test/?a=1;b=2"),
        ("5", None),
        ("5;", None),
        ("5; url=", None),
        ("url=/x", None),
        ("x; url=/x", None),
        ("5x; url=/x", None),
        ("", None),
    ],
)
def test_refresh_targets(value: str, target: str | None) -> None:
    assert refresh_target(value) == target


def test_a_refresh_to_javascript_is_no_link() -> None:
    assert links("<meta http-equiv=refresh content='0;url=javascript:alert(1)'>") == []


# --- encodings


def test_queries_are_escaped_in_the_pages_encoding_as_browsers_do() -> None:
    page = "<a href='/é?q=é&r=日#é'>".encode("windows-1252", "xmlcharrefreplace")
    assert links(page, "text/html; charset=windows-1252") == ["/é?q=%E9&r=%26%2326085%3B"]
    assert links("<a href='/é?q=é'>") == ["/é?q=é"]


def test_a_page_in_utf_16_is_read() -> None:
    page = read(b"\xff\xfe" + "<title>é</title><a href=/x>".encode("utf-16-le"), "text/html")
    assert (page.title, page.hrefs) == ("é", ("/x",))


def test_xhtml_is_parsed_as_xml_when_it_says_so_and_is_well_formed() -> None:
    body = (
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>X</title>'
        '<script src="a.js"/></head><body><a href="/x">x</a></body></html>'
    )
    page = read(body, "application/xhtml+xml")
    assert (page.title, page.hrefs) == ("X", ("/x",))


def test_broken_xhtml_is_read_as_html() -> None:
    assert links("<html><p>unclosed &nbsp;<a href=/x>", "application/xhtml+xml") == ["/x"]


def test_entities_of_a_hostile_dtd_are_not_expanded() -> None:
    body = (
        '<?xml version="1.0"?><!DOCTYPE html [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
        '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;">'
        '<!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;"><!ENTITY f "&e;&e;&e;&e;&e;&e;&e;&e;">'
        '<!ENTITY x SYSTEM "file:///etc/passwd">]>'
        '<html><head><title>&x;t</title></head><body title="&f;&f;&f;&f;"><a href="/x">&f;</a></body></html>'
    )
    page = read(body, "application/xhtml+xml")
    assert page.hrefs == ("/x",)
    assert "root:" not in (page.title or "")


# --- facts


def test_a_page_says_what_it_is_in_its_head_and_its_first_heading() -> None:
    page = read(
        "<!doctype html><html lang=' de-AT '><head><meta name=Description content='Tee\n &amp; mehr'>"
        "<meta name=robots content='index, NoArchive'><link rel=canonical href=' /tee?a=1&amp;b=2 '></head>"
        "<body><h2>Menu</h2><h1>All about <b>te</b>a <img alt=leaf></h1><h1>again</h1>Text"
    )
    assert page.facts._replace(text_hash=None) == Facts(
        "Tee & mehr", "de-AT", "/tee?a=1&b=2", "All about tea leaf", noarchive=True
    )


@pytest.mark.parametrize("lang", ["", "not a tag", "de_AT", "x" * 9, "<script>"])
def test_a_lang_that_is_no_language_tag_is_none(lang: str) -> None:
    assert read(f"<html lang='{lang}'>").facts.language is None


def test_the_text_hash_tells_texts_apart_and_nothing_else() -> None:
    one = read("<title>a</title><p class=x>same   words</p><script>1</script>").facts.text_hash
    assert one == read("<title>b</title><div>same</div>\n<b>words</b><script>2</script>").facts.text_hash
    assert one != read("<p>other words</p>").facts.text_hash
    long = "<p>" + "word " * 3000
    assert read(long).facts.text_hash != read(long + "end").facts.text_hash  # not its beginning alone


@pytest.mark.parametrize(
    ("value", "is_said"),
    [
        (None, False),
        ("noarchive", True),
        ("noindex, NOARCHIVE", True),
        ("otherbot: noarchive", False),
        ("SumiRipple: noarchive", True),
        ("none", False),  # means noindex and nofollow
        ("unavailable_after: noarchive", False),
    ],
)
def test_an_x_robots_tag_can_ask_to_keep_no_copy(value: str | None, is_said: bool) -> None:
    assert header_says_noarchive(value, "SumiRipple") is is_said


# --- pages that mean harm


@pytest.mark.parametrize(
    "body", [b"", b" \n", b"\0", b"\xff\xfe", b"<", b"<a", b"<a href", b"<!--", b"text", b"\x00" * 9]
)
def test_pages_with_nothing_in_them(body: bytes) -> None:
    assert replace(read(body), text=b"", facts=Facts()) == Extracted(None, URL, (), False, 0)


def test_nuls_do_not_end_the_page() -> None:
    page = read(b"<title>a\0b</title>\0<a href='/p\0q'>\0<a href=/x>")
    assert (page.title, page.hrefs) == ("a\ufffdb", ("/p\ufffdq", "/x"))


def test_lone_surrogates_never_leave() -> None:
    page = read(b"<title>\xed\xa0\x80&#xD800;x</title><a href='/&#xDFFF;'><a href='/\xed\xbf\xbf'>")
    orjson.dumps([page.title, page.hrefs])


def test_links_beyond_the_limit_are_counted() -> None:
    page = read("".join(f"<a href=/{i}>" for i in range(50)), max_links=20)
    assert len(page.hrefs) == 20
    assert page.links_cut == 30
    assert page.hrefs[-1] == "/19"


def test_the_limit_counts_addresses_and_not_their_fragments() -> None:
    page = read("".join(f"<a href=/{i % 25}#{i}>" for i in range(500)), max_links=20)
    assert (len(page.hrefs), page.links_cut) == (20, 5)


def test_endless_hrefs_are_dropped_and_counted() -> None:
    page = read(f"<a href=/{'x' * LONGEST_HREF}><a href='data:{'x' * LONGEST_HREF}'><a href=/y>")
    assert (page.hrefs, page.links_cut) == (("/y",), 1)


def test_nesting_deeper_than_the_parser_goes_hides_no_links() -> None:
    body = b"<title>deep</title><a href=/first>" + b"<div class=x>" * 100_000 + b"<a href=/deep>x</a><a href=/after>"
    page = read(body)
    assert (page.title, page.hrefs) == ("deep", ("/first", "/deep", "/after"))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("value", ["", "=1", '=">"', "='<a>'"])
def test_a_tag_of_endless_attributes_costs_only_itself(value: str) -> None:
    noise = " ".join(f"a{i}{value}" for i in range(300_000))
    assert links(f"<a href=/before><p {noise}><a href=/after>") == ["/before", "/after"]


def test_a_script_that_looks_like_such_a_tag_is_left_alone() -> None:
    script = "<script>if (a <b && c) { " + "x = 5 ; " * 20_000 + "}</script>"
    assert links(f"{script}<a href=/after>") == ["/after"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "<a ",
        '<a x="',
        "<a x='\"",
        "<b y=",
        "</a ",
        "<!-",
        "<!--",
        "<![CDATA[",
        "<?x ",
        "<script>",
        "<title>",
        "&amp",
        "<table><tr><td>",
        "<select><option>",
        "<svg><title>",
        "<base href=x>",
        "<meta charset=x>",
        "<p><font>",
        "\0",
    ],
)
def test_megabytes_of_one_thing_end(piece: str) -> None:
    read(piece * (1_000_000 // len(piece)))


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=400), st.sampled_from([None, "text/html", "text/html; charset=utf-16", "application/xhtml+xml"])
)
def test_no_bytes_crash_the_reader(body: bytes, content_type: str | None) -> None:
    orjson.dumps(read(body, content_type), default=repr)


PIECES = st.sampled_from(
    [
        "<a href=",
        "'",
        '"',
        ">",
        "/x",
        "javascript:",
        "<base href=",
        "<title>",
        "</title>",
        "<meta name=robots content=",
        "nofollow",
        "<link rel=canonical href=",
        "<!--",
        "-->",
        "<script>",
        "</script>",
        "é",
        "&#xD800;",
        "\0",
        " ",
        "\n",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join))
def test_no_tag_soup_lets_a_foreign_scheme_through(soup: str) -> None:
    page = read(soup)
    orjson.dumps(page, default=repr)
    assert page.base.startswith("https://")
    for href in page.hrefs:
        assert href
        assert not href.startswith(("#", "javascript:"))
        assert href == href.strip()
