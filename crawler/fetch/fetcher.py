"""One fetcher process: jobs in, results out. It owns the sockets, threads, claims and the pace.

    releases, job logs ──▶ main thread (here): claims, bookmarks, fsync, slots, heartbeat
                                │ a held domain with something to do
                                ▼
                           queue of domains by the time at which they are due
                                │
                                ▼
                           request loop: a greenlet a slot, one request each, through the domain's gate

Each part has a module of its own (see the package), and this one only puts them together.

A domain is in exactly one place: idle (the main thread has it), in the queue, or with the one greenlet that took it
out.

Order of durable writes: a page is put into the store (`[store] html`), its result is appended, then both are made
durable (a group of them with one sync of the store, then one fsync), and only then does the bookmark move past its
job. A request is counted in its gate before it leaves.
"""

from __future__ import annotations

import gc
import logging
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from crawler.fetch.backpressure import Backpressure
from crawler.fetch.claims import DomainClaims
from crawler.fetch.domain_worker import Counts, DomainWorker
from crawler.fetch.due_queue import DueQueue
from crawler.fetch.gated_request import GatedRequester
from crawler.fetch.journal import Journal
from crawler.fetch.leased_domain import LeasedDomain
from crawler.fetch.open_files import allow_many_files, fit_open_files, warn_of_few_files
from crawler.fetch.outlook import Outlook
from crawler.fetch.parse_memory import ParseMemory
from crawler.fetch.request_loop import RequestLoop
from crawler.model.errors import sentence
from crawler.model.moments import Moment
from crawler.model.settings import Config
from crawler.net.client import HttpClient
from crawler.net.hub import Hub
from crawler.resilience import network_state
from crawler.resilience.stalls import Work
from crawler.store.file_store import open_store
from crawler.workspace.clock import read_clock
from crawler.workspace.control import StageControl
from crawler.workspace.door import Held, LeaseLost, RoleTaken, StoppedWhileAway, Workspace
from crawler.workspace.opening import open_workspace
from crawler.workspace.runs import RunWatch

log = logging.getLogger("sumi.fetcher")

DEAD_MAN = 3  # times `processing-timeout` of CPU without a round of the main thread: then the kernel ends this process
_LISTEN_EVERY = 0.5  # seconds between looks for announcements that no bell told of
EXIT_MISTAKE = 70  # a bug in this program: the supervisor may start another process


