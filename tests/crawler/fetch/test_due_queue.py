"""The queue of due items: one real thread takes from it as the fetcher's does, others put in."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from crawler.fetch.due_queue import DueQueue

MS = 1_000_000


class Taker:
    """Takes and acts until it is stopped."""

    def __init__(self, act: Callable[[str], None]) -> None:
        self._act = act
        self._woken = threading.Event()
        self._is_over = False
        self.queue: DueQueue[str] = DueQueue(self._woken.set)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while not self._is_over:
            self._woken.clear()
            while (item := self.queue.take()) is not None:
                self._act(item)
                self.queue.done()
            self._woken.wait(min(self.queue.patience(), 60))

    def close(self) -> None:
        self._is_over = True
        self._woken.set()
        self._thread.join()


@pytest.fixture
def takers() -> Iterator[Callable[[Callable[[str], None]], DueQueue[str]]]:
    made: list[Taker] = []

    def make(act: Callable[[str], None]) -> DueQueue[str]:
        made.append(Taker(act))
        return made[-1].queue

    yield make
    for taker in made:
        taker.close()


@pytest.mark.timeout(60)
def test_nothing_is_handed_out_before_it_is_due_and_everything_is_once(
    takers: Callable[[Callable[[str], None]], DueQueue[str]],
) -> None:
    taken: list[tuple[str, int]] = []
    queue = takers(lambda item: taken.append((item, time.monotonic_ns())))
    due = {str(number): time.monotonic_ns() + (number * 37 % 50) * MS for number in range(200)}

    def put(items: list[str]) -> None:
        for item in items:
            queue.push(item, due[item])

    threads = [threading.Thread(target=put, args=(list(due)[part::4],)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queue.end(lambda item, due_ns: True)
    assert queue.wait_until_empty(30)
    assert sorted(item for item, _ in taken) == sorted(due)
    assert all(at >= due[item] for item, at in taken)


@pytest.mark.timeout(60)
def test_an_item_that_is_due_earlier_than_the_awaited_one_comes_first(
    takers: Callable[[Callable[[str], None]], DueQueue[str]],
) -> None:
    taken: list[str] = []
    came = threading.Event()

    def act(item: str) -> None:
        taken.append(item)
        came.set()

    queue = takers(act)
    queue.push("in an hour", time.monotonic_ns() + 3600 * 1000 * MS)
    queue.push("now", 0)
    assert came.wait(30)
    assert taken == ["now"]
    first = queue.first()
    assert first is not None and first[1] == "in an hour"


@pytest.mark.timeout(60)
def test_a_held_queue_hands_out_nothing_until_it_is_held_no_longer(
    takers: Callable[[Callable[[str], None]], DueQueue[str]],
) -> None:
    taken = threading.Event()
    queue = takers(lambda item: taken.set())
    queue.hold(True)
    queue.push("due", 0)
    assert queue.patience() > 3600
    assert not queue.wait_until_empty(0.05)
    assert not taken.is_set()
    queue.hold(False)
    assert taken.wait(30)


def test_the_taking_thread_does_not_wake_itself() -> None:
    woken: list[int] = []
    queue: DueQueue[str] = DueQueue(lambda: woken.append(threading.get_ident()))
    assert queue.take() is None
    queue.push("mine", 0)
    assert not woken
    other = threading.Thread(target=queue.push, args=("sooner", -1))
    other.start()
    other.join()
    assert len(woken) == 1


def test_of_items_that_are_due_the_one_with_the_smaller_handicap_goes_first() -> None:
    handicaps = {"old and large": 2_000, "new": 0, "as new, a little later": 0, "old and small": 500}
    queue: DueQueue[str] = DueQueue(lambda: None, handicaps.__getitem__)
    queue.push("old and large", 10)
    queue.push("as new, a little later", 30)
    queue.push("new", 20)
    queue.push("old and small", 15)
    assert queue.first() == (10, "old and large")
    assert [queue.take() for _ in range(4)] == ["new", "as new, a little later", "old and small", "old and large"]


def test_a_handicap_does_not_delay_a_lone_item_and_lets_none_wait_for_ever() -> None:
    queue: DueQueue[str] = DueQueue(lambda: None, lambda item: 1_000 if item == "old" else 0)
    queue.push("old", 10)
    assert queue.has_due
    assert queue.take() == "old"
    assert not queue.has_due
    queue.push("old", 10)
    for due in (900, 1_000, 1_100):
        queue.push(f"new, due at {due}", due)
    assert [queue.take() for _ in range(4)] == ["new, due at 900", "new, due at 1000", "old", "new, due at 1100"]


def test_items_that_are_due_but_not_taken_are_part_of_the_queue() -> None:
    """`take` sorts all due items and hands out one: the others are counted, shown, filtered and cleared too."""
    queue: DueQueue[str] = DueQueue(lambda: None)
    for due, item in enumerate(["first", "second", "third"]):
        queue.push(item, due)
    queue.push("far off", 10**18)
    assert queue.take() == "first"
    assert len(queue) == 3
    assert queue.first() == (1, "second")
    assert queue.patience() == 0.0
    queue.hold(True)
    assert queue.take() is None
    assert queue.patience() > 3600
    queue.hold(False)
    queue.end(lambda item, due: item != "second" and due < 100)
    assert (len(queue), queue.first()) == (1, (2, "third"))
    queue.clear()
    assert (len(queue), queue.first(), queue.take()) == (0, None, None)


def test_an_ending_queue_keeps_only_items_that_are_worth_waiting_for() -> None:
    queue: DueQueue[str] = DueQueue(lambda: None)
    queue.push("soon", 10)
    queue.push("late", 10**18)
    queue.end(lambda item, due: due < 100)
    queue.push("later", 10**18)
    queue.push("soon too", 20)
    assert queue.is_ending
    assert [queue.take(), queue.take(), queue.take()] == ["soon", "soon too", None]
    assert not queue.wait_until_empty(0.01)
    queue.done()
    queue.done()
    assert queue.wait_until_empty(30)
