"""One fetcher process: jobs in, results out. It owns the sockets, threads, leases and the pace.

    releases, job folders ──▶ main thread: leases, bookmarks, fsync, slots, heartbeat
                                   │ a leased domain with something to do
                                   ▼
                              heap of domains by the moment they are due
                                   │
                                   ▼
                              wire thread: a greenlet a slot, one request each, through the domain's gate

A domain is in exactly one place: idle (the main thread's), in the heap, or with the one greenlet that took it out.
So its visits are made one after the other, and what belongs to it needs no lock. A domain that waits, for its pace
or for a pause, costs a heap entry and no slot.

Order of durable things: a result is appended, then made durable (a group of them with one fsync), and only then
does the bookmark move behind its job. A request is counted in its gate before it leaves.
"""

from __future__ import annotations

import gc
import logging
import math
import os
import resource
import signal
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from filelock import FileLock

from crawler.classify import Classifier, DomainClass
from crawler.control import StageControl, now_text
from crawler.due import DueQueue
from crawler.hosts import RobotsCache
from crawler.hub import Hub
from crawler.leases import (
    JOBS_AT_ONCE,
    Bookmark,
    Domain,
    LeftBehind,
    ResultIndex,
    read_bookmark,
    read_jobs,
    take_lease,
    write_bookmark,
)
from crawler.politeness import (
    Busy,
    Gate,
    GateRecord,
    LedgerMark,
    Moment,
    NotYet,
    Shut,
    Slots,
    fair_share,
    is_in_force,
    read_clock,
    resting,
)
from crawler.pool import run_pool
from crawler.records import (
    DomainEvent,
    Exchange,
    PageResult,
    RecordError,
    Release,
    RobotsResult,
    dump,
    parse,
)
from crawler.robots import Policy
from crawler.runs import RunStatus, read_run
from crawler.settings import Config
from crawler.spool import Cursor, Reader, Writer, end_of
from crawler.states import ERRORS
from crawler.transport import Transport
from crawler.visit import Refusal, Reply, Visit, Wish, visit
from crawler.wire import UNTRIED, Failure, Pause, Request, Response, Take
from crawler.workspace import RoleTaken, Workspace
from crawler.workspace import domain_of as domain_of_name

log = logging.getLogger("sumi.fetcher")

SYNC_EVERY = 0.4  # seconds
BOOKMARK_EVERY = 15.0
BOOKMARK_LAG = 8 * 1024 * 1024  # bytes of results that a takeover should have to read at most
IDLE_LEASE = 20.0  # an idle domain is let go after this many seconds: taking it again costs more than keeping it …
IDLE_LEASE_WHEN_FULL = 3.0  # … unless others wait for its room
LOOK_AGAIN = 3.0  # for a domain that another fetcher should have
LOOK_AGAIN_AT_MOST = 30.0
TAKING_AT_ONCE = 0.1  # seconds of taking leases before the main thread looks around again
SHARE_EVERY = 5.0  # how often the share of slots is looked at
SCAN_EVERY = 30.0  # how often the whole jobs folder is looked at
STOP_GRACE = 3.0  # for visits that are half made
STOP_AT_MOST = 15.0  # for requests on the wire
RING_EVERY = 0.1
BUSY_AGAIN_NS = 50_000_000
LARGE_BODY = 400 * 1024  # bytes: more takes ten milliseconds and longer to read

EXIT_MISTAKE = 70  # a mistake in this program: whoever watches may start another one

_LATER = object()


class _TooLate(Exception):
    """The process is ending and its result spool is closed: the visit will be made again."""


@dataclass(slots=True)
class Counts:
    pages: int = 0
    requests: int = 0
    errors: int = 0


