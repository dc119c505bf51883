"""A prepared workspace, a config for it, and the loggers as they were before a test that sets them up."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.crawler.prepared import config, root

__all__ = ["config", "root"]


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    yield
    logger = logging.getLogger("sumi")
    logger.handlers.clear()
    logger.propagate = True
