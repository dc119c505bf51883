"""One fetcher process: jobs in, results out. It owns the sockets, threads, leases and the pace.

    releases, job folders ──▶ main thread (here): leases, bookmarks, fsync, slots, heartbeat
                                   │ a leased domain with something to do
                                   ▼
                              queue of domains by the moment they are due
                                   │
                                   ▼
                              wire thread: a greenlet a slot, one request each, through the domain's gate

Each part has a room of its own, and this one only puts them together, in the order in which they depend on each other:

    results.py      what is written down: the result spool, its fsync, the bookmarks
    asking.py       one request, through its gate into the ledger
    steps.py        one domain's steps, from job to job
    wire_thread.py  who is due, and who may be on the wire
    domains.py      which domains are this process's (takeover.py: and what was left of them)

A domain is in exactly one place: idle (the main thread's), in the queue, or with the one greenlet that took it out.

Order of durable things: a result is appended, then made durable (a group of them with one fsync), and only then
does the bookmark move behind its job. A request is counted in its gate before it leaves.
"""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from crawler.fetch.claims import Domains
from crawler.fetch.domain_worker import Counts, Steps
from crawler.fetch.due_queue import DueQueue
from crawler.fetch.gated_request import Asker
from crawler.fetch.journal import Results
from crawler.fetch.lease import Domain
from crawler.fetch.request_loop import WireThread
from crawler.model.moments import Moment
from crawler.model.settings import Config
from crawler.net.client import HttpClient
from crawler.net.hub import Hub
from crawler.workspace.clock import read_clock
from crawler.workspace.control import StageControl
from crawler.workspace.door import Held, RoleTaken, Workspace
from crawler.workspace.opening import open_workspace
from crawler.workspace.runs import RunWatch

log = logging.getLogger("sumi.fetcher")

EXIT_MISTAKE = 70  # a mistake in this program: whoever watches may start another one


