"""Text for people: figures, cut texts, domains."""

from __future__ import annotations

from crawler.model.shown_text import counted, cut, domain_words, unicode_domain


def test_numbers_come_with_the_right_word() -> None:
    assert (counted(0, "page"), counted(1, "page"), counted(1245, "page")) == ("0 pages", "1 page", "1,245 pages")
    assert (counted(1, "retry", "retries"), counted(2, "retry", "retries")) == ("1 retry", "2 retries")


def test_a_cut_text_is_as_long_as_it_may_be_and_shows_the_cut() -> None:
    assert (cut("abcd", 4), cut("abcde", 4)) == ("abcd", "abc…")


def test_a_domain_is_shown_in_unicode_with_its_punycode() -> None:
    assert domain_words("a.test") == "a.test"
    assert domain_words("xn--bltterwald-r5a.test") == "blätterwald.test (xn--bltterwald-r5a.test)"
    assert unicode_domain("xn--a.test") is None  # no valid punycode: shown as it is
