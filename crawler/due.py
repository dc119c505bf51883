"""A queue by the moment things are due, for a few threads that wait on it together."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

TICK_NS = 4_000_000  # waits end on the ticks of a coarse clock: one wake-up for all that is due by then


class DueQueue(Generic[T]):
    """Hands each item to one thread, not before it is due. Times are monotonic nanoseconds.

    Only one of the waiting threads, the leader, watches the clock; the others sleep until they are needed. A thread
    that takes an item while more are due, or while nobody watches, wakes one other.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._heap: list[tuple[int, int, T]] = []
        self._pushed = 0
        self._leader: int | None = None
        self._leader_until = 0
        self._is_held = False
        self._is_closed = False
        self._to_retire = 0
        self._taken = 0
        self._keeps: Callable[[T, int], bool] | None = None

    def __len__(self) -> int:
        return len(self._heap)

    def first(self) -> tuple[int, T] | None:
        """When something is due next, and what. Takes no lock: it may be called from a signal handler."""
        heap = self._heap[:1]
        return (heap[0][0], heap[0][2]) if heap else None

    @property
    def is_held(self) -> bool:
        return self._is_held

    @property
    def is_ending(self) -> bool:
        return self._keeps is not None

    def push(self, item: T, due_ns: int) -> None:
        """Put an item in. When the queue is ending, what is not worth waiting for is dropped."""
        with self._condition:
            if self._keeps is not None and not self._keeps(item, due_ns):
                return
            self._pushed += 1
            heapq.heappush(self._heap, (due_ns, self._pushed, item))
            if self._heap[0][2] is item:
                self._condition.notify()

    def take(self) -> T | None:
        """Wait for the item that is due first. None: this thread is not needed any more.

        Every item taken must be reported with `done`, even if it was pushed again.
        """
        me = threading.get_ident()
        with self._condition:
            while not self._is_closed:
                if self._to_retire:
                    self._to_retire -= 1
                    self._condition.notify()
                    return None
                if self._is_held or not self._heap:
                    self._condition.wait()
                    continue
                due = self._heap[0][0]
                now = time.monotonic_ns()
                if due <= now:
                    _, _, item = heapq.heappop(self._heap)
                    self._taken += 1
                    if self._heap and (self._leader is None or self._heap[0][0] <= now):
                        self._condition.notify()
                    return item
                if self._leader is None or due < self._leader_until:
                    self._leader, self._leader_until = me, due
                    self._condition.wait((due - now + -due % TICK_NS) / 1e9)
                    if self._leader == me:
                        self._leader = None
                else:
                    self._condition.wait()
            return None

    def done(self) -> None:
        """A thread has dealt with what it took."""
        with self._condition:
            self._taken -= 1
            if self._keeps is not None:
                self._condition.notify_all()

    def hold(self, is_held: bool) -> None:
        """Hand out nothing while held."""
        with self._condition:
            self._is_held = is_held
            self._condition.notify_all()

    def retire(self, count: int) -> None:
        """Let so many threads go, as soon as they come back."""
        with self._condition:
            self._to_retire += count
            self._condition.notify_all()

    @property
    def retiring(self) -> int:
        return self._to_retire

    def end(self, keeps: Callable[[T, int], bool]) -> None:
        """From now on keep only what is still worth waiting for."""
        with self._condition:
            self._keeps = keeps
            self._heap = [entry for entry in self._heap if keeps(entry[2], entry[0])]
            heapq.heapify(self._heap)
            self._condition.notify_all()

    def clear(self) -> None:
        with self._condition:
            self._heap.clear()

    def wait_until_empty(self, seconds: float) -> bool:
        """Is everything out, and dealt with? Waits so long for it."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._heap and not self._taken, seconds)

    def close(self) -> None:
        """Send every thread home."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
