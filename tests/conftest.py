"""What every test process needs."""

from __future__ import annotations

import logging
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """An empty folder whose path leaves room for that of a socket, which `tmp_path` may not."""
    with tempfile.TemporaryDirectory(prefix="sumi-") as folder:
        yield Path(folder)
