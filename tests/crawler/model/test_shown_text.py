"""Text for people: figures, cut texts, domains."""

from __future__ import annotations

import pytest

from crawler.model.shown_text import counted, cut, domain_words, text_words, unicode_domain, url_words


def test_numbers_come_with_the_right_word() -> None:
    assert (counted(0, "page"), counted(1, "page"), counted(1245, "page")) == ("0 pages", "1 page", "1,245 pages")
    assert (counted(1, "retry", "retries"), counted(2, "retry", "retries")) == ("1 retry", "2 retries")


def test_a_cut_text_is_as_long_as_it_may_be_and_shows_the_cut() -> None:
    assert (cut("abcd", 4), cut("abcde", 4)) == ("abcd", "abc…")


def test_a_domain_is_shown_in_unicode_with_its_punycode() -> None:
    assert domain_words("a.test") == "a.test"
    assert domain_words("xn--bltterwald-r5a.test") == "blätterwald.test (xn--bltterwald-r5a.test)"
    assert unicode_domain("xn--a.test") is None  # no valid punycode: shown as it is
    assert domain_words("*.xn--bltterwald-r5a.test") == "*.blätterwald.test (*.xn--bltterwald-r5a.test)"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://a.test/xn--x", "https://a.test/xn--x"),
        ("https://xn--bltterwald-r5a.test", "https://blätterwald.test (xn--bltterwald-r5a.test)"),
        ("https://xn--bltterwald-r5a.test:8443/a?b", "https://blätterwald.test:8443/a?b (xn--bltterwald-r5a.test)"),
        ("https://xn--pple-43d.test/", "https://аpple.test/ (xn--pple-43d.test)"),  # a Cyrillic а
        ("https://xn--a/\u202e", "https://xn--a/\ufffd"),
        ("no url: xn--", "no url: xn--"),
        ("", ""),
    ],
)
def test_a_url_is_shown_with_its_domain_in_unicode_and_the_punycode_beside_it(url: str, words: str) -> None:
    assert url_words(url) == words


def test_a_long_url_keeps_its_punycode() -> None:
    shown = url_words("https://xn--bltterwald-r5a.test/" + "x" * 1000, 100)
    assert len(shown) <= 100 and shown.endswith("… (xn--bltterwald-r5a.test)")


def test_a_sentence_is_shown_with_every_name_in_unicode() -> None:
    said = 'quality: + xn--bltterwald-r5a.test from https://xn--bltterwald-r5a.test/, "a.test"'
    shown = "blätterwald.test (xn--bltterwald-r5a.test) from https://blätterwald.test/ (xn--bltterwald-r5a.test)"
    assert text_words(said) == f'quality: + {shown}, "a.test"'
    assert text_words("plain \x1b") == "plain \ufffd"
