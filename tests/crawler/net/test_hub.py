"""The hub on real sockets: greenlets that wait together, time out one by one, and never for each other."""

from __future__ import annotations

import gc
import select
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from greenlet import getcurrent, greenlet

from crawler.net.hub import Hub, _Poll
from tests.in_hub import HubThread


@pytest.fixture(params=["epoll", "poll"])
def running(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubThread]:
    if request.param == "poll":
        monkeypatch.delattr(select, "epoll", raising=False)
    hub = Hub()
    assert (type(hub._watch) is _Poll) == (request.param == "poll" or not hasattr(select, "epoll"))
    with HubThread(hub) as thread:
        yield thread


def pair(hub: Hub) -> tuple[socket.socket, socket.socket]:
    mine, theirs = socket.socketpair()
    mine.setblocking(False)
    hub.attach(mine.fileno())
    return mine, theirs


def read(hub: Hub, sock: socket.socket, seconds: float = 30.0) -> bytes:
    while True:
        try:
            return sock.recv(100)
        except BlockingIOError:
            hub.wait(sock.fileno(), seconds)


def echo_of(hub: Hub, number: int, everyone_is_here: threading.Barrier) -> bytes:
    mine, theirs = pair(hub)

    def answer() -> None:
        everyone_is_here.wait(30)
        theirs.sendall(b"%d" % number)

    threading.Thread(target=answer).start()
    with mine, theirs:
        return read(hub, mine)


def test_every_callback_of_many_that_come_together_is_heard(running: HubThread) -> None:
    """Only the first of them wakes the loop."""
    together = threading.Barrier(8)

    def ask(number: int) -> list[int]:
        answers = []
        for turn in range(20):

            def begin(done: Callable[[int], None], turn: int = turn) -> None:
                def answer() -> None:
                    together.wait(30)
                    done(100 * number + turn)

                threading.Thread(target=answer).start()

            answers.append(running.hub.wait_for_callback(begin, 30.0))
        return answers

    found = running.all_of([partial(ask, number) for number in range(8)])
    assert found == [[100 * number + turn for turn in range(20)] for number in range(8)]


def test_many_wait_at_once_and_each_gets_its_own(running: HubThread) -> None:
    everyone_is_here = threading.Barrier(50)
    works: list[Callable[[], Any]] = [
        lambda number=number: echo_of(running.hub, number, everyone_is_here)  # type: ignore[misc]
        for number in range(50)
    ]
    assert running.all_of(works) == [b"%d" % number for number in range(50)]


def test_a_wait_that_takes_too_long_ends_alone(running: HubThread) -> None:
    hub = running.hub
    silent, silent_end = pair(hub)
    patient, patient_end = pair(hub)

    def late() -> str:
        with pytest.raises(TimeoutError):
            read(hub, silent, 0.05)
        patient_end.sendall(b"go on")
        return "late"

    assert running.all_of([lambda: read(hub, patient), late]) == [b"go on", "late"]
    for sock in (silent, silent_end, patient, patient_end):
        sock.close()


def test_a_socket_can_be_waited_for_again_after_a_time_out(running: HubThread) -> None:
    hub = running.hub
    mine, theirs = pair(hub)

    def work() -> bytes:
        with pytest.raises(TimeoutError):
            read(hub, mine, 0.01)
        theirs.sendall(b"at last")
        return read(hub, mine)

    assert running.all_of([work]) == [b"at last"]
    mine.close()
    theirs.close()


def test_work_in_a_thread_holds_up_no_greenlet_and_its_exception_comes_back(running: HubThread) -> None:
    hub = running.hub
    may_end = threading.Event()

    def slow() -> str:
        assert hub.run_in_thread(lambda: may_end.wait(30)) is True
        return threading.current_thread().name

    def quick() -> str:
        may_end.set()
        with pytest.raises(ZeroDivisionError):
            hub.run_in_thread(lambda: 1 / 0)
        return threading.current_thread().name

    assert running.all_of([slow, quick]) == ["hub", "hub"]


class Page:
    """Something large."""


def test_a_failure_in_a_thread_is_released_without_the_collector(running: HubThread) -> None:
    """A fetcher's collector comes by rarely: pages of megabytes waited for it by the dozen."""

    def fail() -> weakref.ref[Page]:
        page = Page()
        seen = weakref.ref(page)
        with suppress(ZeroDivisionError):
            running.hub.run_in_thread(lambda: (page, 1 / 0))
        return seen

    gc.collect()
    gc.disable()
    try:
        (seen,) = running.all_of([fail])
        for thread in threading.enumerate():
            if thread.name == "run-in-thread":
                thread.join()
        assert seen() is None
    finally:
        gc.enable()


def test_a_hub_with_nothing_to_do_uses_no_cpu(running: HubThread) -> None:
    hub = running.hub
    turns: list[float] = []
    running.on_turn = lambda: turns.append(time.monotonic())
    hub.wake()
    running.all_of([lambda: None])
    before = len(turns)
    mine, theirs = pair(hub)

    def wait_in_vain() -> None:
        with pytest.raises(TimeoutError):
            read(hub, mine, 0.2)

    with mine, theirs:
        running.all_of([wait_in_vain])
    assert len(turns) - before < 20


def test_a_greenlet_that_is_done_is_given_more_work_and_ends_with_the_hub() -> None:
    def me() -> greenlet:
        return getcurrent()

    with HubThread() as running:
        hub = running.hub
        found = [running.all_of([me])[0] for _ in range(3)]
        assert found[0] is found[1] is found[2]
    assert all(each.dead for each in found)
    assert not hub._spare