class Fetcher:
    """One process's life: it starts, looks around until the run is over, and saves. `run` returns the exit code.

    Invariant: the first trouble, of whichever thread, ends the work, and no bookmark moves after it.
    """

    def __init__(
        self,
        config: Config,
        index: int,
        workers: int,
        *,
        watch_parent: bool = False,
        clock: Callable[[], Moment] = read_clock,
    ) -> None:
        self._config = config
        self._index = index
        self._workers = max(1, workers)
        self._workspace = open_workspace(config.workspace)
        self._clock = clock
        self._parent = os.getppid() if watch_parent else None
        self._hub = Hub()
        self._queue: DueQueue[Domain] = DueQueue(self._hub.wake, Domain.handicap)
        self._runs = RunWatch(self._workspace)
        self._trouble: Exception | None = None
        self.counts = Counts()

    def run(self, *, install_signals: bool = True) -> int:
        """Work until the run is over or somebody says stop. 0: done, 1: could not go on, 130: interrupted."""
        self._workspace.prepare()
        role, self._name, number = _take_name(self._workspace)
        self._control = StageControl(self._workspace, "fetcher", self._name)
        if install_signals:
            self._control.install_signals()
        if self._parent is not None:
            # Ctrl-C reaches the whole group; the parent passes it on as SIGTERM, once.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._furnish(number)
        self._control.facts = self._facts
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)
        self._wire.start()
        try:
            while not self._is_finished():
                self._turn()
        except OSError as problem:
            self._trouble = self._trouble or problem
        self._shut_down()
        role.release()
        if isinstance(self._trouble, OSError):
            log.error("%s stops: %s", self._name, _sentence(self._trouble))
            return 1
        if self._trouble is not None:
            return EXIT_MISTAKE
        return 130 if self._control.signals else 0

    def _furnish(self, number: int) -> None:
        config, workspace, control = self._config, self._workspace, self._control
        # Leases and gates come first: a connection that is not kept is only made again.
        idle = min(config.network.max_idle_connections, _allow_many_files() // 3)
        network = replace(config.network, max_idle_connections=idle)
        self._transport = HttpClient(network, config.user_agent.header, waiter=self._hub)
        self._results = Results(
            workspace, self._name, number, config.spool.segment_size, partial(control.ring, "ingest")
        )
        self._asker = Asker(config, workspace, self._transport, self._clock)
        steps = Steps(
            config,
            control,
            self._runs,
            self._results,
            self._asker,
            self._queue,
            self._hub,
            self.counts,
            self._clock,
        )
        self._wire = WireThread(
            workspace,
            self._name,
            self._workers,
            config.crawler.max_concurrent_pages_open,
            self._queue,
            self._hub,
            steps.advance,
            self._give_up,
        )
        self._domains = Domains(config, workspace, self._index, self._workers, steps, self._results, self._clock)

    # -- looking around ------------------------------------------------------------------------------

    def _is_finished(self) -> bool:
        if self._trouble is not None or self._runs.is_completed:
            return True
        is_orphan = self._parent is not None and os.getppid() != self._parent
        return is_orphan or self._control.should_stop()

    def _turn(self) -> None:
        """One round of the main thread: look around, keep house, wait."""
        now = time.monotonic()
        self._runs.refresh()
        is_paused = self._control.is_paused()
        if is_paused != self._queue.is_held:
            self._queue.hold(is_paused)
        self._domains.listen(now)
        if not is_paused:
            self._wire.share_slots(now)
            if self._wire.room:
                self._domains.take_due(now)
        self._results.keep_up(now, self._domains.held)
        self._domains.let_go_idle(now)
        is_idle = not self._domains.held and not self._domains.heard
        self._control.beat("paused" if is_paused else "idle" if is_idle else "running")
        self._control.wait(self._patience(is_idle))

    def _patience(self, is_idle: bool) -> float:
        """How long nothing needs to be looked at."""
        if self._domains.has_more_to_take and not self._queue.is_held:
            return 0.0
        return min(self._results.patience(), 1.0 if is_idle or self._queue.is_held else 0.5)

    def _give_up(self, problem: Exception) -> None:
        """Any thread's way to say that it cannot go on."""
        self._trouble = self._trouble or problem
        self._queue.clear()
        self._queue.hold(True)
        self._control.ring(self._name)

    # -- the end -------------------------------------------------------------------------------------

    def _shut_down(self) -> None:
        """Finish what is on the wire and what is half made, as far as that is a matter of seconds; save all."""
        is_over = self._wire.finish(is_in_trouble=self._trouble is not None)
        try:
            if self._trouble is None:
                self._results.sync(time.monotonic())
                self._domains.save(with_half_made=is_over)
            self._results.close()
        except OSError as problem:
            self._trouble = self._trouble or problem
        self._control.ring("ingest")
        self._control.close()
        self._transport.close()
        if is_over:
            self._domains.drop()
            self._wire.close()
            self._hub.close()

    def _facts(self) -> dict[str, Any]:
        """What the heartbeat tells. Called from signal handlers too, so it takes no lock."""
        domains = list(self._domains.held)
        first = self._queue.first()
        due: dict[str, Any] | None = None
        if first is not None:
            at_ns, domain = first
            due = {"domain": domain.name, "seconds": round(max(0, at_ns - time.monotonic_ns()) / 1e9, 1)}
        return {
            "run": self._runs.number,
            "in_flight": self._asker.in_flight,
            "slots": self._wire.room,
            "domains": len(domains),
            "waiting": len(self._queue),
            "backlog": sum(len(domain.jobs) for domain in domains),
            "heard": self._domains.heard,
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


def _take_name(workspace: Workspace) -> tuple[Held, str, int]:
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


def _allow_many_files() -> int:
    """How many files may be open now. A leased domain needs a few, a connection one more; the usual soft limit is
    tight.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(hard, 8192)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