class Fetcher:
    """One process: it starts, works until the run is over, and saves. `run` returns the exit code.

    Invariant: the first error of any thread ends the work, and no bookmark moves after it.
    """

    def __init__(
        self,
        config: Config,
        index: int,
        workers: int,
        *,
        clock: Callable[[], Moment] = read_clock,
        is_supervised: bool = False,
    ) -> None:
        self._config = config
        self._index = index
        self._workers = max(1, workers)
        self._workspace = open_workspace(config)
        self._clock = clock
        self._is_supervised = is_supervised
        self._hub = Hub()
        self._workspace.wait_in(self._hub)
        self._queue: DueQueue[LeasedDomain] = DueQueue(self._hub.wake, LeasedDomain.handicap)
        self._runs = RunWatch(self._workspace)
        self._error: Exception | None = None
        self._has_rung = True
        self._listened_at = 0.0
        self.counts = Counts()

    def run(
        self, *, install_signals: bool = True, on_control: Callable[[StageControl], None] = lambda control: None
    ) -> int:
        """Work until the run is over or a stop is requested. 0: done, 1: could not go on, 130: interrupted."""
        self._workspace.prepare()
        role, self._name, number = _claim_name(self._workspace)
        self._control = StageControl(self._workspace, "fetcher", self._name, is_supervised=True)
        self._is_main = install_signals  # a fetcher in a thread of another program leaves that one's timer alone
        if install_signals:
            self._control.install_signals()
        on_control(self._control)
        self._build(number)
        self._control.facts = self._facts
        self._control.work = self._work
        if self._is_main:
            gc.collect()
            gc.freeze()
            gc.set_threshold(50_000, 20, 100)
        self._loop.start()
        try:
            while not self._is_finished():
                self._turn()
        except OSError as problem:
            self._error = self._error or problem
        self._shut_down()
        if self._is_main:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        role.release()
        if isinstance(self._error, StoppedWhileAway):
            return self._error.exit_code
        if isinstance(self._error, LeaseLost):
            log.warning("%s starts anew: %s", self._name, sentence(self._error))
            return EXIT_MISTAKE  # a new process has a lease of its own
        if isinstance(self._error, OSError):
            log.error("%s stops: %s", self._name, sentence(self._error))
            return 1
        if self._error is not None:
            return EXIT_MISTAKE
        return 0 if self._runs.is_completed and not self._control.signals else self._control.exit_code

    def _build(self, number: int) -> None:
        config, workspace, control = self._config, self._workspace, self._control
        self._files = fit_open_files(config, allow_many_files())
        if self._index == 0:  # all fetchers of a crawl have the same limit: one of them says so
            warn_of_few_files(config, self._files)
        network = replace(config.network, max_idle_connections=self._files.idle_connections)
        memory = ParseMemory(self._hub, network.parse_memory, network.max_body_size)
        self._client = HttpClient(network, config.user_agent.header, waiter=self._hub, memory=memory)
        self._store = open_store(config, writer=self._name) if config.store.html else None
        self._activity = self._hub.watch = workspace.activity(self._name)
        self._journal = Journal(
            workspace,
            self._name,
            number,
            config.spool.segment_size,
            partial(control.ring, "ingest"),
            sync_store=self._store.sync_if_dirty if self._store is not None else None,
        )
        self._requester = GatedRequester(config, workspace, self._client, self._clock)
        self._outlook = Outlook(
            workspace,
            config.resilience.suspicion,
            is_supervised=self._is_supervised,
            wake=partial(control.ring, self._name),
        )
        self._pressure = Backpressure(config.spool, workspace, is_telling=self._index == 0)
        worker = DomainWorker(
            config,
            control,
            self._runs,
            self._journal,
            self._requester,
            self._queue,
            self._hub,
            self.counts,
            self._clock,
            memory,
            self._activity,
            self._outlook,
            self._store,
        )
        self._loop = RequestLoop(
            workspace,
            self._name,
            self._workers,
            config.crawler.max_concurrent_pages_open,
            self._queue,
            self._hub,
            worker.advance,
            self._give_up,
        )
        fitting = replace(config, crawler=replace(config.crawler, max_active_domains=self._files.domains))
        self._claims = DomainClaims(
            fitting,
            workspace,
            self._index,
            self._workers,
            worker,
            self._journal,
            self._clock,
            sync_store=self._store.sync if self._store is not None else None,
        )

    # -- the main thread -----------------------------------------------------------------------------

    def _is_finished(self) -> bool:
        if self._error is not None or self._runs.is_completed:
            return True
        return self._control.should_stop()

    def _turn(self) -> None:
        """One round of the main thread: flags, announcements, slots, claims, journal, heartbeat, wait."""
        now = time.monotonic()
        if self._is_main:
            self._wind_up()
        if self._has_rung and not (self._queue or self._requester.in_flight):
            self._workspace.look_again()  # the run may be over
        self._runs.refresh()
        self._outlook.refresh()
        self._pressure.look(now)
        self._loop.share = self._pressure.now.share
        is_paused = self._control.is_paused()
        is_held = is_paused or self._outlook.holds_requests or self._pressure.holds_requests
        if is_held != self._queue.is_held:
            self._queue.hold(is_held)
        if self._has_rung or now - self._listened_at >= _LISTEN_EVERY:
            self._listened_at = now
            self._claims.listen(now)
        if not is_held:
            self._loop.share_slots(now)
            if self._loop.room:
                self._claims.claim_due(now)
        self._journal.keep_up(now, self._claims.progress)
        self._claims.release_idle(now)
        is_idle = not self._claims.held and not self._claims.announced
        doing = "paused" if is_paused else network_state.HOLDS if self._outlook.holds_requests else ""
        doing = doing or self._pressure.now.doing or ("idle" if is_idle else "running")
        self._control.beat(doing, force=self._outlook.has_news())
        self._has_rung = self._control.wait(self._patience(is_idle))

    def _wind_up(self) -> None:
        """Put off the end of this process, which the kernel brings about if this is not called again.

        C code that never returns lets no thread of this process run, and no handler of a signal. The watchdog sees
        that; but if the supervisor is dead, nobody else would end a process that holds its domains and a CPU.
        """
        signal.setitimer(signal.ITIMER_VIRTUAL, DEAD_MAN * self._config.network.processing_timeout / 1000)

    def _patience(self, is_idle: bool) -> float:
        """Seconds until the next round is needed."""
        if self._claims.has_more_to_claim and not self._queue.is_held:
            return 0.0
        return min(self._journal.patience(), 1.0 if is_idle or self._queue.is_held else 0.5)

    def _give_up(self, problem: Exception) -> None:
        """A thread cannot go on: end the process. Called from every thread."""
        self._error = self._error or problem
        self._queue.clear()
        self._queue.hold(True)
        self._control.ring(self._name)

    # -- the end -------------------------------------------------------------------------------------

    def _shut_down(self) -> None:
        """Finish requests on the wire and half-made visits, if that takes a few seconds only; save everything."""
        is_over = self._loop.finish(has_failed=self._error is not None)
        try:
            if self._error is None:
                self._journal.sync(time.monotonic())
                self._claims.save(with_half_made=is_over)
            self._journal.close()
            if self._store is not None:
                self._store.close()
        except OSError as problem:
            self._error = self._error or problem
        self._control.ring("ingest")
        self._control.close()
        self._client.close()
        if is_over:
            self._claims.close()
            self._loop.close()
            self._hub.close()
            self._activity.close()

    def _work(self) -> Work:
        """A request on the wire, or a domain that is due, is work; domains that wait are none."""
        is_due = self._requester.in_flight > 0 or (self._loop.room > 0 and self._queue.has_due)
        return Work(self._requester.ended, is_due)

    def _facts(self) -> dict[str, Any]:
        """The facts of the heartbeat. Called from signal handlers too, so it takes no lock."""
        domains = list(self._claims.held)
        first = self._queue.first()
        due: dict[str, Any] | None = None
        if first is not None:
            at_ns, domain = first
            due = {"domain": domain.name, "seconds": round(max(0, at_ns - time.monotonic_ns()) / 1e9, 1)}
        return {
            "run": self._runs.number,
            "in_flight": self._requester.in_flight,
            "on_the_wire": self._requester.on_the_wire(time.monotonic_ns()),
            "slots": self._loop.room,
            "domains": len(domains),
            "waiting": len(self._queue),
            "backlog": sum(len(domain.jobs) for domain in domains),
            "heard": self._claims.announced,
            "pages": self.counts.pages,
            "requests": self.counts.requests,
            "errors": self.counts.errors,
            "next_due": due,
            "most_domains": self._files.domains,
            "open_files": self._files.limit,
            **self._outlook.facts(),
        }


def run_fetcher(
    config: Config,
    index: int = 0,
    workers: int = 1,
    *,
    install_signals: bool = True,
    is_supervised: bool = False,
    on_control: Callable[[StageControl], None] | None = None,
) -> int:
    """Run fetcher number `index` of `workers` until the run is over. Returns the exit code.

    `is_supervised`: somebody answers its questions about the network. `on_control` gets the control of a fetcher in a
    thread, in place of signals.
    """
    fetcher = Fetcher(config, index, workers, is_supervised=is_supervised)
    if on_control is not None:
        return fetcher.run(install_signals=False, on_control=on_control)
    return fetcher.run(install_signals=install_signals)


def _claim_name(workspace: Workspace) -> tuple[Held, str, int]:
    """The first free name among `fetcher-01`, `fetcher-02`, …"""
    number = 1
    while True:
        name = f"fetcher-{number:02d}"
        try:
            return workspace.take_role(name), name, number
        except RoleTaken:
            number += 1
