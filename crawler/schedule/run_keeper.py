"""The runs: started, resumed, interrupted and finished by the scheduler. Each is a recorded decision."""

from __future__ import annotations

import logging

from crawler.database.frontier import Frontier
from crawler.model import recorded_settings
from crawler.model.records import RunEvent
from crawler.model.settings import Config
from crawler.model.shown_text import counted
from crawler.schedule.decision_log import WRITER, DecisionLog
from crawler.workspace.clock import now_text
from crawler.workspace.door import Workspace
from crawler.workspace.log import BEGINNING
from crawler.workspace.runs import Run, RunStatus, newest_run, read_run, recorded_runs, write_run

log = logging.getLogger("sumi.scheduler")

_ROBOTS_KEPT = 24 * 3600.0  # seconds; no pace needs a gate for longer, unless the config says so


class RunKeeper:
    """The run that this scheduler works on. `run` is None before `start_or_resume`.

    Invariant: the run's document is written after the event that it tells of is durable.
    """

    def __init__(self, config: Config, workspace: Workspace, frontier: Frontier, decisions: DecisionLog) -> None:
        self._config = config
        self._workspace = workspace
        self._frontier = frontier
        self._decisions = decisions
        self.run: Run | None = None
        self.is_new = False  # this process started it
        self.is_finishing = False  # `finished` is recorded; the map has not applied it yet
        self.is_renewed = True  # the limits of [limits] count anew: the run was started, or stopped in an orderly way

    @property
    def number(self) -> int:
        assert self.run is not None
        return self.run.number

    @property
    def is_completed(self) -> bool:
        """Is the run completed, in the map too?"""
        return self.run is not None and self.run.status is RunStatus.COMPLETED

    def start_or_resume(self) -> None:
        """Resume the run that is not over, or start the next one.

        The map may be older than the decision log, and the run's document older than both. So the map counts, plus the
        events after the position up to which the map has read.
        """
        known = self._frontier.last_run()
        position = self._frontier.positions().get(WRITER, BEGINNING)
        in_map = Run(known[0], RunStatus(known[1])) if known else None
        last = newest_run(in_map, self._decisions.run_events(position))
        if last is None or last.status is RunStatus.COMPLETED:
            if last is not None and read_run(self._workspace) == Run(last.number, RunStatus.RUNNING):
                # The run was finished, and the scheduler was killed before it could say so: only that is left to do.
                self.run = Run(last.number, RunStatus.RUNNING)
                self.is_finishing = True
                self._workspace.ring("ingest")
                return
            self._start(last.number + 1 if last else 1)
            return
        if self._config.starts_next_run and last.status is RunStatus.INTERRUPTED:
            self.run = last
            self._record("finished", RunStatus.RUNNING, "the next run was asked for")
            self._start(last.number + 1)
            return
        self.is_renewed = self._was_stopped(last)
        self.run = Run(last.number, RunStatus.RUNNING)
        self._record("resumed", RunStatus.RUNNING)
        log.info("Found interrupted run #%d, resuming...", last.number)
        if log.isEnabledFor(logging.INFO):
            log.info("Loaded %s from frontier", counted(self._frontier.count(), "URL"))
        log.info("Continuing crawl...")

    def _was_stopped(self, last: Run) -> bool:
        """Was this run stopped in an orderly way? A map that was just rebuilt calls every run interrupted that is not
        completed, so the log is asked, as far as it is kept.
        """
        if last.status is not RunStatus.INTERRUPTED:
            return False
        return recorded_runs(self._workspace).get(last.number, last.status) is RunStatus.INTERRUPTED

    def _start(self, number: int) -> None:
        self.run = Run(number, RunStatus.RUNNING)
        self.is_new = True
        settings = self._config.crawler
        longest = max(settings.max_crawl_delay, settings.max_retry_after, settings.minimum_time_on_page) / 1000
        self._workspace.forget_idle(max(longest, _ROBOTS_KEPT))
        self._record("started", RunStatus.RUNNING)
        log.info("Starting run #%d", number)
        seeds = sum(len(entry.seeds) for entry in self._config.quality)
        log.info("Seeding frontier with %s", counted(seeds, "URL"))

    def finish(self) -> None:
        """Nothing is left to visit: record the end. The run is over once the map has applied that."""
        self._record("finished", RunStatus.RUNNING)
        self.is_finishing = True

    def interrupt(self, reason: str = "") -> None:
        """Mark a run that is under way as interrupted: by the user, or by a limit, which `reason` names."""
        if self.run is not None and self.run.status is RunStatus.RUNNING and not self.is_finishing:
            self._record("interrupted", RunStatus.INTERRUPTED, reason)
            why = f"has reached its limit ({reason})" if reason else "interrupted"
            log.info("Run #%d %s; it goes on when the same command is given again", self.run.number, why)

    def has_begun_in_map(self) -> bool:
        """Has the map applied every decision before this process's run event? Of a new run it may lack some seeds."""
        if not self.is_new:
            return self.is_in_map()
        known = self._frontier.last_run()
        return known is not None and known[0] >= self.number

    def is_in_map(self) -> bool:
        """Has the map applied this process's run event, and so all seeds of the run?"""
        return self._frontier.positions().get(WRITER, BEGINNING) >= self._decisions.run_event_end

    def is_completed_in_map(self) -> bool:
        known = self._frontier.last_run()
        return known is not None and known[0] >= self.number and known[1] == RunStatus.COMPLETED

    def complete(self) -> None:
        """Tell the other stages: they watch the run's document."""
        self.run = Run(self.number, RunStatus.COMPLETED)
        write_run(self._workspace, self.run)
        log.info("Run #%d completed successfully", self.run.number)

    def _record(self, event: str, status: RunStatus, reason: str = "") -> None:
        config = self._config
        settings = recorded_settings.dump(config) if event in ("started", "resumed") else ""
        self._decisions.record(
            RunEvent(self.number, now_text(), event, config.config_hash, config.map_hash, settings, reason)
        )
        self.run = Run(self.number, status, reason if event == "interrupted" else "")
        if event != "finished":
            write_run(self._workspace, self.run)


def mark_interrupted(config: Config, workspace: Workspace) -> bool:
    """Mark the run as interrupted where no scheduler has: a stop in the middle of a reload finds none at work.

    False: there is no run under way. For the end of a crawl, when all its stages have ended. Raises WorkspaceError.
    """
    run = read_run(workspace)
    if run is None or run.status is not RunStatus.RUNNING:
        return False
    if recorded_runs(workspace).get(run.number) is RunStatus.COMPLETED:
        return False  # only the map has to apply that
    role = workspace.take_role("scheduler")
    decisions, frontier = DecisionLog(workspace, config.spool.segment_size), Frontier(config.map_place)
    try:
        keeper = RunKeeper(config, workspace, frontier, decisions)
        keeper.run = run
        keeper.interrupt()
    finally:
        decisions.close()
        frontier.close()
        role.release()
    return True
