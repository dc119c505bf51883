"""What every test process needs."""

from __future__ import annotations

import signal

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Heed Ctrl-C: a shell starts background jobs with SIGINT ignored, and the crawls of the tests would inherit it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
