"""The scheduler stage: decides what is released next, and nothing else.

It reads the frontier table (the truth) and the ingest's feed (hints), and releases jobs in windows: a few for each
domain, for a bounded number of domains, best priority first. It also keeps the runs and closes families of similar
URLs. Those are decisions, so they are recorded in its own result log before they take effect.

    limit_counts   counts what [limits] bounds
    run_keeper     starts, resumes, interrupts and finishes runs
    domain_queues  which domain is served next; which pages are outstanding
    page_guesses   pages that no link leads to, tried when nothing else is left
    cooling        domains whose circuit breaker is open
    order_taker    what people ask for, as decisions of the run
    carrying       pages that are not due, carried into the run
    job_release    windows of jobs, from the table into the workspace
    decision_log   what is decided, durably

Invariants:
- memory holds the names of domains that have had pages to visit, and the outstanding pages: never the frontier;
- nothing is released before the map has begun this process's run, and so has applied all decisions before it; the
  run is not over before the map has applied its event, and so has all seeds;
- the terms (`crawler.workspace.terms`) name this process's settings only once they are recorded, and windows that were
  released under others are withdrawn.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from crawler.database.frontier import Frontier, MapAway
from crawler.model.records import Feed
from crawler.model.settings import Config
from crawler.resilience.stalls import Work
from crawler.schedule.cooling import CoolingDomains
from crawler.schedule.decision_log import DecisionLog
from crawler.schedule.domain_queues import ActiveDomain, DomainQueues
from crawler.schedule.job_release import JobReleaser, window_for
from crawler.schedule.limit_counts import LimitCounts
from crawler.schedule.order_taker import OrderTaker
from crawler.schedule.page_guesses import PageGuesses
from crawler.schedule.run_keeper import RunKeeper
from crawler.workspace.clock import seconds_since
from crawler.workspace.control import REPLACED, StageControl, wait_for_role
from crawler.workspace.door import Workspace
from crawler.workspace.log import BEGINNING
from crawler.workspace.opening import open_workspace
from crawler.workspace.reading import parse_lines
from crawler.workspace.runs import Run
from crawler.workspace.terms import read_terms, write_terms

log = logging.getLogger("sumi.scheduler")

_IDLE = 1.0  # seconds between steps when no bell rings
_AWAY = 0.25  # seconds between steps while waiting for something that must come soon
_CHECK_EVERY = 5.0  # seconds between comparisons with the table, in case a hint was lost
_LOST_AFTER = 10.0  # seconds without progress before a domain is examined; doubled by each fruitless release
_WINDOWS_A_STEP = 64  # windows, and then they are announced …
_WINDOWS_AT_FIRST = 8  # … but few at first, and twice as many with each step: until then all fetchers wait
_STRAGGLERS = 10.0  # seconds for the ingest to read all results before windows are withdrawn: fetchers may go on
_ARCHIVES_AFTER = 86_400.0  # seconds of a run; before that they wait for its end, so that no order of visits matters
_ARCHIVES_EVERY = 60.0  # seconds between looks for archives to try
_DAY = 86_400.0  # seconds between archives of a domain that has other pages to visit


class Scheduler:
    """`step` as often as the bell rings, then `shutdown`."""

    def __init__(self, config: Config, workspace: Workspace) -> None:
        self._config = config
        self._map_hash = config.map_hash  # once: it is made of every quality entry, and asked for in every step
        self._config_hash = config.config_hash
        self._workspace = workspace
        self._frontier = Frontier(config.map_place)
        self._decisions = DecisionLog(workspace, config.spool.segment_size)
        self._runs = RunKeeper(config, workspace, self._frontier, self._decisions)
        self._windows_a_step = _WINDOWS_AT_FIRST
        self._queues = DomainQueues(window_for(config.crawler), config.crawler.max_active_domains)
        self._releaser = JobReleaser(config, workspace, self._frontier, self._queues, self._decisions)
        self._limits = LimitCounts(config.limits, workspace)
        self._has_limits_begun = False
        self._cooling = CoolingDomains(config, workspace, self._decisions)
        self._guesses = PageGuesses(config, self._frontier, self._decisions)
        self._orders = OrderTaker(workspace, self._frontier, self._decisions, self._after_reset)
        self._feed = workspace.feed.reader()
        self._has_queues = False  # the queues are those of the map that is open
        self._withdraw_at: float | None = None  # when windows of other settings are withdrawn, whoever still has some
        self._checked_at = 0.0
        self._archives_at = self._daily_at = 0.0
        self._has_said_why_waiting = False
        self._has_removed_jobs = False  # all of them, at the end of the run

    @property
    def run(self) -> Run | None:
        return self._runs.run

    @property
    def released(self) -> int:
        """Jobs released by this process."""
        return self._releaser.released

    @property
    def is_over(self) -> bool:
        """Is the run completed, in the map too, or has it reached a limit?"""
        return self._runs.is_completed or (self.run is not None and self.run.is_over)

    def step(self, now: float) -> float:
        """Do what there is to do at `now`; returns the seconds to wait then, if no bell rings before."""
        try:
            if not self._is_ready(now):
                return _AWAY
            if self._runs.is_finishing:
                return self._await_completion()
            self._read_feed(now)
            self._orders.take_up(self._runs.number)
            self._compare_with_table(now)
            reason = self._limits.reached(now, self._outstanding())
            if reason is not None:
                self._runs.interrupt(reason)
                return 0.0
            if self._release(now):
                return 0.0
            if not self._queues.is_empty:
                if self._cooling.are_all_that_is_left(self._queues):
                    self._cooling.close_domains(self._queues, self._runs.number)
                self._releaser.remove_done()
                self._try_archives(now)
                return _IDLE
            if not self._runs.is_in_map():  # seeds are still to come
                return _AWAY
            if self._limits.has_barred:
                self._runs.interrupt(self._limits.reached_domains())
                return 0.0
            if not self._guesses.are_applied():  # asked first: a guess that is applied then is in the frontier
                return _AWAY
            if not self._frontier.is_empty():
                self._queue_waiting_domains()  # rows that no hint told of
            elif not self._guesses.decide(self._runs.number):
                self._runs.finish()
            return 0.0
        except MapAway as problem:
            log.debug("the map is away: %s", problem)
            self._frontier.close()
            self._has_queues = False
            return _AWAY

    def shutdown(self, *, is_told_to_stop: bool) -> None:
        """Close everything. On a user's order, a run that is under way is marked as interrupted."""
        try:
            if is_told_to_stop:
                self._runs.interrupt()
        finally:
            self._limits.save()
            self._decisions.close()
            self._releaser.close()
            self._feed.close()
            self._orders.close()
            self._frontier.close()

    def facts(self) -> dict[str, object]:
        """For the heartbeat."""
        return {
            "run": self.run.number if self.run else None,
            "released": self.released,
            "outstanding": self._outstanding(),
            "active_domains": len(self._queues.active),
            "waiting_domains": len(self._queues.waiting),
            "cooling_domains": len(self._queues.cooling),
            "limits": self._limits.left(),
        }

    def work(self) -> Work:
        """For the heartbeat: a domain that could be served now is work."""
        is_due = self._has_queues and self._queues.next_domain() is not None and not self._limits.has_any
        return Work(self.released, is_due)

    def _after_reset(self, name: str) -> None:
        """A domain may be asked again: by the fetcher that has its jobs, or one that claims them."""
        self._cooling.forget(name)
        self._releaser.announce_again(name, self._runs.number)

    def _try_archives(self, now: float) -> None:
        """In a run that lasts longer than a day: those of domains that have nothing else to visit, and once a day one
        of every domain.
        """
        if not self._config.discovery.archives or now < self._archives_at or not self._guesses.are_applied():
            return
        self._archives_at = now + _ARCHIVES_EVERY
        if now >= self._daily_at:
            self._daily_at = now + _DAY
            self._guesses.decide_archives(self._runs.number, set())
        else:
            self._guesses.decide_archives(self._runs.number, self._queues.names())

    def _outstanding(self) -> int:
        return sum(domain.job_count for domain in self._queues.active.values())

    # -- the map -------------------------------------------------------------------------------------

    def _is_ready(self, now: float) -> bool:
        """Is there a map of this config, with a run under way, and do the queues belong to it?"""
        if self._frontier.is_open and self._frontier.has_been_replaced():
            log.info("The map was rebuilt; reading everything again")
            self._frontier.close()
            self._has_queues = False
        if not self._frontier.is_open:
            self._frontier.open()
        if self._frontier.meta("map_hash") != self._map_hash:
            if not self._has_said_why_waiting:
                log.info("The map was made under another config; waiting until the ingest has rebuilt it")
                self._has_said_why_waiting = True
            return False
        if self.run is None:
            if read_terms(self._workspace) not in (None, self._config_hash):
                write_terms(self._workspace, None)
            self._runs.start_or_resume()
        if self._runs.is_finishing:
            return True
        if not self._has_queues:
            if not self._runs.has_begun_in_map():
                return False
            is_changed = read_terms(self._workspace) != self._config_hash
            are_withdrawn = is_changed and not self._runs.is_new
            if are_withdrawn and self._waits_for_results(now):
                return False
            self._rebuild_queues(now, are_withdrawn=are_withdrawn)
            if is_changed:
                write_terms(self._workspace, self._config_hash)
        return True

    def _waits_for_results(self, now: float) -> bool:
        """Are there visits that the map does not know yet? Their jobs must not be released a second time."""
        if self._withdraw_at is None:
            self._withdraw_at = now + _STRAGGLERS
        return now < self._withdraw_at and not self._has_ingest_read_all()

    def _rebuild_queues(self, now: float, *, are_withdrawn: bool) -> None:
        """Learn from released windows and the table what is outstanding and what waits. Costs a seek a domain.

        `are_withdrawn`: the windows were released under other settings, and nothing of them is to be done any more.
        """
        self._feed.close()
        self._feed = self._workspace.feed.reader()
        self._queues.clear()
        if are_withdrawn:
            self._releaser.withdraw_windows()
        else:
            self._releaser.restore_windows(self._runs.number, now)
        self._queue_waiting_domains()
        self._orders.begin()
        self._has_queues = True
        self._checked_at = now
        age = seconds_since(self._frontier.started_at(self._runs.number))
        self._archives_at = now + max(0.0, _ARCHIVES_AFTER - age)
        self._daily_at = now + _DAY - age % _DAY  # a restart makes no day shorter
        self._begin_limits(now)

    def _begin_limits(self, now: float) -> None:
        """Count what the run has used, also where nothing is limited: a limit may come with the next config."""
        run = self._runs.number
        is_renewed = self._runs.is_renewed and not self._has_limits_begun
        visited, domains = 0, list[str]()
        if self._limits.has_any or (is_renewed and not self._runs.is_new):
            visited, domains = self._frontier.visited_pages(run), self._frontier.visited_domains(run)
        self._limits.begin(run, visited, domains, now, is_renewed=is_renewed)
        self._has_limits_begun = True

    def _queue_waiting_domains(self) -> None:
        for name, priority, _ in self._frontier.domains():
            self._queues.note_work(name, priority)

    def _await_completion(self) -> float:
        if not self._has_removed_jobs:  # no page waits, and the ingest takes a while
            self._has_removed_jobs = True
            self._releaser.remove_all()
        if not self._runs.is_completed_in_map():
            return _IDLE
        self._runs.complete()
        self._workspace.ring("ingest")
        self._releaser.wake_fetchers()
        return 0.0

    # -- the feed ------------------------------------------------------------------------------------

    def _read_feed(self, now: float) -> None:
        before = self._feed.cursor.segment
        while lines := self._feed.read():
            for feed, _ in parse_lines(lines, Feed):  # `_compare_with_table` makes up for a hint that is lost
                self._apply_feed(feed, now)
        if self._feed.cursor.segment > before:
            self._workspace.feed.remove_before(self._feed.cursor.segment)

    def _apply_feed(self, feed: Feed, now: float) -> None:
        active = self._queues.active
        if feed.resync:
            self._drop_settled_pages(now)
            self._queue_waiting_domains()
            return
        if feed.run != self._runs.number:
            return
        visits = sum(page > 0 for _, pages in feed.done for page in pages) - feed.carried
        self._limits.note_visits(visits, feed.bytes)
        for name, pages in feed.done:
            if (domain := active.get(name)) is not None:
                self._queues.remove_done(domain, pages, now, self._releaser.note_done)
            self._queues.retry_held_back(name)
        for name in feed.closed:
            self._queues.note_closed(name)
            if (domain := active.get(name)) is not None:
                waiting = self._frontier.still_waiting(domain.outstanding)
                self._queues.remove_done(domain, domain.outstanding.keys() - waiting, now, self._releaser.note_done)
        for name, priority in feed.work:
            self._queues.note_work(name, priority)

    def _release(self, now: float) -> bool:
        """Release windows, domain after domain. True: there is more to release at once."""
        self._queues.retry_due(now)
        has_more = True
        for _ in range(self._windows_a_step):
            name = self._queues.next_domain()
            left = self._limits.pages_left(self._outstanding()) if self._limits.has_any else None
            if name is None or left == 0:
                has_more = False
                break
            if not self._limits.may_serve(name):
                self._queues.take_from_line(name)
                continue
            self._limits.note_domain(name)
            self._releaser.release_window(name, self._runs.number, now, left)
        self._releaser.announce()
        if has_more:
            self._windows_a_step = min(2 * self._windows_a_step, _WINDOWS_A_STEP)
        return has_more

    # -- against lost hints and lost results ---------------------------------------------------------

    def _compare_with_table(self, now: float) -> None:
        """Every few seconds: does the table agree with the hints? And clean up."""
        if now - self._checked_at < _CHECK_EVERY:
            return
        self._checked_at = now
        self._drop_settled_pages(now)
        self._releaser.clean()
        self._cooling.look(self._queues, self._quiet_domains(now))
        lost = [
            domain
            for domain in self._quiet_domains(now)
            if not domain.job_count or self._releaser.is_worked_off(domain)  # carried pages have no jobs
        ]
        if not lost or not self._has_ingest_read_all():
            return
        # Bookmarks were read before the ends of the logs, and those before the table. So a page that the table still
        # holds was visited without leaving a result that can be read.
        self._drop_settled_pages(now)
        for domain in lost:
            if domain.outstanding:
                self._releaser.release_again(domain, self._runs.number, now)
        self._releaser.announce()

    def _quiet_domains(self, now: float) -> list[ActiveDomain]:
        return [
            domain
            for domain in self._queues.active.values()
            if now - domain.last_progress >= _LOST_AFTER * 2 ** min(domain.fruitless, 6)
        ]

    def _drop_settled_pages(self, now: float) -> None:
        """Remove outstanding pages whose frontier rows are gone."""
        active = self._queues.active
        everything = [page for domain in active.values() for page in domain.outstanding]
        waiting = self._frontier.still_waiting(everything)
        if len(waiting) < len(everything):
            for domain in list(active.values()):
                self._queues.remove_done(domain, domain.outstanding.keys() - waiting, now, self._releaser.note_done)

    def _has_ingest_read_all(self) -> bool:
        """Has the ingest read every whole line of every result log?"""
        results = self._workspace.results
        ends = {name: results.end(name) for name in results.writers()}
        positions = self._frontier.positions()
        for name, end in ends.items():
            position = positions.get(name, BEGINNING)
            if position >= end:
                continue
            reader = results.reader(name, position, is_live_only=True)
            try:
                if reader.read(1):
                    return False
            finally:
                reader.close()
        return True


