"""Workspaces in the tests' PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from tests.crawler.workspace.engine_opener import EngineOpener
from tests.postgres_server import clean_database


@pytest.fixture
def opener(tmp_path: Path) -> Iterator[EngineOpener]:
    with clean_database(WORKSPACE) as url:
        made = EngineOpener(url, tmp_path / "workspace")
        made().prepare()
        yield made
        made.close()


@pytest.fixture
def workspace(opener: EngineOpener) -> EngineWorkspace:
    return opener()
