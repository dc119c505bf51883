"""The one thread that sends requests: a greenlet for each domain that is due, at most one for each slot.

A domain that waits, for its delay or for a pause, costs an entry in the queue and no slot.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable

from crawler.fetch.due_queue import DueQueue
from crawler.fetch.journal import JournalClosed
from crawler.fetch.leased_domain import LeasedDomain
from crawler.net.hub import Hub
from crawler.pace.decisions import fair_share
from crawler.workspace.door import Workspace

log = logging.getLogger("sumi.fetcher")

SHARE_EVERY = 5.0  # seconds between adjustments of the share of slots
STOP_GRACE = 2.0  # seconds for visits that are half made
STOP_AT_MOST = 1.0  # seconds for requests on the wire after that …
STOP_THREAD = 0.3  # … and for the thread: together less than the supervisor waits after a Ctrl-C


class RequestLoop:
    """Takes due domains out of the queue and calls `advance` for each. Controlled by the main thread.

    Invariants:
    - no more domains are worked on than this process holds slots;
    - a slot is given back only when no domain is worked on in it;
    - `_staffing` is taken before the queue's lock, never the other way round.

    `give_up` is called with the error that ends this process: the disk fails, or this program has a bug.
    """

    def __init__(
        self,
        workspace: Workspace,
        name: str,
        workers: int,
        limit: int,
        queue: DueQueue[LeasedDomain],
        hub: Hub,
        advance: Callable[[LeasedDomain], None],
        give_up: Callable[[Exception], None],
    ) -> None:
        self._workspace = workspace
        self._name = name
        self._workers = workers
        self._limit = limit
        self._queue = queue
        self._hub = hub
        self._advance = advance
        self._give_up = give_up
        self._slots = workspace.slots(limit)
        self._thread = threading.Thread(target=self._run, name="requests", daemon=True)
        self._staffing = threading.Lock()  # for `_room` and `_open`
        self._room = 0
        self._open = 0  # domains that are worked on now
        self.share = 1.0  # of the room that may be used, set by the main thread; one request is always allowed
        self._shared_at = 0.0
        self._stop_by_ns = 0

    @property
    def room(self) -> int:
        """Requests that may be on the wire at once. Takes no lock: it may be called from a signal handler."""
        return self._room

    # -- for the main thread -------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def share_slots(self, now: float) -> None:
        """Hold this process's share of the slots: one for each request that it may have on the wire."""
        if now - self._shared_at < SHARE_EVERY and self._shared_at:
            return
        self._shared_at = now
        names = [role for role in self._workspace.roles() if role.startswith("fetcher-")]
        others = sum(name != self._name and self._workspace.is_role_taken(name) for name in names)
        share = fair_share(self._limit, max(self._workers, 1 + others))
        with self._staffing:
            self._slots.give_back(self._slots.held - max(share, self._open))
            self._slots.acquire(share - self._slots.held)
            self._room = min(share, self._slots.held)
        self._hub.wake()

    def finish(self, *, has_failed: bool) -> bool:
        """Finish requests on the wire and half-made visits, if that takes a few seconds only; end the thread.

        False: a request is still on the wire, and keeps its domain and slot until the process ends.
        """
        queue = self._queue
        self._stop_by_ns = time.monotonic_ns() + int(STOP_GRACE * 1e9)
        queue.end(self._may_finish)
        is_empty = not queue.is_held and not has_failed and queue.wait_until_empty(STOP_GRACE)
        if not is_empty:
            queue.clear()
            is_empty = queue.wait_until_empty(STOP_AT_MOST)
        self._hub.stop()
        self._thread.join(STOP_THREAD)
        return is_empty

    def close(self) -> None:
        """Give all slots back. No request may be on the wire any more."""
        self._slots.close()

    def _may_finish(self, domain: LeasedDomain, due_ns: int) -> bool:
        """While stopping: is this domain's visit half made, and due soon?"""
        return domain.is_half_made and due_ns <= self._stop_by_ns

    # -- the thread itself ---------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._hub.run(self._begin_due)
        except Exception as problem:
            log.exception("internal error in the request loop")
            self._give_up(problem)

    def _begin_due(self) -> float:
        """Start a greenlet for every due domain, as far as there is room; returns the seconds until more may be due."""
        while True:
            with self._staffing:
                if self._open >= self._room or self._open >= max(1.0, self._room * self.share):
                    return math.inf
                domain = self._queue.take()
                if domain is None:
                    return self._queue.patience()
                self._open += 1
            self._hub.spawn(self._serve, domain)

    def _serve(self, domain: LeasedDomain) -> None:
        """One greenlet: one step of one domain."""
        try:
            self._advance(domain)
        except JournalClosed:
            pass
        except Exception as problem:
            if not isinstance(problem, OSError):
                log.exception("internal error while working on %s", domain.name)
            self._give_up(problem)
        finally:
            with self._staffing:
                self._open -= 1
            self._queue.done()
