"""A prepared workspace, and a clock that tests set."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.workspace.files.file_workspace import FileWorkspace
from tests.crawler.pace.clocks import Clock


@pytest.fixture
def workspace(tmp_path: Path) -> FileWorkspace:
    workspace = FileWorkspace(tmp_path)
    workspace.prepare()
    return workspace


@pytest.fixture
def clock() -> Clock:
    return Clock()
