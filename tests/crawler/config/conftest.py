"""A prepared workspace, and a config for it."""

from __future__ import annotations

from tests.crawler.prepared import config, root

__all__ = ["config", "root"]