class Fetcher:
    """One process's work. `run` returns the exit code."""

    def __init__(
        self,
        config: Config,
        index: int,
        workers: int,
        *,
        watch_parent: bool = False,
        clock: Callable[[], Moment] = read_clock,
    ) -> None:
        self.config = config
        self.index = index
        self.workers = max(1, workers)
        self.workspace = Workspace(config.workspace)
        self._clock = clock
        self._parent = os.getppid() if watch_parent else None
        self._settings = config.crawler
        classifier = Classifier(config)
        self._is_listed: Callable[[str], bool] = lambda domain: (
            classifier.classify(domain).klass in (DomainClass.BLACKLISTED, DomainClass.STUBBED)
        )
        self._hub = Hub()
        self._due_queue: DueQueue[Domain] = DueQueue(self._hub.wake)
        self._idling = threading.Lock()  # for a domain's change between idle and busy
        self._staffing = threading.Lock()  # for `_room` and `_open`
        self._room = 0  # requests that may be on the wire at once
        self._open = 0  # domains that are being worked on
        self._stop_by_ns = 0
        self._on_wire: set[Domain] = set()
        self._trouble: Exception | None = None
        self._domains: dict[str, Domain] = {}
        self._heard: dict[str, tuple[float, float]] = {}  # domain → (when to try, how long to wait after that)
        self._indexes: dict[str, ResultIndex] = {}
        self._writing = threading.Lock()
        self._dirty: set[Domain] = set()
        self._has_more_to_take = False
        self._is_unsynced = False
        self._is_closed = False
        self._synced_at = self._marked_at = self._shared_at = self._scanned_at = self._rang_at = 0.0
        self._indexed_at = 0.0
        self._run = 0
        self._seen_running: int | None = None
        self._run_stamp: tuple[int, int] | None = None
        self._is_completed = False
        self.counts = Counts()

    # -- life ----------------------------------------------------------------------------------------

    def run(self, *, install_signals: bool = True) -> int:
        """Work until the run is over or somebody says stop. 0: done, 1: could not go on, 130: interrupted."""
        self.workspace.prepare()
        _allow_many_files()
        role, self.name, self.number = _take_name(self.workspace)
        self.control = StageControl(self.workspace, "fetcher", self.name)
        self.control.facts = self._facts
        if install_signals:
            self.control.install_signals()
        if self._parent is not None:
            # Ctrl-C reaches the whole group; the parent passes it on as SIGTERM, once.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._transport = Transport(self.config.network, self.config.user_agent.header, waiting=self._hub)
        self._robots = RobotsCache(self.workspace, lambda: self._clock().wall_ms)
        self._slots = Slots(self.workspace.slots, self._settings.max_concurrent_pages_open)
        self._writer = Writer(self.workspace.results_of(self.name), segment_bytes=self.config.spool.segment_size)
        self._releases = Reader(self.workspace.releases, end_of(self.workspace.releases))
        wire = threading.Thread(target=self._run_wire, name="wire", daemon=True)
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        wire.start()
        try:
            while not self._is_finished():
                self._turn()
        except OSError as problem:
            self._trouble = self._trouble or problem
        self._shut_down(wire)
        role.release()
        if isinstance(self._trouble, OSError):
            log.error("%s stops: %s", self.name, _sentence(self._trouble))
            return 1
        if self._trouble is not None:
            return EXIT_MISTAKE
        return 130 if self.control.signals else 0

    def _is_finished(self) -> bool:
        if self._trouble is not None or self._is_completed:
            return True
        is_orphan = self._parent is not None and os.getppid() != self._parent
        return is_orphan or self.control.should_stop()

    def _turn(self) -> None:
        """One round of the main thread: look around, keep house, wait."""
        now = time.monotonic()
        self._watch_run()
        is_paused = self.control.is_paused()
        if is_paused != self._due_queue.is_held:
            self._due_queue.hold(is_paused)
        self._hear_releases(now)
        if not is_paused:
            self._share_slots(now)
            self._look_for_domains(now)
        self._keep_house(now)
        is_idle = not self._domains and not self._heard
        self.control.beat("paused" if is_paused else "idle" if is_idle else "running")
        self.control.wait(self._patience(is_idle))

    def _patience(self, is_idle: bool) -> float:
        """How long nothing needs to be looked at."""
        if self._has_more_to_take and not self._due_queue.is_held:
            return 0.0
        if self._is_unsynced:
            return SYNC_EVERY / 2
        return 1.0 if is_idle or self._due_queue.is_held else 0.5

    def _watch_run(self) -> None:
        try:
            status = self.workspace.run_file.stat()
        except OSError:
            return
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp == self._run_stamp:
            return
        self._run_stamp = stamp
        run = read_run(self.workspace)
        if run is None:
            return
        self._run = max(self._run, run.number)
        if run.status is RunStatus.RUNNING:
            self._seen_running = run.number
        elif run.status is RunStatus.COMPLETED and self._seen_running == run.number:
            self._is_completed = True

    # -- finding work --------------------------------------------------------------------------------

    def _hear_releases(self, now: float) -> None:
        for line in self._releases.read(5000):
            try:
                record = parse(line.body)
            except RecordError:
                continue
            if isinstance(record, Release):
                self._hear(record.domain, now)
        if now - self._scanned_at >= SCAN_EVERY or not self._scanned_at:
            self._scanned_at = now
            self._scan_jobs(now)

    def _hear(self, domain: str, now: float) -> None:
        """There may be new jobs for this domain."""
        mine = self._domains.get(domain)
        if mine is None:
            is_preferred = zlib.crc32(domain.encode()) % self.workers == self.index % self.workers
            if is_preferred:
                self._heard[domain] = (now, 1.0)
            elif domain not in self._heard:
                self._heard[domain] = (now + LOOK_AGAIN, LOOK_AGAIN)
            return
        with self._idling:
            if not mine.is_idle:
                mine.is_nudged = True
                return
            mine.is_idle = False
        self._start(mine)

    def _scan_jobs(self, now: float) -> None:
        """Every domain with a job folder: what was released before we listened, or left by a dead fetcher."""
        try:
            entries = list(os.scandir(self.workspace.jobs))
        except FileNotFoundError:
            return
        for entry in entries:
            domain = domain_of_name(entry.name)
            if domain is None:
                reader = Reader(self.workspace.jobs / entry.name)
                jobs = read_jobs(reader, 1)
                reader.close()
                domain = jobs[0][0].domain if jobs else None
            if domain is not None and domain not in self._domains:
                self._hear(domain, now)

    def _look_for_domains(self, now: float) -> None:
        """Take the leases of domains that were heard of, as far as there is room."""
        if not self._heard or not self._room:
            return
        due = [domain for domain, (at, _) in self._heard.items() if at <= now]
        self._has_more_to_take = False
        for domain in due:
            if len(self._domains) >= self._settings.max_active_domains:
                return
            if time.monotonic() - now > TAKING_AT_ONCE:
                self._has_more_to_take = True
                return
            if domain in self._domains:
                del self._heard[domain]
                continue
            _, wait = self._heard[domain]
            if self._take(domain):
                del self._heard[domain]
            else:
                self._heard[domain] = (now + wait, min(wait * 2, LOOK_AGAIN_AT_MOST))
        if self._indexes and now - self._indexed_at > 10:
            self._indexes.clear()

    def _take(self, name: str) -> bool:
        """Try to become this domain's fetcher. True if there is nothing more to try for."""
        lease = take_lease(self.workspace, name)
        if lease is None:
            return False
        folder = self.workspace.jobs_of(name)
        bookmark = read_bookmark(folder)
        reader = Reader(folder, bookmark.jobs)
        jobs = read_jobs(reader, JOBS_AT_ONCE)
        if not jobs:
            reader.close()
            lease.release()
            return True
        gate = Gate(self.workspace.gate_of(name), self._clock)
        domain = Domain(name, lease, gate, reader, bookmark)
        domain.jobs.extend(jobs)
        if not self._take_over(domain, bookmark):
            domain.drop()
            return False
        domain.synced = Bookmark(domain.done, self.name, self._end())
        self._move_bookmark(domain, domain.synced)
        domain.is_idle = False
        self._domains[name] = domain
        self._start(domain)
        return True

    def _take_over(self, domain: Domain, bookmark: Bookmark) -> bool:
        """Bring in order what a fetcher before us left; False if the gate is busy just now."""
        before = domain.gate.look()
        counted = Cursor(before.mark.segment, before.mark.offset)
        marker = f"fetcher-{before.mark.writer:02d}"
        left = LeftBehind()
        if bookmark.holder is not None:
            start = min(bookmark.results, counted) if bookmark.holder == marker else bookmark.results
            left = self._index(bookmark.holder).since(domain.name, start)
            domain.step_over(left)
        is_told = before.untold and before.run in self._index(marker).since(domain.name, counted).told
        lost = 0

        def adjust(record: GateRecord) -> GateRecord:
            nonlocal lost
            found = sum(
                requests
                for run, end, requests in left.ledgered
                if run == record.run and (bookmark.holder != marker or end > counted)
            )
            lost = max(0, record.sent - record.ledgered - found) + (0 if is_told else record.untold)
            found_closures = (record.closes, left.closes.get(record.run))
            closes = next((each for each in found_closures if each and is_in_force(each, self.config)), None)
            return record._replace(ledgered=record.sent, closes=closes, untold=lost, mark=self._mark())

        if not domain.gate.update(before.run, adjust):
            return False
        if lost:
            # Whoever finds `untold` in the gate looks for this line behind the mark: told once, whatever happens.
            self._write(DomainEvent(before.run, domain.name, now_text(), "lost-requests", lost))
            if not domain.gate.update(before.run, lambda record: record._replace(untold=0)):
                return False
        domain.run = before.run
        record = domain.gate.record
        domain.tried = record.tried
        domain.closes, domain.closed_run = record.closes, record.run
        domain.has_found_closure = record.closes is not None
        return True

    def _reopen(self, record: GateRecord) -> GateRecord:
        """The record without a closure that the config of now would not make."""
        if record.closes is None or is_in_force(record.closes, self.config):
            return record
        return record._replace(closes=None)

    def _index(self, writer: str) -> ResultIndex:
        self._indexed_at = time.monotonic()
        index = self._indexes.get(writer)
        if index is None:
            index = self._indexes[writer] = ResultIndex(self.workspace.results_of(writer))
        return index

    # -- the wire ------------------------------------------------------------------------------------

    def _share_slots(self, now: float) -> None:
        """Hold as many slots as this process may have requests on the wire."""
        if now - self._shared_at < SHARE_EVERY and self._shared_at:
            return
        self._shared_at = now
        names = [path.stem for path in self.workspace.locks.iterdir() if path.name.startswith("fetcher-")]
        others = sum(name != self.name and self.workspace.is_role_taken(name) for name in names)
        share = fair_share(self._settings.max_concurrent_pages_open, max(self.workers, 1 + others))
        with self._staffing:
            self._slots.give_back(self._slots.held - max(share, self._open))
            self._slots.take(share - self._slots.held)
            self._room = min(share, self._slots.held)
        self._hub.wake()

    def _run_wire(self) -> None:
        try:
            self._hub.run(self._begin_due)
        except Exception as problem:
            log.exception("the wire thread found a mistake in this program")
            self._give_up(problem)

    def _begin_due(self) -> float:
        """Begin what is due, as far as there is room; in how many seconds there may be more."""
        while True:
            with self._staffing:
                if self._open >= self._room:
                    return math.inf
                domain = self._due_queue.take()
                if domain is None:
                    return self._due_queue.patience()
                self._open += 1
            self._hub.spawn(self._serve, domain)

    def _serve(self, domain: Domain) -> None:
        """A greenlet's life: one step of one domain."""
        try:
            self._advance(domain)
        except _TooLate:
            pass
        except Exception as problem:
            if not isinstance(problem, OSError):
                log.exception("working on %s found a mistake in this program", domain.name)
            self._give_up(problem)
        finally:
            with self._staffing:
                self._open -= 1
            self._due_queue.done()

    def _may_finish(self, domain: Domain, due_ns: int) -> bool:
        """While stopping: is this visit half made, and will it go on soon?"""
        return domain.has_asked and domain.wish is not None and due_ns <= self._stop_by_ns

    def _start(self, domain: Domain) -> None:
        """Let an idle domain go on with its next job, if there is one."""
        if self._begin_next(domain):
            self._due_queue.push(domain, 0)

    def _give_up(self, problem: Exception) -> None:
        self._trouble = self._trouble or problem
        self._due_queue.clear()
        self._due_queue.hold(True)
        self.control.ring(self.name)

    # -- one domain's steps (with whoever took it out of the heap) -------------------------------------

    def _advance(self, domain: Domain) -> None:
        """Do what the domain is due for, then as much as needs no request, and put it back."""
        reply: Any = None
        if domain.wish is not None:
            reply = self._ask(domain, domain.wish)
            if reply is _LATER:
                return
        while True:
            result = self._feed(domain, reply)
            if result is None:
                return
            self._finish(domain, result)
            if not self._begin_next(domain):
                return
            reply = None

    def _begin_next(self, domain: Domain) -> bool:
        """Begin the visit of the next job. False: there is none, and the domain is idle."""
        while True:
            if not domain.jobs and not self._due_queue.is_ending:
                domain.jobs.extend(read_jobs(domain.reader, JOBS_AT_ONCE))
                domain.reader.close()  # the next window is another file
            if not domain.jobs or self._due_queue.is_ending:
                with self._idling:
                    if domain.is_nudged and not self._due_queue.is_ending:
                        domain.is_nudged = False
                        continue
                    domain.tried = UNTRIED
                    domain.is_idle = True
                    domain.idle_since = time.monotonic()
                    return False
            job, end = domain.jobs.popleft()
            domain.job, domain.job_end = job, end
            is_closed = domain.closes is not None and domain.closed_run == job.run
            if is_closed and domain.has_found_closure and job.run >= self._run:
                # Whoever closed it wrote that down, but the line may have been damaged since: then nobody else would
                # ever tell what became of the jobs that are stepped over here.
                domain.has_found_closure = False
                self._write(DomainEvent(job.run, domain.name, now_text(), "closed", closes=domain.closes))
            if job.run < self._run or is_closed or (job.run, job.key) in domain.recent:
                with self._writing:
                    domain.done = end
                    self._dirty.add(domain)
                    self._is_unsynced = True
                continue
            if job.run != domain.run:
                domain.run, domain.uncounted, domain.mark = job.run, 0, self._mark()
            known = partial(self._known, domain, job.run)
            domain.visit = visit(job, self.config, known, self._is_listed, domain.tried_of(job))
            domain.wish, domain.has_asked = None, False
            domain.ledger.clear()
            domain.robots_ledger.clear()
            if log.isEnabledFor(logging.INFO):
                log.info("Crawling %s", job.wire)
            return True

    def _known(self, domain: Domain, run: int, host: str) -> Policy | None:
        """What is known of a host's robots.txt; its delay is remembered for the gate."""
        policy = self._robots.policy(run, host)
        if policy is None:
            domain.delays.pop(host, None)
        else:
            domain.delays[host] = policy.crawl_delay_ms
        return policy

    def _feed(self, domain: Domain, reply: Reply) -> PageResult | None:
        """Tell the visit what came of its wish. None: it wants something that takes time, and is back in the heap."""
        assert domain.visit is not None and domain.job is not None
        try:
            while True:
                wish = self._step(domain.visit, reply)
                reply = None
                if isinstance(wish, RobotsResult):
                    self._write_robots(domain, wish)
                elif isinstance(wish, DomainEvent):
                    self._write(replace(wish, at=now_text()))
                elif isinstance(wish, Pause):
                    domain.wish = None
                    domain.tried = wish.tried
                    # In the gate too: whoever takes over from a fetcher that dies meanwhile waits as long, and goes
                    # on counting.
                    domain.gate.update(domain.job.run, partial(resting, seconds=wish.seconds, tried=wish.tried))
                    self._due_queue.push(domain, time.monotonic_ns() + int(wish.seconds * 1e9))
                    return None
                else:
                    domain.wish = wish
                    self._due_queue.push(domain, self._due(domain, wish))
                    return None
        except StopIteration as end:
            result: PageResult = end.value
            return result
        except (OSError, _TooLate):
            raise
        except Exception as problem:
            # A page must not stop the crawl, not even one that finds a mistake in this program.
            log.exception("visiting %s found a mistake in this program", domain.job.wire)
            job = domain.job
            error = f"internal-error: {type(problem).__name__}"
            return PageResult(job.run, job.key, job.wire, job.domain, "", "failed", error)

    def _step(self, visit: Visit, reply: Reply) -> Wish:
        """A visit's next wish. To read a large page takes long, which others need not wait for."""
        if isinstance(reply, Response) and len(reply.body) > LARGE_BODY:
            return self._hub.aside(lambda: visit.send(reply))
        return visit.send(reply)

    def _due(self, domain: Domain, request: Request) -> int:
        """When the gate will let this request through, as far as this process knows."""
        host, name = domain.place_of(request.url)
        if name != domain.name:
            return 0
        record = domain.gate.record
        if record.ended is None:
            return 0
        wants = domain.delays.get(host, 0)
        delay = max(self._settings.minimum_time_on_page, record.crawl_delay_ms, wants)
        return record.ended.mono_ns + delay * 1_000_000

    def _ask(self, domain: Domain, request: Request) -> Any:
        """Put the request on the wire, if the gate of its domain is open. `_LATER`: it was put back."""
        if self.control.is_paused():
            self._due_queue.hold(True)
            self._due_queue.push(domain, 0)
            return _LATER
        assert domain.job is not None
        host, name = domain.place_of(request.url)
        is_own = name == domain.name
        gate = domain.gate if is_own else Gate(self.workspace.gate_of(name), self._clock)
        try:
            admission, start = gate.try_enter(
                domain.job.run,
                self._settings.minimum_time_on_page,
                self._settings.max_domain_requests,
                domain.bring_up_to_date if is_own else self._reopen,
                domain.delays.get(host),
            )
            if isinstance(admission, Busy):
                self._due_queue.push(domain, start.mono_ns + BUSY_AGAIN_NS)
                return _LATER
            if is_own:
                domain.uncounted = 0
            if isinstance(admission, NotYet):
                self._due_queue.push(domain, admission.at_ns)
                return _LATER
            if isinstance(admission, Shut):
                return Refusal(admission.closes, is_own)
            return self._exchange(domain, request, gate, start, name, host)
        finally:
            if not is_own:
                gate.close()

    def _exchange(self, domain: Domain, request: Request, gate: Gate, start: Moment, name: str, host: str) -> Reply:
        domain.has_asked = True
        self._on_wire.add(domain)
        try:
            answer = self._transport.send(request)
        except Exception as problem:  # promised not to happen; a request that left must still be written down
            log.exception("asking for %s found a mistake in this program", request.url)
            answer = Failure("bad-response", f"internal error ({type(problem).__name__})")
        finally:
            self._on_wire.discard(domain)
            end = gate.leave(is_ledgered=name != domain.name)
        mono_ms = start.mono_ns // 1_000_000
        entry = Exchange(
            start.wall_ms,
            mono_ms,
            request.method,
            host,
            answer.slug if isinstance(answer, Failure) else answer.status,
            end.mono_ns // 1_000_000 - mono_ms,
            name,
        )
        (domain.robots_ledger if request.take is Take.ANYTHING else domain.ledger).append(entry)
        return answer

    # -- writing down --------------------------------------------------------------------------------

    def _finish(self, domain: Domain, result: PageResult) -> None:
        """Append a visit's result; its job is settled with that."""
        assert domain.job is not None
        closes = result.closes
        if closes is not None and not closes.request_number:
            closes = replace(closes, request_number=domain.gate.record.sent)
        ledger = tuple(domain.robots_ledger + domain.ledger)
        # A record of these many members is not made twice only to be written.
        body = dump(result, at=now_text(), boot=self._clock().boot, ledger=ledger, closes=closes)
        with self._writing:
            end = self._append(body)
            domain.done = domain.job_end
            self._dirty.add(domain)
        self._count(domain, ledger, end)
        domain.remember(domain.job)
        domain.visit = None
        self.counts.pages += 1
        self.counts.requests += len(ledger)
        self.counts.errors += result.state in ERRORS
        if closes is not None:
            domain.closes, domain.closed_run = closes, result.run
            if domain.gate.update(result.run, domain.bring_up_to_date):
                domain.uncounted = 0
        if log.isEnabledFor(logging.INFO):
            if result.error:
                log.info("%s: %s (%s)", result.wire, result.state, result.error)
            else:
                log.info("Discovered %d links on %s", len(result.hrefs), result.wire)
        self._ring_ingest()

    def _write_robots(self, domain: Domain, result: RobotsResult) -> None:
        """Write down what was learned, then act on it: the proof comes before what it allows."""
        moment = self._clock()
        ledger = tuple(domain.robots_ledger)
        domain.robots_ledger.clear()
        self.counts.requests += len(ledger)
        result = replace(result, at=now_text(), boot=moment.boot, ledger=ledger)
        end = self._write(result)
        self._count(domain, ledger, end)
        domain.delays[result.host] = self._robots.learn(result, moment.wall_ms).crawl_delay_ms

    def _count(self, domain: Domain, ledger: tuple[Exchange, ...], end: Cursor) -> None:
        domain.uncounted += sum(entry.domain == domain.name for entry in ledger)
        domain.mark = LedgerMark(self.number, end.segment, end.offset)

    def _end(self) -> Cursor:
        with self._writing:
            return self._writer.end

    def _mark(self) -> LedgerMark:
        end = self._end()
        return LedgerMark(self.number, end.segment, end.offset)

    def _write(self, record: RobotsResult | DomainEvent) -> Cursor:
        body = dump(record)
        with self._writing:
            return self._append(body)

    def _append(self, body: bytes) -> Cursor:
        if self._is_closed:
            raise _TooLate
        self._is_unsynced = True
        return self._writer.append(body)

    def _ring_ingest(self) -> None:
        now = time.monotonic()
        if now - self._rang_at >= RING_EVERY:
            self._rang_at = now
            self.control.ring("ingest")

    # -- housekeeping (main thread) --------------------------------------------------------------------

    def _keep_house(self, now: float) -> None:
        if self._is_unsynced and now - self._synced_at >= SYNC_EVERY:
            self._sync(now)
        if now - self._marked_at >= BOOKMARK_EVERY:
            self._marked_at = now
            self._move_bookmarks()
        is_full = len(self._domains) >= self._settings.max_active_domains
        idle_since = now - (IDLE_LEASE_WHEN_FULL if is_full else IDLE_LEASE)
        for domain in [each for each in self._domains.values() if each.is_idle and each.idle_since <= idle_since]:
            self._let_go(domain)

    def _sync(self, now: float) -> None:
        """Make all results so far durable; only then may bookmarks move behind their jobs.

        What is written behind `end` from now on belongs to jobs behind `done`.
        """
        self._synced_at = now
        with self._writing:
            end = self._writer.end
            for domain in self._dirty:
                domain.synced = Bookmark(domain.done, self.name, end)
            dirty = self._dirty
            self._dirty, self._is_unsynced = set(), False
            finish_sync = self._writer.begin_sync()
        try:
            finish_sync()  # while this waits for the disk, results are appended behind `end`
        except OSError:
            for domain in dirty:
                domain.synced = domain.bookmark
            raise
        self.control.ring("ingest")

    def _move_bookmarks(self) -> None:
        with self._writing:
            end = self._writer.end
            for domain in self._domains.values():
                old = domain.synced.results
                is_near = end.segment == old.segment and end.offset - old.offset < BOOKMARK_LAG
                if not is_near and domain not in self._dirty:
                    domain.synced = replace(domain.synced, results=end)
        for domain in self._domains.values():
            self._move_bookmark(domain, domain.synced)

    def _move_bookmark(self, domain: Domain, bookmark: Bookmark) -> None:
        if bookmark != domain.bookmark:
            is_first = domain.bookmark.holder != self.name
            write_bookmark(domain.reader.folder, bookmark, is_first=is_first)
            domain.bookmark = bookmark

    def _let_go(self, domain: Domain) -> None:
        """Release an idle domain's lease, with everything in order behind us."""
        with self._idling:
            if not domain.is_idle or domain.is_nudged:
                return
            del self._domains[domain.name]
        if domain in self._dirty:
            self._sync(time.monotonic())
        is_counted = not domain.uncounted and domain.closes is None
        if not is_counted:
            is_counted = domain.gate.update(domain.run, domain.bring_up_to_date)
        # Where the gate is busy just now, the next fetcher counts for us.
        self._move_bookmark(domain, replace(domain.synced, holder=None if is_counted else self.name))
        domain.drop()

    # -- the end -------------------------------------------------------------------------------------

    def _shut_down(self, wire: threading.Thread) -> None:
        """Finish what is on the wire and what is half made, as far as that is a matter of seconds; save all."""
        queue = self._due_queue
        self._stop_by_ns = time.monotonic_ns() + int(STOP_GRACE * 1e9)
        queue.end(self._may_finish)
        is_empty = not queue.is_held and self._trouble is None and queue.wait_until_empty(STOP_GRACE)
        if not is_empty:
            queue.clear()
            is_empty = queue.wait_until_empty(STOP_AT_MOST)
        stragglers = not is_empty
        self._hub.stop()
        wire.join(STOP_AT_MOST)
        try:
            if self._trouble is None:
                self._sync(time.monotonic())
                for domain in list(self._domains.values()):
                    if domain.is_idle:
                        self._let_go(domain)
                    elif not stragglers:
                        self._save_half_made(domain)
            with self._writing:
                self._is_closed = True
                self._writer.close()
        except OSError as problem:
            self._trouble = self._trouble or problem
        self.control.ring("ingest")
        self.control.close()
        self._transport.close()
        if not stragglers:
            for domain in self._domains.values():
                domain.drop()
            self._slots.close()

    def _save_half_made(self, domain: Domain) -> None:
        """A visit that was not finished: its job stays before the bookmark and is done again."""
        domain.gate.update(domain.run, domain.bring_up_to_date)
        self._move_bookmark(domain, domain.synced)

    def _facts(self) -> dict[str, Any]:
        """What the heartbeat tells. Called from signal handlers too, so it takes no lock."""
        domains = list(self._domains.values())
        first = self._due_queue.first()
        due: dict[str, Any] | None = None
        if first is not None:
            at_ns, domain = first
            due = {"domain": domain.name, "seconds": round(max(0, at_ns - time.monotonic_ns()) / 1e9, 1)}
        return {
            "run": self._run,
            "in_flight": len(self._on_wire),
            "slots": self._room,
            "domains": len(domains),
            "waiting": len(self._due_queue),
            "backlog": sum(len(domain.jobs) for domain in domains),
            "heard": len(self._heard),
            "pages": self.counts.pages,
            "requests": self.counts.requests,
            "errors": self.counts.errors,
            "next_due": due,
        }


def run_fetcher(
    config: Config,
    index: int = 0,
    workers: int = 1,
    *,
    watch_parent: bool = False,
    install_signals: bool = True,
) -> int:
    """Be one fetcher, number `index` of `workers`, until the run is over. Returns the exit code."""
    return Fetcher(config, index, workers, watch_parent=watch_parent).run(install_signals=install_signals)


def _take_name(workspace: Workspace) -> tuple[FileLock, str, int]:
    """The first free name among `fetcher-01`, `fetcher-02`, …"""
    number = 1
    while True:
        name = f"fetcher-{number:02d}"
        try:
            return workspace.take_role(name), name, number
        except RoleTaken:
            number += 1


def _sentence(problem: OSError) -> str:
    words = problem.strerror or str(problem)
    return f"{words}: {problem.filename}" if problem.filename else words


def _allow_many_files() -> None:
    """A leased domain needs a few descriptors, a connection one more; the usual soft limit is tight."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(hard, 8192)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


__all__ = ["Fetcher", "run_fetcher", "run_pool"]
