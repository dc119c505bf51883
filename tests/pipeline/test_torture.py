"""A short `make torture`: processes are killed, and the map is that of a calm crawl."""

from __future__ import annotations

import pytest

from tests.torture.run import torture

pytestmark = pytest.mark.xdist_group("torture")  # beside the other crawls: together they take longer than all the rest


def test_a_torture_of_one_round_ends_in_the_calm_map() -> None:
    assert torture(1, seed=20, inside=5, outside=4) >= 4


def test_a_torture_of_sitemaps_and_guesses_ends_in_the_calm_map() -> None:
    said: list[str] = []
    assert torture(1, seed=20, inside=4, outside=2, has_discovery=True, say=said.append) >= 2
    requests = int(said[0].split()[-2])
    assert requests >= 108, "all pages that no link leads to were asked for"
