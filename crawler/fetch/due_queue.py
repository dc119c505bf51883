"""A queue ordered by the time at which items are due. One thread takes from it, any thread puts in."""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

TICK_NS = 4_000_000  # waits end on ticks of a coarse clock: one wake-up for all items that are due by then


def _none(item: object) -> int:
    return 0


class DueQueue(Generic[T]):
    """Hands each item out once, not before it is due. Times are monotonic nanoseconds.

    Where more is due than can be taken, the item that has waited longest goes first; `handicap` is the time in
    nanoseconds that an item has to have waited longer than others.

    `wake` is called when the taking thread may have to look earlier than `patience` said.
    """

    def __init__(self, wake: Callable[[], None], handicap: Callable[[T], int] = _none) -> None:
        self._wake = wake
        self._handicap = handicap
        self._taker: int | None = None
        self._lock = threading.Lock()
        self._condition = threading.Condition(self._lock)  # entering it is slow; only `wait_until_empty` does
        self._heap: list[tuple[int, int, T]] = []  # by due time
        self._line: list[tuple[int, int, int, T]] = []  # items that are due, by due time and handicap
        self._pushed = 0
        self._is_held = False
        self._taken = 0
        self._keeps: Callable[[T, int], bool] | None = None

    def __len__(self) -> int:
        return len(self._heap) + len(self._line)

    def first(self) -> tuple[int, T] | None:
        """The next due time and its item. Takes no lock: it may be called from a signal handler."""
        for _, due, _, item in self._line[:1]:
            return due, item
        for due, _, item in self._heap[:1]:
            return due, item
        return None

    @property
    def has_due(self) -> bool:
        """Would `take` find something? Takes no lock."""
        first = self.first()
        return first is not None and not self._is_held and first[0] <= time.monotonic_ns()

    @property
    def is_held(self) -> bool:
        return self._is_held

    @property
    def is_ending(self) -> bool:
        return self._keeps is not None

    def push(self, item: T, due_ns: int) -> None:
        """Put an item in. While the queue is ending, items that are not worth waiting for are dropped."""
        with self._lock:
            if self._keeps is not None and not self._keeps(item, due_ns):
                return
            self._pushed += 1
            heapq.heappush(self._heap, (due_ns, self._pushed, item))
            is_first = self._heap[0][2] is item
        if is_first and threading.get_ident() != self._taker:
            self._wake()

    def take(self) -> T | None:
        """The item that is due first, if it is due. Always called by the same thread.

        Every item taken must be reported with `done`, even if it was pushed again.
        """
        self._taker = threading.get_ident()
        with self._lock:
            if self._is_held:
                return None
            heap, line, now = self._heap, self._line, time.monotonic_ns()
            while heap and heap[0][0] <= now:
                due, number, item = heapq.heappop(heap)
                heapq.heappush(line, (due + self._handicap(item), due, number, item))
            if not line:
                return None
            self._taken += 1
            return heapq.heappop(line)[3]

    def patience(self) -> float:
        """Seconds until `take` is worth calling again, unless `wake` is called before."""
        with self._lock:
            if self._is_held or not (self._heap or self._line):
                return math.inf
            if self._line:
                return 0.0
            due = self._heap[0][0]
        return max(0, due + -due % TICK_NS - time.monotonic_ns()) / 1e9

    def done(self) -> None:
        """An item that was taken has been dealt with."""
        with self._lock:
            self._taken -= 1
            if self._keeps is not None:
                self._condition.notify_all()

    def hold(self, is_held: bool) -> None:
        """Hand out nothing while held."""
        self._is_held = is_held
        self._wake()

    def end(self, keeps: Callable[[T, int], bool]) -> None:
        """From now on keep only items that are still worth waiting for."""
        with self._lock:
            self._keeps = keeps
            self._heap = [entry for entry in self._heap if keeps(entry[2], entry[0])]
            self._line = [entry for entry in self._line if keeps(entry[3], entry[1])]
            heapq.heapify(self._heap)
            heapq.heapify(self._line)
            self._condition.notify_all()

    def clear(self) -> None:
        with self._lock:
            self._heap.clear()
            self._line.clear()
            self._condition.notify_all()

    def wait_until_empty(self, seconds: float) -> bool:
        """Is every item taken and dealt with? Waits up to `seconds` for that, once the queue is ending."""
        with self._condition:
            return self._condition.wait_for(lambda: not self and not self._taken, seconds)
