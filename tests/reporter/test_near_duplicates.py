"""Near duplicates: SimHashes of texts at most three bits apart, in groups."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.visit.simhash import FEWEST_WORDS, simhash
from reporter.near_duplicates import NEAR, near_groups

WORDS = [f"word{number}".encode() for number in range(1000)]


def number(words: list[bytes]) -> int:
    return int(simhash(words) or "", 16)


def test_a_text_with_another_date_is_near_and_another_text_is_not() -> None:
    text = WORDS[:900]
    assert (number(text) ^ number([*text, b"today"])).bit_count() <= NEAR
    assert (number(text) ^ number(WORDS[500:])).bit_count() > NEAR
    assert number(text) == number(text[::-1]), "the order of words does not count"


def test_a_word_that_is_repeated_counts_by_the_logarithm() -> None:
    text = WORDS[:300]
    assert (number(text) ^ number([*text, *[b"word1"] * 30])).bit_count() <= 2 * NEAR
    assert number(text) != number([*text, *[b"menu"] * 10**6])


def test_a_short_text_has_none() -> None:
    assert simhash(WORDS[: FEWEST_WORDS - 1]) is None
    assert simhash([]) is None


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**64 - 1), max_size=12), st.lists(st.integers(0, 63), max_size=4))
def test_groups_are_those_that_pairs_connect(numbers: list[int], flips: list[int]) -> None:
    numbers += [value ^ (1 << flip) for value in numbers[:3] for flip in flips]
    pages = dict(enumerate(numbers, 1))
    near = {(a, b) for a in pages for b in pages if a != b and (pages[a] ^ pages[b]).bit_count() <= NEAR}
    expected = []
    left = set(pages)
    while left:
        group, todo = set(), {left.pop()}
        while todo:
            group.add(one := todo.pop())
            todo |= {b for a, b in near if a == one} - group
        left -= group
        expected.append(sorted(group))
    found = near_groups(pages.items())
    assert sorted(found) == sorted(group for group in expected if len(group) > 1)
    assert [len(group) for group in found] == sorted(map(len, found), reverse=True)
