"""What every test process needs."""

from __future__ import annotations

import logging
import signal

import pytest
from hypothesis import settings

# Hypothesis judges what code does, not how long a busy machine takes for it.
settings.register_profile("house", deadline=None)
settings.load_profile("house")


def pytest_configure(config: pytest.Config) -> None:
    """Heed Ctrl-C: a shell starts background jobs with SIGINT ignored, and the crawls of the tests would inherit it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def untouched_log() -> None:
    """A command that a test before this one ran in this process has sent the program's log lines elsewhere."""
    logger = logging.getLogger("sumi")
    logger.handlers.clear()
    logger.setLevel(logging.NOTSET)
    logger.propagate = True
