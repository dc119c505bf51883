"""Which run is it, and is it over? `state/run.json`, and what the records of runs add up to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import orjson

from crawler.workspace.clock import now_text
from crawler.model.records import RunEvent
from crawler.workspace.layout import Workspace
from crawler.workspace.atomic import write_atomically


class RunStatus(StrEnum):
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class Run:
    """A run by number, and how it stands."""

    number: int
    status: RunStatus


_AFTER = {
    "started": RunStatus.RUNNING,
    "resumed": RunStatus.RUNNING,
    "interrupted": RunStatus.INTERRUPTED,
    "finished": RunStatus.COMPLETED,
}


def standing(known: Run | None, events: Iterable[RunEvent]) -> Run | None:
    """The newest run: what the map knows, and then the events that it has not taken in yet, in order."""
    run = known
    for event in events:
        if event.event in _AFTER and (run is None or event.run >= run.number):
            run = Run(event.run, _AFTER[event.event])
    return run


def read_run(workspace: Workspace) -> Run | None:
    """What `state/run.json` says; None if there is none, or none that can be read."""
    try:
        fields = orjson.loads(workspace.run_file.read_bytes())
        return Run(int(fields["run"]), RunStatus(fields["status"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_note(workspace: Workspace) -> str:
    """`state/run.json` as it stands, to see whether it has changed: a resumed run may complete a second time."""
    try:
        return workspace.run_file.read_text("utf-8", "replace")
    except OSError:
        return ""


def write_run(workspace: Workspace, run: Run) -> None:
    content = orjson.dumps({"v": 1, "run": run.number, "status": run.status.value, "at": now_text()})
    write_atomically(workspace.run_file, content)


class RunWatch:
    """Watches `state/run.json` for one that waits for the end of the run it has seen running."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._stamp: tuple[int, int] | None = None
        self._seen_running: int | None = None
        self.number = 0  # of the newest run so far; 0: none yet
        self.is_completed = False

    def look(self) -> None:
        try:
            status = self._workspace.run_file.stat()
        except OSError:
            return
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        run = read_run(self._workspace)
        if run is None:
            return
        self.number = max(self.number, run.number)
        if run.status is RunStatus.RUNNING:
            self._seen_running = run.number
        elif run.status is RunStatus.COMPLETED and self._seen_running == run.number:
            self.is_completed = True
