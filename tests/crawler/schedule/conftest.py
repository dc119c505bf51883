"""A config, a workspace and a map for the scheduler's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.model.settings import Config, CrawlerSettings, OutputSettings
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.crawler.schedule.scheduling import Map


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(
        crawler=CrawlerSettings(jobs_per_domain=4, max_active_domains=3),
        output=OutputSettings(tmp_path / "map.db", tmp_path / "summary.md"),
        workspace=tmp_path / "workspace",
    )


@pytest.fixture
def workspace(config: Config) -> FileWorkspace:
    made = FileWorkspace(config.workspace)
    made.prepare()
    return made


@pytest.fixture
def map_(config: Config, workspace: FileWorkspace) -> Iterator[Map]:
    made = Map(config, workspace)
    yield made
    made.db.close()
