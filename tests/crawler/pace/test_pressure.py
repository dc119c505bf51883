"""Backpressure: at full speed up to half of a limit, slower from there on, waiting at the limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.settings import SpoolSettings
from crawler.pace.pressure import Load, Pressure, pressure

LIMITS = SpoolSettings(max_backlog=1000, max_backlog_bytes=1_000_000, min_free_disk=100 * 2**20)
PLENTY = 10**12


@pytest.mark.parametrize(
    ("load", "share", "doing"),
    [
        (Load(), 1.0, ""),
        (Load(500, 0, PLENTY), 1.0, ""),
        (Load(750, 0, PLENTY), 0.5, "slowed down: about 750 results wait to be applied"),
        (Load(1000, 0, PLENTY), 0.0, "waiting: about 1,000 results wait to be applied"),
        (Load(0, 3_000_000, PLENTY), 0.0, "waiting: 2 MiB of results wait to be applied"),
        (Load(0, 0, 200 * 2**20), 1.0, ""),
        (Load(0, 0, 150 * 2**20), 0.5, "slowed down: only 150 MiB of disk are free"),
        (Load(750, 0, 100 * 2**20), 0.0, "waiting: only 100 MiB of disk are free"),
    ],
)
def test_the_tightest_limit_decides(load: Load, share: float, doing: str) -> None:
    found = pressure(load, LIMITS)
    assert (found.share, found.doing) == (share, doing)


def test_a_limit_of_0_is_none() -> None:
    off = SpoolSettings(max_backlog=0, max_backlog_bytes=0, min_free_disk=0)
    assert pressure(Load(10**9, 10**12, 0), off) == Pressure()


@given(st.integers(0, 2000), st.integers(0, 2000), st.integers(0, 10**7), st.integers(0, 10**9))
def test_more_that_waits_never_makes_it_faster(results: int, more: int, size: int, free: int) -> None:
    before, after = pressure(Load(results, size, free), LIMITS), pressure(Load(results + more, size, free), LIMITS)
    assert 0 <= after.share <= before.share <= 1
    assert len(after.doing) <= 60, "status shows no more"
