"""Tests that share one crawl run in one process: else each of them makes the crawl again."""

from __future__ import annotations

import os

import pytest


@pytest.mark.xdist_group("together")
@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="there is one process only")
def test_the_groups_of_tests_are_honoured(request: pytest.FixtureRequest) -> None:
    assert request.node.nodeid.endswith("@together"), "pytest and pytest-xdist do not fit together"
