"""Promises 1 and 3: whatever the order, however often, the map is the one a plain reading gives."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.records import RunEvent
from tests.ingest.terrains import (
    AT,
    config,
    ingest_all,
    read_after,
    read_database,
    read_plainly,
    results_of,
    terrains,
)

_SETTINGS = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
_FEWER = settings(_SETTINGS, max_examples=50)


@_SETTINGS
@given(st.data())
def test_any_order_of_arrival_gives_the_plain_reading(data: st.DataObject) -> None:
    """Lists, redirects, failures, closed domains and families, some closed for several reasons."""
    terrain = data.draw(terrains())
    max_depth = data.draw(st.integers(0, 3))
    expected = read_plainly(terrain, max_depth)
    results = data.draw(st.permutations(results_of(terrain, expected)))
    again = data.draw(st.lists(st.sampled_from(results), max_size=3)) if results else []
    batch = data.draw(st.sampled_from([1, 2, 5, 100]))
    with tempfile.TemporaryDirectory() as folder:
        path = ingest_all(config(Path(folder), max_depth), [*results, *again], batch)
        assert read_database(path) == expected


@_FEWER
@given(st.data())
def test_any_order_over_two_runs_and_restarts_gives_the_plain_reading(data: st.DataObject) -> None:
    first, second = data.draw(terrains()), data.draw(terrains())
    max_depth = data.draw(st.integers(0, 3))
    one, two = read_plainly(first, max_depth), read_plainly(second, max_depth)
    results = [
        *data.draw(st.permutations(results_of(first, one))),
        RunEvent(1, AT, "finished"),
        RunEvent(2, AT, "started"),
        *data.draw(st.permutations(results_of(second, two, 2))),
    ]
    again = data.draw(st.lists(st.sampled_from(results), max_size=3))
    batch = data.draw(st.sampled_from([1, 2, 5, 100]))
    with tempfile.TemporaryDirectory() as folder:
        rules = config(Path(folder), max_depth)
        path = ingest_all(rules, [*results, *again], batch, forgetful=data.draw(st.booleans()))
        assert read_database(path) == read_after(one, two)


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
