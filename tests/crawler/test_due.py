"""The queue of what is due, with real threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from crawler.due import DueQueue

MS = 1_000_000


def worker(queue: DueQueue[str], act: Callable[[str], None]) -> threading.Thread:
    def work() -> None:
        while (item := queue.take()) is not None:
            try:
                act(item)
            finally:
                queue.done()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@pytest.mark.timeout(60)
def test_nothing_is_handed_out_before_it_is_due_and_everything_is_once() -> None:
    queue: DueQueue[str] = DueQueue()
    taken: list[tuple[str, int]] = []
    due = {str(number): time.monotonic_ns() + (number * 37 % 50) * MS for number in range(200)}
    threads = [worker(queue, lambda item: taken.append((item, time.monotonic_ns()))) for _ in range(4)]
    for item, at in due.items():
        queue.push(item, at)
    assert queue.wait_until_empty(30)
    queue.close()
    for thread in threads:
        thread.join()
    assert sorted(item for item, _ in taken) == sorted(due)
    assert all(at >= due[item] for item, at in taken)


@pytest.mark.timeout(60)
def test_something_due_earlier_than_what_is_waited_for_comes_first() -> None:
    queue: DueQueue[str] = DueQueue()
    taken: list[str] = []
    came = threading.Event()

    def act(item: str) -> None:
        taken.append(item)
        came.set()

    threads = [worker(queue, act) for _ in range(3)]
    queue.push("in an hour", time.monotonic_ns() + 3600 * 1000 * MS)
    queue.push("now", 0)
    assert came.wait(30)
    assert taken == ["now"]
    first = queue.first()
    assert first is not None and first[1] == "in an hour"
    queue.close()
    for thread in threads:
        thread.join()


@pytest.mark.timeout(60)
def test_one_slow_item_does_not_keep_the_others_waiting() -> None:
    queue: DueQueue[str] = DueQueue()
    release, quick_done = threading.Event(), threading.Event()

    def act(item: str) -> None:
        if item == "slow":
            release.wait(30)
        elif item == "last":
            quick_done.set()

    threads = [worker(queue, act) for _ in range(2)]
    queue.push("slow", 0)
    for number in range(20):
        queue.push(f"quick {number}", time.monotonic_ns() + number * MS)
    queue.push("last", time.monotonic_ns() + 30 * MS)
    assert quick_done.wait(30)
    release.set()
    assert queue.wait_until_empty(30)
    queue.close()
    for thread in threads:
        thread.join()


@pytest.mark.timeout(60)
def test_a_held_queue_hands_out_nothing_until_it_is_let_go() -> None:
    queue: DueQueue[str] = DueQueue()
    taken = threading.Event()
    queue.hold(True)
    thread = worker(queue, lambda item: taken.set())
    queue.push("due", 0)
    assert not queue.wait_until_empty(0.05)
    assert not taken.is_set()
    queue.hold(False)
    assert taken.wait(30)
    queue.close()
    thread.join()


@pytest.mark.timeout(60)
def test_threads_retire_when_told_and_the_others_go_on() -> None:
    queue: DueQueue[str] = DueQueue()
    threads = [worker(queue, lambda item: None) for _ in range(3)]
    queue.retire(2)
    while sum(thread.is_alive() for thread in threads) != 1:
        threading.Event().wait(0.01)
    queue.push("still served", 0)
    assert queue.wait_until_empty(30)
    queue.close()
    for thread in threads:
        thread.join()


def test_an_ending_queue_keeps_only_what_is_worth_waiting_for() -> None:
    queue: DueQueue[str] = DueQueue()
    queue.push("soon", 10)
    queue.push("late", 10**9)
    queue.end(lambda item, due: due < 100)
    queue.push("later", 10**9)
    queue.push("soon too", 20)
    assert queue.is_ending
    assert [queue.take(), queue.take()] == ["soon", "soon too"]
    assert len(queue) == 0
