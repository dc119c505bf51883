"""Rates over time."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.database.rate_log import DAY, KEPT, MINUTE, SECOND, RateRow, add_rates, read_rates


def row(at: int, pages: int = 1) -> RateRow:
    return RateRow(at, pages, 2 * pages, 3 * pages, at % 7, at, 1)


def test_seconds_add_up_to_minutes_and_days(tmp_path: Path) -> None:
    path, start = tmp_path / "rates.db", 20 * DAY
    for at in range(start, start + 120, 10):
        add_rates(path, [row(second) for second in range(at, at + 10)], at)
    assert [each.at for each in read_rates(path, SECOND, 0)] == list(range(start, start + 120))
    assert read_rates(path, MINUTE, 0) == [
        RateRow(start, 60, 120, 180, (start + 59) % 7, start + 59, 1),
        RateRow(start + 60, 60, 120, 180, (start + 119) % 7, start + 119, 1),
    ]
    assert [each.pages for each in read_rates(path, DAY, 0)] == [120]


def test_old_seconds_and_minutes_go_and_days_stay(tmp_path: Path) -> None:
    path = tmp_path / "rates.db"
    add_rates(path, [row(0)], 0)
    add_rates(path, [row(30 * DAY)], 30 * DAY)
    assert [len(read_rates(path, step, 0)) for step in (SECOND, MINUTE, DAY)] == [1, 1, 2]
    assert KEPT[SECOND] < KEPT[MINUTE]


def test_a_file_that_is_none_is_no_rates_and_stops_nobody(tmp_path: Path) -> None:
    assert read_rates(tmp_path / "none.db", SECOND, 0) == []
    (tmp_path / "bad.db").write_bytes(b"no database" * 1000)
    add_rates(tmp_path / "bad.db", [row(1)], 1)
    assert read_rates(tmp_path / "bad.db", SECOND, 0) == []


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 9)), max_size=30))
def test_no_page_is_lost_by_rolling_up(samples: list[tuple[int, int]]) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "rates.db"
        add_rates(path, [row(at, pages) for at, pages in samples], 0)
        for step in (SECOND, MINUTE, DAY):
            assert sum(each.pages for each in read_rates(path, step, 0)) == sum(pages for _, pages in samples)
