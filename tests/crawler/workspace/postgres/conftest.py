"""Workspaces in the tests' PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from tests.crawler.workspace.engine_opener import EngineOpener, opener_in


@pytest.fixture
def opener(tmp_path: Path) -> Iterator[EngineOpener]:
    with opener_in(tmp_path) as made:
        yield made


@pytest.fixture
def workspace(opener: EngineOpener) -> EngineWorkspace:
    return opener()
