"""The levels of seed 004 §5, and the ranks that follow from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.database.format import UNLINKED_PRIORITY
from crawler.rules.page_priority import KIND_BITS, OUTSIDE, Level, PageKind, kind_of, level_of, rank_of

kinds = st.sampled_from(PageKind)
depths = st.integers(0, 1000)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("https://a.test/", PageKind.FRONT),
        ("https://a.test/about", PageKind.CONTENT),
        ("https://a.test/blog/2023/05/frost", PageKind.CONTENT),
        ("https://a.test/article/1022", PageKind.CONTENT),
        ("https://a.test/monarchies", PageKind.CONTENT),
        ("https://a.test/news?page=3", PageKind.LISTING),
        ("https://a.test/news/page/3", PageKind.LISTING),
        ("https://a.test/blog/2023", PageKind.LISTING),
        ("https://a.test/blog/2023/05", PageKind.LISTING),
        ("https://a.test/2023/5?view=list", PageKind.LISTING),
        ("https://a.test/archive", PageKind.LISTING),
        ("https://a.test/blog/Archives/", PageKind.LISTING),
        ("https://a.test/archive/old-story", PageKind.CONTENT),
    ],
)
def test_an_address_says_what_kind_of_page_it_leads_to(key: str, kind: PageKind) -> None:
    assert kind_of(key, "a.test") is kind


def test_a_seed_goes_with_the_front_pages_whatever_its_address() -> None:
    assert kind_of("https://a.test/blog/2023?page=2", "a.test", is_seed=True) is PageKind.FRONT


@pytest.mark.parametrize(
    ("kind", "depth", "level"),
    [
        (PageKind.FRONT, 9, Level.HIGH),
        (PageKind.CONTENT, 2, Level.HIGH),
        (PageKind.CONTENT, 3, Level.MEDIUM),
        (PageKind.CONTENT, 5, Level.LOW),
        (PageKind.LISTING, 0, Level.LOW),
    ],
)
def test_seeds_front_pages_and_shallow_pages_are_high_and_lists_and_deep_pages_are_low(
    kind: PageKind, depth: int, level: Level
) -> None:
    assert level_of(kind, depth) is level


@given(kinds, depths, st.booleans(), kinds, depths, st.booleans())
def test_by_depth_no_level_goes_before_a_nearer_page(
    kind: PageKind, depth: int, is_quality: bool, other: PageKind, deeper: int, is_other_quality: bool
) -> None:
    one = rank_of(kind, depth, is_quality=is_quality, by_level=False)
    two = rank_of(other, deeper, is_quality=is_other_quality, by_level=False)
    assert (one < two) == ((depth, not is_quality, kind) < (deeper, not is_other_quality, other))


@given(kinds, kinds, depths)
def test_at_one_depth_a_better_level_never_goes_after_a_lower_one(one: PageKind, other: PageKind, depth: int) -> None:
    if level_of(one, depth) > level_of(other, depth):
        assert rank_of(one, depth, is_quality=True, by_level=False) < rank_of(
            other, depth, is_quality=True, by_level=False
        )


@given(kinds, depths, st.booleans(), kinds, depths, st.booleans())
def test_by_priority_the_level_decides_first_and_then_the_depth(
    kind: PageKind, depth: int, is_quality: bool, other: PageKind, deeper: int, is_other_quality: bool
) -> None:
    one = rank_of(kind, depth, is_quality=is_quality, by_level=True)
    two = rank_of(other, deeper, is_quality=is_other_quality, by_level=True)
    level, lower = -level_of(kind, depth), -level_of(other, deeper)
    assert (one < two) == ((level, depth, not is_quality, kind) < (lower, deeper, not is_other_quality, other))


@given(kinds, depths, st.booleans(), st.booleans())
def test_a_rank_keeps_kind_and_class_and_stays_below_pages_without_a_link(
    kind: PageKind, depth: int, is_quality: bool, by_level: bool
) -> None:
    rank = rank_of(kind, depth, is_quality=is_quality, by_level=by_level)
    assert (rank & KIND_BITS, bool(rank & OUTSIDE)) == (kind, not is_quality)
    assert rank < UNLINKED_PRIORITY
