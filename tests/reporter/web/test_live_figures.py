"""The live figures."""

from __future__ import annotations

import os

from reporter.web.live_figures import memory_of


def test_the_memory_of_a_process_is_known_and_that_of_none_is_not() -> None:
    found = memory_of(os.getpid())
    assert found is None or found > 1_000_000
    assert memory_of(None) is None and memory_of(2**30) is None
