"""Answers that take a scan of the map: worked out once for each state of it, in one thread, and kept.

A map of a completed run does not change, so an answer about it is worked out once. While the first run is under way the
map changes all the time: then an answer is shown as it was, and worked out anew when it is old, at most so often that
it takes a twentieth of a core.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeVar

from reporter.web.problems import Problem

T = TypeVar("T")

PATIENCE = 5.0  # seconds that a call waits for an answer that nobody has worked out yet
_KEPT = 24  # answers
_FRESH = 3.0  # seconds
_QUICK = 0.05  # seconds: an answer that is made in less is waited for, though an older one is there
_BRIEF = 0.3  # seconds of that wait
_SHARE = 20  # times the seconds that it took, before it is worked out again


@dataclass(slots=True)
class _Kept:
    stamp: str
    value: Any
    made_at: float
    seconds: float


class _Maker:
    """One thread that makes one answer after the other. It does not keep the process from ending, as a pool's would."""

    def __init__(self) -> None:
        self._orders: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="prepare", daemon=True)

    def submit(self, make: Callable[[], Any]) -> Future[Any]:
        if self._thread.ident is None:
            self._thread.start()
        made: Future[Any] = Future()
        self._orders.put((made, make))
        return made

    def close(self) -> None:
        """After what was ordered before."""
        self._orders.put(None)

    def _run(self) -> None:
        while (order := self._orders.get()) is not None:
            made, make = order
            try:
                made.set_result(make())
            except BaseException as problem:
                made.set_exception(problem)


class Prepared:
    """Answers by name. A name is asked with the stamp of the map's state."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._making: dict[str, Future[Any]] = {}
        self._lock = threading.Lock()
        self._maker = _Maker()

    def get(self, name: str, stamp: str, make: Callable[[], T], *, is_live: bool = False) -> T:
        """The answer; an older one if the newer takes long. Raises Problem where there is none yet.

        `is_live`: the stamp changes all the time, so an older answer is good for a while.
        """
        with self._lock:
            kept = self._kept.get(name)
            if kept is not None:
                self._kept.move_to_end(name)
                if kept.stamp == stamp or (is_live and not self._is_old(kept)):
                    return kept.value  # type: ignore[no-any-return]
            making = self._making.get(name)
            if making is None:
                making = self._making[name] = self._maker.submit(lambda: self._make(name, stamp, make))
            if kept is not None and is_live and kept.seconds > _QUICK:
                return kept.value  # type: ignore[no-any-return]
        try:
            return making.result(_BRIEF if kept is not None and is_live else PATIENCE)  # type: ignore[no-any-return]
        except NotYet:
            if kept is not None:
                return kept.value  # type: ignore[no-any-return]
            detail = "this is being worked out for the first time since the run; try again in a moment"
            raise Problem(503, "being-prepared", detail, retry_after=3) from None

    def _is_old(self, kept: _Kept) -> bool:
        return time.monotonic() - kept.made_at >= max(_FRESH, kept.seconds * _SHARE)

    def _make(self, name: str, stamp: str, make: Callable[[], Any]) -> Any:
        began = time.monotonic()
        try:
            value = make()
            now = time.monotonic()
            with self._lock:
                self._kept[name] = _Kept(stamp, value, now, now - began)
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            return value
        finally:
            with self._lock:
                self._making.pop(name, None)

    def close(self) -> None:
        self._maker.close()
