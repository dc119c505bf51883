"""The scheduler's own result log: every decision is durable there before it takes effect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crawler.model.records import DomainEvent, FamilyEvent, GuessEvent, OrderEvent, PageResult, RunEvent, dump
from crawler.workspace.door import Workspace
from crawler.workspace.log import Cursor
from crawler.workspace.reading import read_records

WRITER = "scheduler"


class DecisionLog:
    """Appends decisions, durably, and wakes the ingest for them."""

    def __init__(self, workspace: Workspace, segment_bytes: int) -> None:
        self._workspace = workspace
        self._writer = workspace.results.writer(WRITER, segment_bytes=segment_bytes)
        self.run_event_end = Cursor()  # the cursor after this process's last run event
        self.guess_end = Cursor()  # the same of guesses and orders

    def record(self, decision: RunEvent | FamilyEvent | DomainEvent | GuessEvent | OrderEvent) -> None:
        """Return once the decision would survive a power cut."""
        end = self._writer.append(dump(decision))
        self._writer.sync()
        if isinstance(decision, RunEvent):
            self.run_event_end = end
        elif isinstance(decision, GuessEvent | OrderEvent):
            self.guess_end = end
        self._workspace.ring("ingest")

    def record_all(self, decisions: Sequence[PageResult]) -> None:
        """Return once all of these would survive a power cut: one sync for all of them."""
        if decisions:
            self._writer.append_all(dump(decision) for decision in decisions)
            self._writer.sync()
            self._workspace.ring("ingest")

    def run_events(self, start: Cursor) -> Iterator[RunEvent]:
        """The run events after a cursor. (The ingest reports lines that cannot be read.)"""
        reader = self._workspace.results.reader(WRITER, start, is_live_only=True)
        try:
            for event, _ in read_records(reader, RunEvent):
                yield event
        finally:
            reader.close()

    def close(self) -> None:
        self._writer.close()
