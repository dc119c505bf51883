"""Several links of a page to one address, as one."""

from __future__ import annotations

import pytest

from crawler.model.link_context import LONGEST_TEXT, LinkContext, merged, merged_rel


@pytest.mark.parametrize(
    ("rels", "together"),
    [
        ([], ""),
        ([""], ""),
        (["Noopener  me"], "noopener me"),
        (["me", "author me"], "me author"),
        (["nofollow", "nofollow me"], "nofollow me"),
        (["nofollow", ""], ""),  # one link without it vouches for the page
        (["ugc nofollow", "nofollow"], "nofollow"),
        (["sponsored noopener", "me"], "noopener me"),
    ],
)
def test_a_word_counts_if_a_link_has_it_and_a_reservation_if_all_have_it(rels: list[str], together: str) -> None:
    assert merged_rel(rels) == together


def test_an_endless_rel_is_cut_between_words() -> None:
    words = merged_rel([" ".join(f"word{number:06}" for number in range(1000))])
    assert len(words) <= LONGEST_TEXT and set(map(len, words.split())) == {10}
    assert merged_rel(["x" * 1000]) == ""


def test_the_first_text_that_is_not_empty_counts() -> None:
    links = [LinkContext("", "me"), LinkContext("first", "nofollow"), LinkContext("second")]
    assert merged(links) == LinkContext("first", "me")
