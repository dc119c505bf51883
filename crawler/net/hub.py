"""One thread, many requests on the wire.

A request is written as if it had a thread of its own: it sends, waits, reads. In a `Hub` each one is a greenlet, and
while it waits another one goes on. What that saves are the kernel's switches between threads and their fight for the
interpreter's lock: an eighth of what a page cost a fetcher (docs/performance.md).

Whoever has real threads to spare uses `BlockingWaiter` instead; the code that waits is the same.
"""

from __future__ import annotations

import math
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeVar

from greenlet import getcurrent, greenlet

T = TypeVar("T")

LONGEST_SLEEP = 60.0  # seconds; a lost wake-up costs no more than this


class SocketWaiter(Protocol):
    """How a connection waits. It tries first (or has just sent something), and waits only for what is to come."""

    def attach(self, descriptor: int) -> None:
        """A new socket, not blocking, whose first step (`connect`) is under way."""

    def wait(self, descriptor: int, seconds: float, *, to_write: bool = False) -> None:
        """Return once there may be something to do on this socket. Raises TimeoutError."""

    def run_in_thread(self, work: Callable[[], T]) -> T:
        """The outcome of something that takes long and cannot be waited for otherwise (a name server)."""


class BlockingWaiter:
    """SocketWaiter in a thread that has nothing else to do."""

    def attach(self, descriptor: int) -> None:
        pass

    def wait(self, descriptor: int, seconds: float, *, to_write: bool = False) -> None:
        poller = select.poll()
        poller.register(descriptor, select.POLLOUT if to_write else select.POLLIN)
        if not poller.poll(math.ceil(seconds * 1000)):
            raise TimeoutError

    def run_in_thread(self, work: Callable[[], T]) -> T:
        return work()


class _Epoll:
    """Sockets are watched from their first step to their end, by changes: waiting costs no system call of its own."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.look = self._epoll.poll
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
    """For systems without epoll: a socket is watched while somebody waits for it."""

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

    def look(self, seconds: float) -> list[tuple[int, int]]:
        found = self._poll.poll(math.ceil(seconds * 1000))
        for descriptor, _ in found:
            self.disarm(descriptor)
        return found

    def close(self) -> None:
        pass


class Hub:
    """Greenlets of one thread that wait for sockets together.

    `spawn`, `attach`, `wait` and `run_in_thread` belong to the thread that is in `run`; every thread may call `wake`
    and `stop`.

    A change on a socket that comes while nobody waits for it is forgotten: hence "tries first" in `SocketWaiter`.
    """

    def __init__(self) -> None:
        self._watch = _Epoll() if hasattr(select, "epoll") else _Poll()
        self._waiting: dict[int, tuple[greenlet, float]] = {}  # descriptor → who waits for it, and until when
        self._earliest = math.inf  # no wait ends in a time-out before this
        self._back: deque[greenlet] = deque()  # what they did aside is done
        self._resting: list[greenlet] = []  # with nothing to do
        self._bell, self._rope = os.pipe()
        for end in (self._bell, self._rope):
            os.set_blocking(end, False)
        self._watch.always(self._bell)
        self._is_stopped = False
        self._loop: greenlet | None = None

    # -- for every thread ----------------------------------------------------------------------------

    def wake(self) -> None:
        """Let the loop look around."""
        try:
            os.write(self._rope, b"!")
        except OSError:
            pass  # the pipe is full: it is awake already; or closed: it is over

    def stop(self) -> None:
        """Let `run` return. What still waits then waits for ever."""
        self._is_stopped = True
        self.wake()

    # -- for the thread of the loop ------------------------------------------------------------------

    def run(self, begin: Callable[[], float]) -> None:
        """Work until `stop`. `begin` spawns what is due, and says in how many seconds there may be more."""
        self._loop = getcurrent()
        waiting, look = self._waiting, self._watch.look
        while not self._is_stopped:
            seconds = min(begin(), LONGEST_SLEEP, self._earliest - time.monotonic())
            for descriptor, _ in look(max(seconds, 0.0)):
                waiter = waiting.pop(descriptor, None)
                if waiter is not None:
                    waiter[0].switch()
                elif descriptor == self._bell:
                    os.read(self._bell, 65536)
            while self._back:
                self._back.popleft().switch()
            if time.monotonic() >= self._earliest:
                self._expire()
        while self._resting:
            self._resting.pop().throw()  # ends it, quietly

    def spawn(self, work: Callable[[T], None], about: T) -> None:
        """Begin something; returns when it waits for the first time. It must not raise."""
        # A greenlet that has done its work is given more: each new one takes memory of its own from the kernel.
        worker = self._resting.pop() if self._resting else greenlet(self._work, self._loop)
        worker.switch(work, about)

    def _work(self, work: Callable[[T], None], about: T) -> None:
        """A greenlet's life, until `run` ends."""
        assert self._loop is not None
        me = getcurrent()
        while True:
            work(about)
            self._resting.append(me)
            work, about = self._loop.switch()

    def attach(self, descriptor: int) -> None:
        self._watch.attach(descriptor)

    def wait(self, descriptor: int, seconds: float, *, to_write: bool = False) -> None:
        assert self._loop is not None
        until = time.monotonic() + seconds
        if until < self._earliest:
            self._earliest = until
        self._waiting[descriptor] = (getcurrent(), until)
        self._watch.arm(descriptor, to_write)
        self._loop.switch()

    def run_in_thread(self, work: Callable[[], T]) -> T:
        assert self._loop is not None
        me = getcurrent()
        outcome: list[T] = []
        problem: list[BaseException] = []

        def do() -> None:
            try:
                outcome.append(work())
            except BaseException as raised:
                problem.append(raised)
            self._back.append(me)
            self.wake()

        # A thread each, and none that anybody has to wait for at the end: a dead name server takes its time.
        threading.Thread(target=do, name="aside", daemon=True).start()
        self._loop.switch()
        if problem:
            raise problem.pop()  # it knows this frame: in a list that the frame knows, it would keep all of it alive
        return outcome[0]

    def _expire(self) -> None:
        now = time.monotonic()
        late = [descriptor for descriptor, (_, until) in self._waiting.items() if until <= now]
        for descriptor in late:
            waiter = self._waiting.pop(descriptor, None)
            if waiter is not None:
                self._watch.disarm(descriptor)
                waiter[0].throw(TimeoutError)
        self._earliest = min((until for _, until in self._waiting.values()), default=math.inf)

    def close(self) -> None:
        """After `run` has returned."""
        self._watch.close()
        os.close(self._bell)
        os.close(self._rope)
