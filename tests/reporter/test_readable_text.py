"""HTML as text to read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.readable_text import readable_text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One</p><p>Two &amp; <b>three</b></p>", "One\nTwo & three"),
        ("<script>alert(1)</script>after<style>x{}</style> it", "after it"),
        ("<SCRIPT>alert('<p>')</script >after", "after"),
        ("a<!-- <p>hidden</p> -->b", "ab"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("<ul><li>a<li>b</ul>", "a\nb"),
        ("cut <a href='", "cut"),
        ("x<script>never closed", "x"),
        ("<!doctype html><title>T</title>", "T"),
        ("&lt;script&gt;", "<script>"),
        ("", ""),
    ],
)
def test_text_is_what_stands_between_tags(html: str, text: str) -> None:
    assert readable_text(html, 1000)[0] == text


def test_a_long_text_is_cut_and_says_so() -> None:
    assert readable_text("a" * 50, 10) == ("a" * 10, True)
    assert readable_text("<p>" + "a" * 10, 10) == ("a" * 10, False)


@given(st.text(st.sampled_from("<>/!-abpscript ='\"&;\n"), max_size=200), st.integers(0, 100))
def test_no_input_fails_and_the_length_holds(html: str, most: int) -> None:
    assert len(readable_text(html, most)[0]) <= most
