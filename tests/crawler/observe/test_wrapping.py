"""Lines as wide as the terminal: broken between words, in their columns, never inside a word."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from crawler.observe.wrapping import fitted


def test_what_follows_a_label_stays_in_its_column() -> None:
    line = '  class         quality, by [[quality]] domain = "python.docs.test" (docs.toml:19)'
    assert fitted(line, 60) == (
        '  class         quality, by [[quality]] domain =\n                "python.docs.test" (docs.toml:19)'
    )


def test_a_long_word_stays_whole_and_where_it_was_indented() -> None:
    url = "https://python.docs.test/library/" + "x" * 60
    assert fitted(f"        {url} -> here", 60) == f"        {url}\n            -> here"


def test_nothing_is_broken_in_a_pipe() -> None:
    assert fitted("a " * 300, None) == "a " * 300


@given(st.text("ab .", max_size=200), st.sampled_from([20, 60, 80]))
def test_every_word_is_there_in_its_order_and_only_long_words_are_wider(text: str, width: int) -> None:
    found = fitted(text, width)
    assert found.split() == text.split()
    assert all(len(line) <= width or len(re.findall(r"\S+", line)) <= 1 for line in found.split("\n"))
