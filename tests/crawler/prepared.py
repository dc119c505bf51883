"""Fixtures: a prepared workspace, and a config for it. The conftest of a package that needs them imports them."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.model.settings import Config, CrawlerSettings, OutputSettings, QualityEntry
from crawler.workspace.files.file_workspace import FileWorkspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    FileWorkspace(tmp_path / "workspace").prepare()
    return tmp_path / "workspace"


@pytest.fixture
def config(tmp_path: Path, root: Path) -> Config:
    return Config(
        crawler=CrawlerSettings(minimum_time_on_page=60_000),
        output=OutputSettings(tmp_path / "my.map.db", tmp_path / "summary.md"),
        quality=(QualityEntry("a.test", ("https://a.test/",)),),
        workspace=root,
    )
