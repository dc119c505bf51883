"""One thread, many requests on the wire.

A request is written as if it had a thread of its own: it sends, waits, reads. In a `Hub` each one is a greenlet, and
while it waits another one runs. This saves the kernel's switches between threads and the contention for the
interpreter's lock: an eighth of the CPU of a page in a fetcher (docs/performance.md).

A program with a thread for each request uses `BlockingWaiter` instead; the code that waits is the same.
"""

from __future__ import annotations

import math
import os
import queue
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from greenlet import getcurrent, greenlet

T = TypeVar("T")

LONGEST_SLEEP = 60.0  # seconds; a lost wake-up costs no more than this


class SocketWaiter(Protocol):
    """The way in which a connection waits. It tries to read or write first, and waits only if that would block."""

    def attach(self, descriptor: int) -> None:
        """Register a new non-blocking socket whose `connect` is under way."""

    def wait(self, descriptor: int, seconds: float, *, to_write: bool = False) -> None:
        """Return once this socket may be readable (or writable). Raises TimeoutError."""

    def wait_for_callback(self, begin: Callable[[Callable[[T], None]], None], seconds: float) -> T:
        """Call `begin(done)` and return the value that `done` is called with, from any thread. Raises TimeoutError."""


class BlockingWaiter:
    """Waits by blocking its thread."""

    def attach(self, descriptor: int) -> None:
        pass

    def wait(self, descriptor: int, seconds: float, *, to_write: bool = False) -> None:
        poller = select.poll()
        poller.register(descriptor, select.POLLOUT if to_write else select.POLLIN)
        if not poller.poll(math.ceil(seconds * 1000)):
            raise TimeoutError

    def wait_for_callback(self, begin: Callable[[Callable[[T], None]], None], seconds: float) -> T:
        values: queue.SimpleQueue[T] = queue.SimpleQueue()
        begin(values.put)
        try:
            return values.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None


class _Epoll:
    """Watches a socket from its first step to its end, by changes: a wait costs no system call of its own."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.poll = self._epoll.poll
        self.close = self._epoll.close

    def always(self, descriptor: int) -> None:
        self._epoll.register(descriptor, select.EPOLLIN)

    def attach(self, descriptor: int) -> None:
        self._epoll.register(descriptor, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET)

    def arm(self, descriptor: int, to_write: bool) -> None:
        pass

    def disarm(self, descriptor: int) -> None:
        pass


class _Poll:
    """Watches a socket only while a greenlet waits for it. For systems without epoll."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._always: set[int] = set()

    def always(self, descriptor: int) -> None:
        self._always.add(descriptor)
        self._poll.register(descriptor, select.POLLIN)

    def attach(self, descriptor: int) -> None:
        pass

    def arm(self, descriptor: int, to_write: bool) -> None:
        self._poll.register(descriptor, select.POLLOUT if to_write else select.POLLIN)

    def disarm(self, descriptor: int) -> None:
        if descriptor not in self._always:
            self._poll.unregister(descriptor)

    def poll(self, seconds: float) -> list[tuple[int, int]]:
        found = self._poll.poll(math.ceil(seconds * 1000))
        for descriptor, _ in found:
            self.disarm(descriptor)
        return found

    def close(self) -> None:
        pass


class LoopWatch(Protocol):
    """Told by a hub whose turn it is: it writes that down for those who look from outside."""

    def enter(self, place: int) -> None:
        """The greenlet at this place runs from now on."""

    def leave(self) -> None:
        """None runs: the loop waits."""


class _Unwatched:
    def enter(self, place: int) -> None:
        pass

    def leave(self) -> None:
        pass


class _Worker(greenlet):
    """A greenlet of a hub. `place` numbers those that exist at the same time, from 0."""

    place = 0


