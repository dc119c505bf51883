"""Several fetcher processes under one parent: `sumi-ripple fetch`."""

from __future__ import annotations

import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from types import FrameType

from crawler.model.settings import Config

log = logging.getLogger("sumi.fetcher")

FIRST_PAUSE = 0.5  # seconds before a fetcher that died is started again; doubles each time
LONGEST_PAUSE = 30.0
SOUND_AFTER = 60.0  # one that lived this long starts with a short pause again
_GRACEFUL = (0, 130, 143)
_TUNABLES = "GLIBC_TUNABLES"


@dataclass(slots=True)
class _Place:
    """One of the pool's fetchers, and when it may be started (again)."""

    index: int
    process: BaseProcess | None = None
    started: float = 0.0
    start_at: float = 0.0
    pause: float = FIRST_PAUSE
    is_done: bool = False


def fetcher_count(config: Config, workers: int | None = None) -> int:
    """How many fetchers to start: as asked, else by the config, else one a core; never more than there are slots for
    requests. Each keeps a core busy when there is enough to do: more of them only take it from the ingest.
    """
    wanted = workers or config.crawler.workers or max(2, min(8, os.cpu_count() or 1))
    return max(1, min(wanted, config.crawler.max_concurrent_pages_open))


def give_way() -> None:
    """Let the other stages go first where cores are scarce: what is fetched faster than it is taken in only waits."""
    os.nice(5)


@contextmanager
def memory_at_hand() -> Iterator[None]:
    """What is started in here keeps freed memory at hand instead of sorting it back in: trees of pages come and go.

    GNU's C library reads this when a program starts, others pass it over; what the user has set stays. It takes a
    sixth off the parsing of a page (0.61 against 0.51 ms), and makes a fetcher some 20 MB larger.
    """
    if _TUNABLES in os.environ:
        yield
        return
    os.environ[_TUNABLES] = "glibc.malloc.tcache_count=4000"
    try:
        yield
    finally:
        del os.environ[_TUNABLES]


def run_pool(config: Config, workers: int | None = None, *, log_level: int | None = None) -> int:
    """Run fetchers until the run is over. SIGINT or SIGTERM: once to finish and save, twice to leave now."""
    pool = _Pool(config, fetcher_count(config, workers), log_level)
    return pool.run()


class _Pool:
    def __init__(self, config: Config, workers: int, log_level: int | None) -> None:
        self._config = config
        self._workers = workers
        self._log_level = log.getEffectiveLevel() if log_level is None else log_level
        self._context = multiprocessing.get_context("spawn")
        self._places = [_Place(index) for index in range(workers)]
        self._signals = 0
        self._passed_on = 0
        self._exit = 0

    def run(self) -> int:
        previous = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            while not all(place.is_done for place in self._places):
                self._turn(time.monotonic())
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
            for place in self._places:
                if place.process is not None and place.process.is_alive():
                    place.process.terminate()
        if self._exit:
            return self._exit
        return 130 if self._signals else 0

    def _turn(self, now: float) -> None:
        while self._passed_on < self._signals:
            self._passed_on += 1
            self._tell_all()
        for place in self._places:
            if place.process is None and not place.is_done:
                if self._signals or self._exit:
                    place.is_done = True
                elif now >= place.start_at:
                    self._start(place, now)
        alive = [place.process.sentinel for place in self._places if place.process is not None]
        multiprocessing.connection.wait(alive, timeout=0.5)
        for place in self._places:
            if place.process is not None and not place.process.is_alive():
                self._bury(place, time.monotonic())

    def _start(self, place: _Place, now: float) -> None:
        place.process = self._context.Process(
            target=_child,
            args=(self._config, place.index, self._workers, self._log_level),
            name=f"fetch-{place.index}",
        )
        # A child starts with SIGINT blocked: Ctrl-C reaches the whole group, and is passed on as SIGTERM, once.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with memory_at_hand():
                place.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        place.started = now

    def _bury(self, place: _Place, now: float) -> None:
        assert place.process is not None
        code = place.process.exitcode or 0
        place.process.join()
        place.process = None
        if code in _GRACEFUL or self._signals:
            place.is_done = True
        elif code == 1:  # it said why: the disk, the workspace. Starting again would not help.
            place.is_done = True
            if not self._exit:
                self._exit = 1
                self._tell_all()
        else:
            place.pause = FIRST_PAUSE if now - place.started > SOUND_AFTER else min(place.pause * 2, LONGEST_PAUSE)
            place.start_at = now + place.pause
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            log.warning("a fetcher %s; another one starts in %.1f s", how, place.pause)

    def _tell_all(self) -> None:
        for place in self._places:
            if place.process is not None and place.process.pid is not None and place.process.is_alive():
                os.kill(place.process.pid, signal.SIGTERM)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1


def _child(config: Config, index: int, workers: int, log_level: int) -> None:
    from crawler.fetch.fetcher import run_fetcher

    logging.basicConfig(level=log_level, format="[%(levelname)s] %(message)s", stream=sys.stderr)
    give_way()
    code = _run(lambda: run_fetcher(config, index, workers, watch_parent=True))
    sys.exit(code)


def _run(work: Callable[[], int]) -> int:
    from crawler.workspace.door import WorkspaceError

    try:
        return work()
    except WorkspaceError as problem:
        log.error("%s", problem)
        return 1
