"""A short round of each fuzzing target; `make fuzz SECONDS=…` makes long ones."""

from __future__ import annotations

import pytest

from tests.fuzz import run
from tests.fuzz.run import TARGETS, Costly, bounded, fuzz


@pytest.mark.parametrize("label", sorted(TARGETS))
def test_a_short_round_finds_nothing(label: str) -> None:
    fuzz(label, 0, 30)


def test_an_input_that_takes_too_long_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MOST_CPU", -1.0)
    with pytest.raises(Costly):
        bounded(lambda: None)()
