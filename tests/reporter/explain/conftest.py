"""The map and the config of the tests of explain."""

from __future__ import annotations

import pytest

from crawler.model.settings import Config
from tests.reporter.explain.test_explanation import ORIGINS
from tests.reporter.terrain import config_for


@pytest.fixture
def config() -> Config:
    return config_for(ORIGINS, blacklist=("ads.test",), stub=("hub.test",))
