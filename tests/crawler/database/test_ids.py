"""Two numbers in one row id."""

from __future__ import annotations

import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from crawler.database.ids import (
    ORIGIN_BITS,
    ORIGIN_LOW,
    depth_id,
    depths_of_page,
    pair_id,
    pair_range,
    pair_sql,
    pairs_of,
    split_pair,
)

_NUMBERS = st.integers(1, (1 << 31) - 1)
_ORIGINS = st.integers(0, ORIGIN_LOW)


@given(_NUMBERS, _NUMBERS, _NUMBERS)
def test_a_pair_comes_back_and_lies_in_the_range_of_its_first(first: int, second: int, other: int) -> None:
    row = pair_id(first, second)
    assert split_pair(row) == (first, second)
    low, high = pair_range(first)
    assert low <= row <= high
    assert row < 1 << 63, "a row id is a signed number of 64 bits"
    assert (low <= pair_id(other, second) <= high) is (other == first)


@given(_NUMBERS, _NUMBERS)
def test_sql_packs_pairs_as_python_does(first: int, second: int) -> None:
    db = sqlite3.connect(":memory:")
    pair, next_pair = pair_sql("?1", "?2"), pair_sql("?1 + 1", "0")
    sql = f"SELECT {pair}, {pair} {pairs_of('?1')}, {next_pair} {pairs_of('?1')}"
    packed, inside, after = db.execute(sql, (first, second)).fetchone()
    assert (packed, inside, after) == (pair_id(first, second), 1, 0)
    db.close()


@given(_NUMBERS, _ORIGINS)
def test_a_depth_lies_in_the_range_of_its_page(page: int, origin: int) -> None:
    row = depth_id(page, origin)
    low, high = depths_of_page(page)
    assert low <= row <= high
    assert (row >> ORIGIN_BITS, row & ORIGIN_LOW) == (page, origin)
    assert depths_of_page(page + 1)[0] == high + 1
