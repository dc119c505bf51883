"""The run's document, and what run events add up to."""

from __future__ import annotations

from pathlib import Path

from crawler.model.records import RunEvent
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.runs import Run, RunStatus, RunWatch, newest_run, read_run, write_run
from tests.crawler.workspace.memory_workspace import MemoryWorkspace


def test_events_that_the_map_has_not_applied_count_for_the_newest_run() -> None:
    started, finished = RunEvent(3, "", "started"), RunEvent(3, "", "finished")
    assert newest_run(None, []) is None
    assert newest_run(Run(2, RunStatus.COMPLETED), [started]) == Run(3, RunStatus.RUNNING)
    assert newest_run(Run(3, RunStatus.RUNNING), [started, finished]) == Run(3, RunStatus.COMPLETED)
    assert newest_run(Run(3, RunStatus.RUNNING), [RunEvent(1, "", "finished")]) == Run(3, RunStatus.RUNNING)


def test_a_run_document_that_cannot_be_read_is_no_document(tmp_path: Path) -> None:
    workspace = FileWorkspace(tmp_path)
    workspace.prepare()
    assert read_run(workspace) is None
    write_run(workspace, Run(4, RunStatus.INTERRUPTED))
    assert read_run(workspace) == Run(4, RunStatus.INTERRUPTED)
    workspace.layout.run_file.write_bytes(b'{"run": 4, "status": "dancing"}')
    assert read_run(workspace) is None


def test_a_watch_sees_the_end_of_a_run_only_if_it_saw_it_running() -> None:
    workspace = MemoryWorkspace()
    late, early = RunWatch(workspace), RunWatch(workspace)
    write_run(workspace, Run(4, RunStatus.RUNNING))
    early.refresh()
    write_run(workspace, Run(4, RunStatus.COMPLETED))
    early.refresh()
    late.refresh()
    assert (early.number, early.is_completed) == (4, True)
    assert (late.number, late.is_completed) == (4, False)
