"""A reading that is kept: what comes back is what reading the page again would give, or nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.visit.html import extracted, read
from crawler.visit.page_reading import Reading
from crawler.visit.reading_note import LONGEST_NOTE, key_of, note_of, reading_in
from crawler.visit.validation import LITTLE

KEY = key_of(b"code", (1, "two"), "text/html")
WORDS = b"<title>T\xc3\xa9a</title><meta name=description content=d><h1>H</h1><p>" + b"leaves " * 200
PAGE = WORDS + b"<base href=/b/><a href=1>one</a><a rel='next nofollow' href=?page=2>two</a>"


def test_every_part_of_a_reading_comes_back() -> None:
    page = read(PAGE, "text/html", 100, has_link_text=True, wants_next=True, wants_simhash=True)
    assert page.contexts and page.rel_next and page.numbered and page.facts.simhash and page.base and page.title
    assert reading_in(note_of(page, KEY), KEY) == page


def test_of_a_long_text_its_length_comes_back_alone() -> None:
    page = read(b"<p>" + b"words " * 1000, "text/html", 100)
    found = reading_in(note_of(page, KEY), KEY)
    assert found is not None and len(found.text) == len(page.text) >= LITTLE
    assert replace(found, text=page.text) == page
    assert len(note_of(page, KEY)) < 200


def test_a_note_with_another_key_is_none() -> None:
    note = note_of(read(PAGE, "text/html", 100), KEY)
    for other in (key_of(b"Code", (1, "two"), "text/html"), key_of(b"code", (1, "2"), "text/html")):
        assert reading_in(note, other) is None and not other.is_way_of(note)
    typed = key_of(b"code", (1, "two"), "text/html; charset=utf-8")
    assert reading_in(note, typed) is None and typed.is_way_of(note)


@given(st.binary(max_size=300))
def test_bytes_that_are_no_reading_are_none(data: bytes) -> None:
    assert reading_in(data, KEY) is None
    found = reading_in(KEY.way + KEY.type + data, KEY)
    assert found is None or isinstance(found, Reading)


@given(st.integers(24, 2000), st.integers(0, 7))
def test_a_flipped_bit_raises_nothing(place: int, bit: int) -> None:
    note = bytearray(note_of(read(PAGE, "text/html", 100), KEY))
    note[24 + place % (len(note) - 24)] ^= 1 << bit
    found = reading_in(bytes(note), KEY)
    assert found is None or extracted(found, "https://a.test/") is not None


def test_a_page_that_says_too_much_has_no_note() -> None:
    many = b"".join(b"<a href=/%d-%s>x</a>" % (number, b"x" * 60) for number in range(1100))
    page = read(WORDS + many, "text/html", 10_000)
    assert len(page.hrefs) == 1100 and note_of(page, KEY) == b""
    assert 0 < len(note_of(replace(page, hrefs=page.hrefs[:500]), KEY)) <= LONGEST_NOTE


def test_a_title_that_is_no_text_has_no_note() -> None:
    page = read(PAGE, "text/html", 100)
    assert note_of(replace(page, title="\ud800"), KEY) == b""
