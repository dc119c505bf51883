"""A workspace in the middle of a crawl, as heartbeats show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.runs import Run, RunStatus, write_run
from tests.crawler.observe.beats import beat


@pytest.fixture
def workspace(tmp_path: Path) -> FileWorkspace:
    made = FileWorkspace(tmp_path / "workspace")
    made.prepare()
    write_run(made, Run(3, RunStatus.RUNNING))
    beat(made, "scheduler", {"released": 10, "active_domains": 4, "waiting_domains": 12_000})
    beat(made, "fetcher-01", {"in_flight": 3, "requests": 900, "next_due": {"domain": "b.test", "seconds": 2.5}})
    beat(made, "fetcher-02", {"in_flight": 4, "requests": 100, "next_due": {"domain": "a.test", "seconds": 0.5}})
    counts = {"pages": 1234, "known": 5678, "links": 98_765, "frontier": 4321, "errors": 1, "crawled": 1200}
    counts |= {"run": 3, "backlog": 2048}
    beat(made, "ingest", counts)
    return made
