"""A hub in a thread of its own, for tests that run as greenlets."""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from crawler.model.messages import Answer, Request
from crawler.net.client import HttpClient
from crawler.net.hub import Hub


class HubThread:
    """Runs the functions that other threads hand over, each as a greenlet."""

    def __init__(self, hub: Hub | None = None) -> None:
        self.hub = hub or Hub()
        self.on_turn: Callable[[], None] = lambda: None
        self._todo: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=lambda: self.hub.run(self._begin), name="hub", daemon=True)

    def __enter__(self) -> HubThread:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.hub.stop()
        self._thread.join(30)
        self.hub.close()

    def _begin(self) -> float:
        self.on_turn()
        while not self._todo.empty():
            self.hub.spawn(lambda work: work(), self._todo.get())
        return math.inf

    def all_of(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run these at the same time; the value that each returned."""
        outcomes: list[Any] = [None] * len(works)
        left = threading.Semaphore(0)

        def do(place: int) -> None:
            try:
                outcomes[place] = works[place]()
            except BaseException as problem:
                outcomes[place] = problem
            left.release()

        for place in range(len(works)):
            self._todo.put(lambda place=place: do(place))  # type: ignore[misc]
        self.hub.wake()
        for _ in works:
            assert left.acquire(timeout=60)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return outcomes


class HubClient(HttpClient):
    """A client whose requests are made in a hub, from whichever thread they come."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._running = HubThread().__enter__()
        super().__init__(*arguments, **options, waiter=self._running.hub)

    def send(self, request: Request) -> Answer:
        if threading.current_thread() is self._running._thread:
            return super().send(request)
        (answer,) = self._running.all_of([lambda: super(HubClient, self).send(request)])
        assert isinstance(answer, Answer)
        return answer

    def close(self) -> None:
        super().close()
        self._running.__exit__()
