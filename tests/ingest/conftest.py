from __future__ import annotations

from pathlib import Path

import pytest

from crawler.model.settings import Config
from tests.ingest.terrains import config


@pytest.fixture
def rules(tmp_path: Path) -> Config:
    return config(tmp_path)