class Hub:
    """Greenlets of one thread that wait for sockets together.

    `spawn`, `attach`, `wait`, `wait_for_callback` and `run_in_thread` belong to the thread that is in `run`; every
    thread may call `wake` and `stop`.

    A change on a socket that comes while no greenlet waits for it is forgotten: hence "tries first" in `SocketWaiter`.
    """

    def __init__(self) -> None:
        self.watch: LoopWatch = _Unwatched()
        self._places = 0
        self._watch = _Epoll() if hasattr(select, "epoll") else _Poll()
        # Descriptor → the greenlet that waits for it, and until when. A negative number is a callback's ticket.
        self._waiting: dict[int, tuple[_Worker, float]] = {}
        self._earliest = math.inf  # no wait times out before this
        self._last_ticket = 0
        self._called_back: deque[tuple[int, Any]] = deque()  # (ticket, value)
        self._spare: list[_Worker] = []  # greenlets with nothing to do
        self._wake_reader, self._wake_writer = os.pipe()
        for end in (self._wake_reader, self._wake_writer):
            os.set_blocking(end, False)
        self._watch.always(self._wake_reader)
        self._is_stopped = False
        self._is_closed = False
        self._closing = threading.Lock()  # a late callback must not write to a descriptor that is another file's by now
        self._loop: greenlet | None = None

    # -- for every thread ----------------------------------------------------------------------------

    def wake(self) -> None:
        """End the current sleep of the loop."""
        try:
            os.write(self._wake_writer, b"!")
        except OSError:
            pass  # the pipe is full: the loop is awake already; or closed: it has ended

    def stop(self) -> None:
        """Let `run` return. Greenlets that still wait are never resumed."""
        self._is_stopped = True
        self.wake()

    # -- for the thread of the loop ------------------------------------------------------------------

    def run(self, begin: Callable[[], float]) -> None:
        """Work until `stop`. `begin` spawns the work that is due and returns the seconds until there may be more."""
        self._loop = getcurrent()
        waiting, poll = self._waiting, self._watch.poll
        while not self._is_stopped:
            seconds = min(begin(), LONGEST_SLEEP, self._earliest - time.monotonic())
            self.watch.leave()
            for descriptor, _ in poll(max(seconds, 0.0)):
                waiter = waiting.pop(descriptor, None)
                if waiter is not None:
                    self.watch.enter(waiter[0].place)
                    waiter[0].switch()
                elif descriptor == self._wake_reader:
                    os.read(self._wake_reader, 65536)
            while self._called_back:
                self._resume(*self._called_back.popleft())
            if time.monotonic() >= self._earliest:
                self._expire()
        while self._spare:
            self._spare.pop().throw()  # ends it, quietly

    def spawn(self, work: Callable[[T], None], about: T) -> None:
        """Begin `work(about)`; returns when it waits for the first time. It must not raise."""
        # A greenlet that has done its work is given more: each new one takes memory of its own from the kernel.
        worker = self._spare.pop() if self._spare else self._new_worker()
        self.watch.enter(worker.place)
        worker.switch(work, about)

    @property
    def is_here(self) -> bool:
        """Is this call made by one of its greenlets?"""
        return isinstance(getcurrent(), _Worker) and getcurrent().parent is self._loop

    @property
    def place(self) -> int:
        """The place of the greenlet that asks; 0 outside of them."""
        return getattr(getcurrent(), "place", 0)

    def _new_worker(self) -> _Worker:
        worker = _Worker(self._work, self._loop)
        worker.place = self._places
        self._places += 1
        return worker

    def _work(self, work: Callable[[T], None], about: T) -> None:
        """A greenlet's life, until `run` ends."""
        assert self._loop is not None
        me = getcurrent()
        assert isinstance(me, _Worker)
        while True:
            work(about)
            self._spare.append(me)
            work, about = self._loop.switch()

    def attach(self, descriptor: int) -> None:
        self._watch.attach(descriptor)

    def wait(self, descriptor: int, seconds: float, *, to_write: bool = False) -> None:
        assert self._loop is not None
        self._add(descriptor, seconds)
        self._watch.arm(descriptor, to_write)
        self._loop.switch()

    def wait_for_callback(self, begin: Callable[[Callable[[T], None]], None], seconds: float) -> T:
        assert self._loop is not None
        self._last_ticket = ticket = self._last_ticket - 1

        def done(value: T) -> None:
            with self._closing:
                if not self._is_closed:
                    self._called_back.append((ticket, value))
                    if len(self._called_back) == 1:  # else the loop is awake, or about to be, and takes them all
                        self.wake()

        begin(done)
        self._add(ticket, seconds)
        return self._loop.switch()  # type: ignore[no-any-return]

    def run_in_thread(self, work: Callable[[], T]) -> T:
        """The outcome of long work that has no socket to wait for, made in a thread of its own."""

        def begin(done: Callable[[tuple[T | None, BaseException | None]], None]) -> None:
            def run() -> None:
                try:
                    outcome = work()
                except BaseException as raised:
                    done((None, raised))
                else:
                    done((outcome, None))

            # A daemon: the end of the process waits for none of them.
            threading.Thread(target=run, name="run-in-thread", daemon=True).start()

        outcome, problem = self.wait_for_callback(begin, math.inf)
        if problem is not None:
            try:
                raise problem
            finally:
                del problem  # it refers to this frame: the two would keep each other, and the work's data, alive
        return outcome  # type: ignore[return-value]

    def _add(self, number: int, seconds: float) -> None:
        until = time.monotonic() + seconds
        if until < self._earliest:
            self._earliest = until
        self._waiting[number] = (getcurrent(), until)  # type: ignore[assignment]

    def _resume(self, ticket: int, value: object) -> None:
        waiter = self._waiting.pop(ticket, None)
        if waiter is not None:  # else it has timed out
            self.watch.enter(waiter[0].place)
            waiter[0].switch(value)

    def _expire(self) -> None:
        now = time.monotonic()
        late = [number for number, (_, until) in self._waiting.items() if until <= now]
        for number in late:
            waiter = self._waiting.pop(number, None)
            if waiter is not None:
                if number >= 0:
                    self._watch.disarm(number)
                self.watch.enter(waiter[0].place)
                waiter[0].throw(TimeoutError)
        self._earliest = min((until for _, until in self._waiting.values()), default=math.inf)

    def close(self) -> None:
        """Release the descriptors, after `run` has returned. Later callbacks are dropped."""
        with self._closing:
            self._is_closed = True
            self._watch.close()
            os.close(self._wake_reader)
            os.close(self._wake_writer)
