"""A stage that stands still is told from one that waits."""

from __future__ import annotations

import pytest

from crawler.resilience.stalls import Progress, Work, after, stall_words

S = 1_000_000_000


def test_time_counts_only_while_work_is_due_and_none_is_done() -> None:
    seen = Progress()
    for second, work in enumerate(
        [Work(0, False), Work(0, False), Work(0, True), Work(0, True), Work(1, True), Work(1, True), Work(1, False)]
    ):
        seen = after(seen, work, second * S)
        assert seen.since_ns == {0: 0, 1: S, 2: 2 * S, 3: 2 * S, 4: 4 * S, 5: 4 * S, 6: 6 * S}[second]


@pytest.mark.parametrize(
    ("beat_age", "standing", "stall_after", "expected"),
    [
        (1.0, None, 300, None),
        (1.0, 299.0, 300, None),
        (1.0, 301.0, 300, "work is due, and none was done for 301 s"),
        (301.0, None, 300, "no sign of life for 301 s"),
        (None, None, 300, None),
        (9999.0, 9999.0, 0, None),
    ],
)
def test_what_counts_as_a_stall(
    beat_age: float | None, standing: float | None, stall_after: float, expected: str | None
) -> None:
    assert stall_words(beat_age, standing, stall_after) == expected
