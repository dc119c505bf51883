"""The run: its number and status, from the document `run` and from run events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import orjson

from crawler.model.records import RunEvent
from crawler.workspace.clock import now_text
from crawler.workspace.door import Workspace
from crawler.workspace.reading import read_records

DECISIONS = "scheduler"  # the result log with the run events
_DOCUMENT = "run"
_MOST = 2**31  # gates keep the number of a run in 32 bits


class RunStatus(StrEnum):
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class Run:
    """A run by its number, with its status. `reason`: the limit that interrupted it."""

    number: int
    status: RunStatus
    reason: str = ""

    @property
    def is_over(self) -> bool:
        """Is there nothing left to do for the stages: is the run completed, or has it reached a limit?"""
        return self.status is RunStatus.COMPLETED or (self.status is RunStatus.INTERRUPTED and bool(self.reason))


_AFTER = {
    "started": RunStatus.RUNNING,
    "resumed": RunStatus.RUNNING,
    "interrupted": RunStatus.INTERRUPTED,
    "finished": RunStatus.COMPLETED,
}


def newest_run(known: Run | None, events: Iterable[RunEvent]) -> Run | None:
    """The newest run: the one that the map knows, changed by the events that the map has not applied yet."""
    run = known
    for event in events:
        if event.event in _AFTER and (run is None or event.run >= run.number):
            run = Run(event.run, _AFTER[event.event], event.reason if event.event == "interrupted" else "")
    return run


def recorded_runs(workspace: Workspace, *, is_live_only: bool = True) -> dict[int, RunStatus]:
    """The status of every run that the scheduler's log tells of, as far as it is live or (raises ArchiveAway) whole."""
    reader = workspace.results.reader(DECISIONS, is_live_only=is_live_only)
    try:
        found: dict[int, RunStatus] = {}
        for event, _ in read_records(reader, RunEvent):
            if event.event in _AFTER:
                found[event.run] = _AFTER[event.event]
        return found
    finally:
        reader.close()


def read_run(workspace: Workspace) -> Run | None:
    """The run by its document; None if there is no document, or none that can be read.

    A document that says `completed` is believed only if the scheduler recorded the end: documents may be damaged, and a
    run that ends too early leaves its waiting pages.
    """
    content = workspace.document(_DOCUMENT)
    run = None if content is None else _parse(content)
    if run is None or run.status is not RunStatus.COMPLETED:
        return run
    return run if _is_believable(run, recorded_runs(workspace)) else Run(run.number, RunStatus.RUNNING)


def _is_believable(run: Run, recorded: dict[int, RunStatus]) -> bool:
    """Does the log agree with a run's document? A log without any run (results were removed) does not disagree."""
    if not recorded:
        return True
    return run.number in recorded and (run.status is not RunStatus.COMPLETED or recorded[run.number] is run.status)


def read_run_text(workspace: Workspace) -> str:
    """The run's document as text, to tell whether it changed: a resumed run may be completed a second time."""
    return (workspace.document(_DOCUMENT) or b"").decode("utf-8", "replace")


def write_run(workspace: Workspace, run: Run) -> None:
    fields = {"v": 1, "run": run.number, "status": run.status.value, "at": now_text(), "reason": run.reason}
    content = orjson.dumps(fields)
    workspace.write_document(_DOCUMENT, content)


def _parse(content: bytes) -> Run | None:
    try:
        fields = orjson.loads(content)
        number, reason = int(fields["run"]), str(fields.get("reason") or "")
        return Run(number, RunStatus(fields["status"]), reason) if 0 <= number < _MOST else None
    except (ValueError, KeyError, TypeError):
        return None


class RunWatch:
    """Watches the run's document, for a stage that waits for the end of a run that it has seen running."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._content: bytes | None = None
        self._seen_running: int | None = None
        self.number = 0  # of the newest run; 0: none yet
        self.is_completed = False

    def refresh(self) -> None:
        """Look at the document again."""
        content = self._workspace.glance(_DOCUMENT)
        if content is None or content == self._content:
            return
        self._content = content
        run = _parse(content)
        if run is None or not _is_believable(run, recorded_runs(self._workspace)):
            return
        self.number = max(self.number, run.number)
        if run.status is RunStatus.RUNNING:
            self._seen_running = run.number
        elif run.is_over and self._seen_running == run.number:
            self.is_completed = True
