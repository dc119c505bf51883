"""The map that most of the reporter's tests read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reporter.terrain import rich_map


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rich_map(tmp_path_factory.mktemp("rich") / "map.db")
