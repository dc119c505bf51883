"""A snapshot of a workspace."""

from __future__ import annotations

from crawler.observe.live_text import plain_line
from crawler.observe.processes import observe
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.crawler.observe.beats import NOW, beat, seen


def test_heartbeats_that_cannot_be_read_are_skipped(workspace: FileWorkspace) -> None:
    workspace.layout.status_of("ingest").write_bytes(b'{"torn')
    workspace.layout.status_of("fetcher-01").write_bytes(b"[]")
    workspace.layout.status_of("fetcher-02").write_bytes(b'{"name": "fetcher-02", "at": 5, "facts": "none"}')
    assert plain_line(seen(workspace), 0, 0).startswith("run #3 · 0 pages crawled")


def test_a_snapshot_sums_the_figures_of_running_processes(workspace: FileWorkspace) -> None:
    snapshot = seen(workspace)
    assert snapshot.figures() == {
        "pages": 1234, "known": 5678, "links": 98_765, "frontier": 4321, "errors": 1, "in_flight": 7,
        "crawled": 1200, "failed": 1, "waiting": 4321,
    }  # fmt: skip
    assert snapshot.next_due() == ("a.test", 0.5)
    beat(workspace, "fetcher-02", {"in_flight": 4}, doing="stopped")
    assert seen(workspace).figures()["in_flight"] == 3
    assert seen(workspace).next_due() == ("b.test", 2.5)


def test_a_process_without_a_recent_heartbeat_is_stuck_if_it_holds_its_lock(workspace: FileWorkspace) -> None:
    beat(workspace, "ingest", {}, age=60)
    role = workspace.take_role("ingest")
    try:
        (ingest,) = observe(workspace, NOW).by_stage()["ingest"]
        assert ingest.is_running and ingest.is_stuck
    finally:
        role.release()
    (ingest,) = observe(workspace, NOW).by_stage()["ingest"]
    assert not ingest.is_running and not ingest.is_stuck and ingest.pid is None
