"""Promises 1 and 3: whatever the order, however often, the map is the one a plain reading gives."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ingest.terrains import config, ingest_all, read_database, read_plainly, results_of, terrains

_SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@_SETTINGS
@given(st.data())
def test_any_order_of_arrival_gives_the_plain_reading(data: st.DataObject) -> None:
    terrain = data.draw(terrains())
    max_depth = data.draw(st.integers(0, 3))
    expected = read_plainly(terrain, max_depth)
    results = data.draw(st.permutations(results_of(terrain, expected)))
    again = data.draw(st.lists(st.sampled_from(results), max_size=3)) if results else []
    batch = data.draw(st.sampled_from([1, 2, 5, 100]))
    with tempfile.TemporaryDirectory() as folder:
        path = ingest_all(config(Path(folder), max_depth), [*results, *again], batch)
        assert read_database(path) == expected


@_SETTINGS
@given(st.data())
def test_results_of_pages_that_the_rules_do_not_reach_change_nothing(data: st.DataObject) -> None:
    """Replay under narrower rules: the spools hold more than the map may show."""
    terrain = data.draw(terrains())
    wide, narrow = 3, data.draw(st.integers(0, 2))
    recorded = read_plainly(terrain, wide)
    results = data.draw(st.permutations(results_of(terrain, recorded)))
    with tempfile.TemporaryDirectory() as folder:
        path = ingest_all(config(Path(folder), narrow), list(results), data.draw(st.sampled_from([1, 4])))
        assert read_database(path) == read_plainly(terrain, narrow)
