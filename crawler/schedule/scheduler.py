"""The scheduler: decides what is released next, and nothing else.

It reads the frontier table (the truth) and the ingest's feed (hints), and writes jobs in windows: a few for
each domain, for a bounded number of domains, best priority first. It also keeps the runs: it starts, resumes,
interrupts and finishes them, and it closes families of look-alike URLs. Those are decisions, so they go to its
own result spool before they take effect.

Invariants:
- a page is released once, unless its visit left no trace (see `_release_again`);
- a released page is outstanding until its frontier row is gone, and its job segment stays until then;
- memory holds the names of domains that have had pages to visit, and the outstanding pages: never the frontier;
- nothing is released before the map has taken in this process's own run event, and so all decisions before it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator

from crawler.database.frontier import Frontier, MapAway, Waiting
from crawler.model.records import FamilyEvent, Feed, Job, Release, RunEvent, dump
from crawler.model.settings import Config, CrawlerSettings
from crawler.schedule.families import Shares
from crawler.schedule.turns import Turns
from crawler.workspace.clock import now_text
from crawler.workspace.control import StageControl
from crawler.workspace.door import JobWindow, Workspace
from crawler.workspace.log import Cursor
from crawler.workspace.opening import open_workspace
from crawler.workspace.reading import parse_lines, read_records
from crawler.workspace.runs import Run, RunStatus, newest_run, read_run, write_run

log = logging.getLogger("sumi.scheduler")

WRITER = "scheduler"
_IDLE = 1.0  # seconds between looks when no bell rings
_AWAY = 0.25  # seconds between looks for something that must come soon
_CHECK_EVERY = 5.0  # seconds between comparisons with the table, in case a hint was lost
_LOST_AFTER = 10.0  # seconds without news before a domain is looked at closely; doubled by each fruitless release
_WINDOWS_A_STEP = 64
_WINDOW, _LARGEST_WINDOW = 16, 64
_WINDOW_MS = 6000
_SMALL_SEGMENT = 1024 * 1024  # the release spool is only ever tailed


def window_for(settings: CrawlerSettings) -> int:
    """How many released jobs a domain may have waiting.

    Few, so that a nearer page that is found meanwhile need not wait for many others; but enough for the seconds that
    pass until the map has taken in what was done of them, and the next are released.
    """
    fastest = max(2 * settings.minimum_time_on_page, 1)  # ms a page: HEAD and GET
    return settings.jobs_per_domain or max(_WINDOW, min(-(-_WINDOW_MS // fastest), _LARGEST_WINDOW))


class _ActiveDomain:
    """A domain with outstanding pages."""

    __slots__ = ("families", "fruitless", "has_more", "heard_at", "id", "name", "outstanding", "priority", "windows")

    def __init__(self, name: str, number: int, now: float) -> None:
        self.name = name
        self.id = number
        self.outstanding: dict[int, str] = {}  # page → key
        self.families: dict[int, int] = {}  # page → family, of those that are in one
        self.windows: dict[int, set[int]] = {}  # window number → its pages that are still outstanding
        self.has_more = True  # rows beyond the outstanding ones, as far as is known
        self.priority = 0  # of the best of those
        self.heard_at = now
        self.fruitless = 0  # releases that came to nothing, in a row

    def add(self, page: int, key: str, family: int | None) -> None:
        self.outstanding[page] = key
        if family is not None:
            self.families[page] = family

    def of_family(self, family: int) -> set[int]:
        return {page for page, its_family in self.families.items() if its_family == family}


class Scheduler:
    """`initialize`, then `step` as often as the bell rings, then `shutdown`."""

    def __init__(self, config: Config, workspace: Workspace, ring: Callable[[str], None]) -> None:
        self.config = config
        self.workspace = workspace
        self.frontier = Frontier(config.output.database_path)
        self.run: Run | None = None
        self.released = 0
        self._turns: dict[str, int] = {}  # domains that have had jobs, numbered as they came
        self._ring = ring
        self._window = window_for(config.crawler)
        self._most_active = config.crawler.max_active_domains
        self._waiting = Turns()  # domains without outstanding pages
        self._wanting_more = Turns()  # domains with some, and room for more
        self._active: dict[str, _ActiveDomain] = {}
        self._held_back: dict[str, float] = {}  # nothing but closed families in front: look again then
        self._shares = Shares(self.frontier, config.traps)
        self._unannounced: list[Release] = []
        self._run_event_end = Cursor()  # behind the last run event
        self._has_queues = False  # the lines of domains are those of the map that is open
        self._is_finishing = False
        self._checked_at = 0.0
        self._has_said_why_waiting = False

    # -- life ----------------------------------------------------------------------------------------

    def initialize(self) -> None:
        """Open the spools. The map is looked for by the first `step`."""
        self._results = self.workspace.results.writer(WRITER, segment_bytes=self.config.spool.segment_size)
        self._releases = self.workspace.releases.writer(segment_bytes=_SMALL_SEGMENT)
        self._feed = self.workspace.feed.reader()
        self._jobs = self.workspace.job_writer()

    @property
    def is_over(self) -> bool:
        """Has the run been completed, and has the map said so?"""
        return self.run is not None and self.run.status is RunStatus.COMPLETED

    def step(self, now: float) -> float:
        """Do what there is to do at `now`; returns the seconds to wait then, if no bell rings before."""
        try:
            if not self._is_ready(now):
                return _AWAY
            if self._is_finishing:
                return self._await_completion()
            self._read_feed(now)
            self._compare_with_table(now)
            if self._release(now):
                return 0.0
            if self._active or self._waiting or self._held_back:
                return _IDLE
            if self.frontier.is_empty():
                self._record_run_event("finished", RunStatus.RUNNING)
                self._is_finishing = True
            else:
                self._queue_waiting_domains()  # rows that nobody told of
            return 0.0
        except MapAway as problem:
            log.debug("the map is away: %s", problem)
            self.frontier.close()
            self._has_queues = False
            return _AWAY

    def shutdown(self, *, is_told_to_stop: bool) -> None:
        """Let go. A run that is under way is marked as interrupted if this is on somebody's order."""
        try:
            is_under_way = self.run is not None and self.run.status is RunStatus.RUNNING and not self._is_finishing
            if is_told_to_stop and self.run is not None and is_under_way:
                self._record_run_event("interrupted", RunStatus.INTERRUPTED)
                log.info("Run #%d interrupted; it goes on when the same command is given again", self.run.number)
        finally:
            self._results.close()
            self._releases.close()
            self._feed.close()
            self.frontier.close()

    def facts(self) -> dict[str, object]:
        """For the heartbeat."""
        return {
            "run": self.run.number if self.run else None,
            "released": self.released,
            "outstanding": sum(len(domain.outstanding) for domain in self._active.values()),
            "active_domains": len(self._active),
            "waiting_domains": len(self._waiting),
        }

    # -- the map and the run -------------------------------------------------------------------------

    def _is_ready(self, now: float) -> bool:
        """Is there a map of this config, with a run under way, and are its waiting domains in line?"""
        if self.frontier.is_open and self.frontier.has_been_replaced():
            log.info("The map has been drawn anew; looking at everything afresh")
            self.frontier.close()
            self._has_queues = False
        if not self.frontier.is_open:
            self.frontier.open()
        if self.frontier.meta("map_hash") != self.config.map_hash:
            if not self._has_said_why_waiting:
                log.info("The map was drawn under another config; waiting until the ingest has drawn it anew")
                self._has_said_why_waiting = True
            return False
        if self.run is None:
            self._start_or_resume()
        if self._is_finishing:
            return True
        if not self._has_queues:
            if self.frontier.positions().get(WRITER, Cursor()) < self._run_event_end:
                return False
            self._rebuild_queues(now)
        return True

    def _start_or_resume(self) -> None:
        """Resume the run that is not over, or start the next one.

        The map may lag behind this spool, and `run.json` behind both: what counts is the map, plus the events
        behind the place up to which it has read.
        """
        known = self.frontier.last_run()
        place = self.frontier.positions().get(WRITER, Cursor())
        last = newest_run(Run(known[0], RunStatus(known[1])) if known else None, self._run_events(place))
        if last is None or last.status is RunStatus.COMPLETED:
            if last is not None and read_run(self.workspace) == Run(last.number, RunStatus.RUNNING):
                # It was finished, but nobody lived to see it: see to that, and do not walk again uncalled.
                self.run = Run(last.number, RunStatus.RUNNING)
                self._is_finishing = True
                self._ring("ingest")
                return
            self.run = Run(last.number + 1 if last else 1, RunStatus.RUNNING)
            self._record_run_event("started", RunStatus.RUNNING)
            log.info("Starting run #%d", self.run.number)
            log.info("Seeding frontier with %s", _count(sum(len(q.seeds) for q in self.config.quality), "URL"))
            return
        self.run = Run(last.number, RunStatus.RUNNING)
        self._record_run_event("resumed", RunStatus.RUNNING)
        log.info("Found interrupted run #%d, resuming...", last.number)
        if log.isEnabledFor(logging.INFO):
            log.info("Loaded %s from frontier", _count(self.frontier.count(), "URL"))
        log.info("Continuing crawl...")

    def _run_events(self, place: Cursor) -> Iterator[RunEvent]:
        """The run events of this scheduler's own result spool behind a place."""
        reader = self.workspace.results.reader(WRITER, place)
        try:
            for event, _ in read_records(reader, RunEvent):  # the ingest reports lines that cannot be read
                yield event
        finally:
            reader.close()

    def _record_run_event(self, event: str, status: RunStatus) -> None:
        """Write a run event, durably, and only then the note of it."""
        assert self.run is not None
        record = RunEvent(self.run.number, now_text(), event, self.config.config_hash, self.config.map_hash)
        self._run_event_end = self._results.append(dump(record))
        self._results.sync()
        self.run = Run(self.run.number, status)
        if event != "finished":
            write_run(self.workspace, self.run)
        self._ring("ingest")

    def _await_completion(self) -> float:
        """Once the map says that the run is over, so does `run.json`: that is what the other stages watch."""
        assert self.run is not None
        known = self.frontier.last_run()
        if known is None or known[0] < self.run.number or known[1] != RunStatus.COMPLETED:
            return _IDLE
        self.run = Run(self.run.number, RunStatus.COMPLETED)
        self._jobs.remove_all()
        write_run(self.workspace, self.run)
        for name in ("ingest", *self._fetchers()):
            self._ring(name)
        log.info("Run #%d completed successfully", self.run.number)
        return 0.0

    # -- starting from the table ---------------------------------------------------------------------

    def _rebuild_queues(self, now: float) -> None:
        """Learn from job segments and table what is outstanding and who waits. Costs a seek a domain."""
        assert self.run is not None
        self._feed.close()
        self._feed = self.workspace.feed.reader()
        self._waiting.clear()
        self._wanting_more.clear()
        self._active.clear()
        self._held_back.clear()
        self._shares.forget()
        for window in self._jobs.windows():
            if not self._restore_window(window, now):
                window.remove()
        self._queue_waiting_domains()
        self._has_queues = True
        self._checked_at = now

    def _restore_window(self, window: JobWindow, now: float) -> bool:
        """Make the waiting pages of a released window outstanding again. False: none of them waits."""
        assert self.run is not None
        for job in window.jobs:
            page = self.frontier.waiting_page(job) if job.run == self.run.number else None
            if page is None:
                continue
            domain = self._active.get(job.domain)
            if domain is None:
                domain_id = self.frontier.domain_id(job.domain)
                if domain_id is None:
                    raise MapAway(f"{job.domain} has pages but is not there")
                domain = self._active[job.domain] = _ActiveDomain(job.domain, domain_id, now)
            domain.windows.setdefault(window.number, set()).add(page[0])
            domain.add(page[0], job.key, page[1])
        domains = (self._active.get(job.domain) for job in window.jobs)
        return any(window.number in domain.windows for domain in domains if domain)

    def _queue_waiting_domains(self) -> None:
        """Put every domain with waiting pages in line."""
        for name, priority, _ in self.frontier.domains():
            self._note_work(name, priority)

    # -- the feed ------------------------------------------------------------------------------------

    def _read_feed(self, now: float) -> None:
        before = self._feed.cursor.segment
        while lines := self._feed.read():
            for feed, _ in parse_lines(lines, Feed):  # a hint that is lost is made up for by `_compare_with_table`
                self._apply_feed(feed, now)
        if self._feed.cursor.segment > before:
            self.workspace.feed.remove_before(self._feed.cursor.segment)

    def _apply_feed(self, feed: Feed, now: float) -> None:
        assert self.run is not None
        if feed.resync:
            self._drop_settled_pages(now)
            self._queue_waiting_domains()
            return
        if feed.run != self.run.number:
            return
        for name, pages in feed.done:
            if (domain := self._active.get(name)) is not None:
                self._remove_done(domain, pages, now)
            self._retry_held_back(name)
        for name in feed.closed:
            self._waiting.drop(name)
            self._held_back.pop(name, None)
            if (domain := self._active.get(name)) is not None:
                waiting = self.frontier.still_waiting(domain.outstanding)
                self._remove_done(domain, domain.outstanding.keys() - waiting, now)
        for name, priority in feed.work:
            self._note_work(name, priority)

    def _note_work(self, name: str, priority: int) -> None:
        """Somebody says that a domain has waiting pages, the best of them of this priority."""
        domain = self._active.get(name)
        if domain is None:
            self._held_back.pop(name, None)
            self._waiting.offer(name, priority)
            return
        domain.priority = min(domain.priority, priority) if domain.has_more else priority
        domain.has_more = True
        self._request_more(domain)

    def _remove_done(self, domain: _ActiveDomain, pages: Iterable[int], now: float) -> None:
        """These pages' rows are gone: they are outstanding no longer, and segments without such pages go."""
        gone = set(pages)
        if domain.outstanding.keys().isdisjoint(gone):
            return
        for page in gone:
            domain.outstanding.pop(page, None)
            domain.families.pop(page, None)
        for number, left in list(domain.windows.items()):
            left -= gone
            if not left:
                del domain.windows[number]
                self._jobs.remove(domain.name, number)
        domain.heard_at = now
        domain.fruitless = 0
        if domain.outstanding:
            self._request_more(domain)
            return
        del self._active[domain.name]
        self._wanting_more.drop(domain.name)
        if domain.has_more and domain.name not in self._held_back:
            self._waiting.offer(domain.name, domain.priority)

    def _request_more(self, domain: _ActiveDomain) -> None:
        """Let a domain that is half-way through its window stand in line for more."""
        is_low = len(domain.outstanding) <= self._window // 2
        if domain.has_more and is_low and domain.name not in self._held_back:
            self._wanting_more.offer(domain.name, domain.priority)

    def _retry_held_back(self, name: str) -> None:
        """Something may have moved in a domain that was held back."""
        if self._held_back.pop(name, None) is None:
            return
        if (domain := self._active.get(name)) is not None:
            self._request_more(domain)
        else:
            self._waiting.offer(name, 0)

    # -- releasing -----------------------------------------------------------------------------------

    def _release(self, now: float) -> bool:
        """Release windows to whoever's turn it is. True if there would be more at once."""
        for name, until in list(self._held_back.items()):
            if until <= now:
                self._retry_held_back(name)
        has_more = True
        for _ in range(_WINDOWS_A_STEP):
            turn = self._next_domain()
            if turn is None:
                has_more = False
                break
            self._release_window(turn, now)
        self._announce()
        return has_more

    def _next_domain(self) -> str | None:
        """The domain to serve next; None if nobody can be served now."""
        new, old = self._waiting.first(), self._wanting_more.first()
        has_place = len(self._active) < self._most_active
        if new is not None and has_place and (old is None or new[0] <= old[0]):
            return new[1]
        if old is not None and (new is None or has_place or old[0] < new[0]):
            return old[1]
        return None  # all places are taken: whoever has one works off its window, then the next one gets it

    def _release_window(self, name: str, now: float) -> None:
        """Fill a domain's window from the table, and find out whether there is more."""
        self._waiting.drop(name)
        self._wanting_more.drop(name)
        domain = self._active.get(name)
        if domain is None:
            domain_id = self.frontier.domain_id(name)
            if domain_id is None:
                return  # a hint about a map that is no more
            domain = _ActiveDomain(name, domain_id, now)
        limit = self._window + len(domain.outstanding) + 1
        rows = self.frontier.window(domain.id, limit)
        room = self._window - len(domain.outstanding)
        fresh = [row for row in rows if row.page not in domain.outstanding]
        chosen: list[Waiting] = []
        rest: list[Waiting] = []
        for row in fresh:
            if len(chosen) < room and self._may_be_released(row, domain):
                chosen.append(row)
                domain.add(row.page, row.key, row.family)
            else:
                rest.append(row)
        domain.has_more = bool(rest) or len(rows) == limit
        domain.priority = rest[0].priority if rest else 0
        if chosen:
            self._active[name] = domain
            self._write_jobs(domain, chosen, now)
            self._request_more(domain)
        elif rest:
            self._held_back[name] = now + _IDLE

    def _write_jobs(self, domain: _ActiveDomain, rows: list[Waiting], now: float) -> None:
        assert self.run is not None
        run = self.run.number
        jobs = [Job(run, row.key, row.wire or row.key, domain.name, row.page) for row in rows]
        number = self._jobs.write(domain.name, jobs)
        domain.windows[number] = {row.page for row in rows}
        domain.heard_at = now
        self.released += len(rows)
        turn = self._turns.setdefault(domain.name, len(self._turns) + 1)
        self._unannounced.append(Release(run, domain.name, len(rows), turn))

    def _announce(self) -> None:
        """Say in which domains there are new jobs, and wake the fetchers, once for all of them."""
        if not self._unannounced:
            return
        self._releases.append_all(dump(release) for release in self._unannounced)
        self._unannounced.clear()
        self.workspace.releases.remove_before(self._releases.end.segment - 1)
        for name in self._fetchers():
            self._ring(name)

    def _fetchers(self) -> list[str]:
        return [name for name in self.workspace.bells() if name.startswith("fetcher-")]

    def _may_be_released(self, row: Waiting, domain: _ActiveDomain) -> bool:
        """Has this page's family, if it is in one, some of its share left? If not, the family is closed."""
        assert self.run is not None
        if row.family is None:
            return True
        if self._shares.is_closed(row.family, self.run.number):
            return False
        outstanding = domain.of_family(row.family)
        family = self._shares.take(row.family, row.key, self.run.number, outstanding)
        if family is None:
            return True
        spare = tuple(sorted(domain.outstanding[page] for page in outstanding))
        event = FamilyEvent(self.run.number, domain.name, now_text(), family.name, family.error, family.limit, spare)
        self._results.append(dump(event))
        self._results.sync()
        self._shares.close(row.family)
        self._ring("ingest")
        log.info("%s: a family of look-alike URLs is closed: %s", domain.name, family.error)
        return False

    # -- against lost hints and lost results ---------------------------------------------------------

    def _compare_with_table(self, now: float) -> None:
        """Now and then, look whether the table agrees with what the hints said, and tidy up."""
        if now - self._checked_at < _CHECK_EVERY:
            return
        self._checked_at = now
        self._drop_settled_pages(now)
        self._jobs.clean()
        quiet = [
            domain
            for domain in self._active.values()
            if now - domain.heard_at >= _LOST_AFTER * 2 ** min(domain.fruitless, 6)
        ]
        lost = [domain for domain in quiet if self._jobs.is_worked_off(domain.name)]
        if not lost or not self._has_ingest_read_all():
            return
        # Bookmarks were read before the spools' ends, those before the table: what the table still holds now was
        # worked off without leaving a result that can be read.
        self._drop_settled_pages(now)
        for domain in lost:
            if domain.outstanding:
                self._release_again(domain, now)
        self._announce()

    def _drop_settled_pages(self, now: float) -> None:
        everything = [page for domain in self._active.values() for page in domain.outstanding]
        waiting = self.frontier.still_waiting(everything)
        if len(waiting) < len(everything):
            for domain in list(self._active.values()):
                self._remove_done(domain, domain.outstanding.keys() - waiting, now)

    def _has_ingest_read_all(self) -> bool:
        """Has the ingest read all whole lines of all result spools?"""
        results = self.workspace.results
        ends = {name: results.end(name) for name in results.writers()}
        places = self.frontier.positions()
        for name, end in ends.items():
            place = places.get(name, Cursor())
            if place >= end:
                continue
            reader = results.reader(name, place)
            try:
                if reader.read(1):
                    return False
            finally:
                reader.close()
        return True

    def _release_again(self, domain: _ActiveDomain, now: float) -> None:
        """Visits whose results cannot be read are made again: nothing else would ever settle their pages."""
        rows = self.frontier.waiting_pages(domain.outstanding)
        if not rows:
            return
        old = list(domain.windows)
        self._write_jobs(domain, rows, now)
        for number in old:
            del domain.windows[number]
            self._jobs.remove(domain.name, number)
        domain.fruitless += 1
        log.warning("%s: %s left no readable result; released again", domain.name, _count(len(rows), "visit"))


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def run_scheduler(config: Config) -> int:
    """The scheduler stage, until its run is completed or it is told to stop. Raises WorkspaceError."""
    workspace = open_workspace(config.workspace)
    workspace.prepare()
    role = workspace.take_role("scheduler")
    control = StageControl(workspace, "scheduler")
    control.install_signals()
    scheduler = Scheduler(config, workspace, control.ring)
    is_told_to_stop = False
    try:
        scheduler.initialize()
        control.facts = scheduler.facts
        while not scheduler.is_over:
            control.wait_while_paused()
            if control.should_stop():
                is_told_to_stop = True
                break
            pause = scheduler.step(time.monotonic())
            control.beat("running" if scheduler.run else "waiting for the map")
            if pause and not scheduler.is_over:
                control.wait(pause)
        return 130 if control.signals else 0
    finally:
        try:
            scheduler.shutdown(is_told_to_stop=is_told_to_stop)
        finally:
            control.close()
            role.release()