def run_scheduler(
    config: Config, *, is_supervised: bool = False, on_control: Callable[[StageControl], None] | None = None
) -> int:
    """The scheduler stage, until its run is completed or it is told to stop. Raises WorkspaceError.

    `on_control` gets the control of a stage in a thread, in place of signals.
    Where it is only to be started again, under a changed config, the run goes on: it is not marked as interrupted.
    """
    workspace = open_workspace(config)
    workspace.prepare()
    is_alone = not is_supervised and on_control is None
    role = wait_for_role(workspace, "scheduler") if config.engine.url and is_alone else workspace.take_role("scheduler")
    if role is None:
        return 0
    control = StageControl(workspace, "scheduler", is_supervised=is_supervised)
    (on_control or StageControl.install_signals)(control)
    is_told_to_stop = False
    try:
        scheduler = Scheduler(config, workspace)
        try:
            control.facts = scheduler.facts
            control.work = scheduler.work
            while not scheduler.is_over:
                control.wait_while_paused()
                if control.should_stop():
                    is_told_to_stop = control.exit_code != REPLACED
                    break
                pause = scheduler.step(time.monotonic())
                control.beat("running" if scheduler.run else "waiting for the map")
                if pause and not scheduler.is_over:
                    control.wait(pause)
            return 0 if scheduler.is_over and not control.signals else control.exit_code
        finally:
            scheduler.shutdown(is_told_to_stop=is_told_to_stop)
    finally:
        control.close()
        role.release()
