"""The one thread that puts requests on the wire: a greenlet for each domain that is due, as many as there are slots.

A domain that waits, for its pace or for a pause, costs an entry in the queue and no slot.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable

from crawler.fetch.due_queue import DueQueue
from crawler.fetch.journal import TooLate
from crawler.fetch.lease import Domain
from crawler.net.hub import Hub
from crawler.pace.decisions import fair_share
from crawler.workspace.door import Workspace

log = logging.getLogger("sumi.fetcher")

SHARE_EVERY = 5.0  # how often the share of slots is looked at
STOP_GRACE = 3.0  # for visits that are half made
STOP_AT_MOST = 15.0  # for requests on the wire


class WireThread:
    """Takes due domains out of the queue and lets `advance` make one step of each. For the main thread to steer.

    Invariants:
    - no more domains are being worked on than this process holds slots;
    - a slot is given back only when nobody works in it;
    - `_staffing` is taken before the queue's lock, never the other way round.

    `give_up` is told of what must not happen: the disk that fails, a mistake in this program.
    """

    def __init__(
        self,
        workspace: Workspace,
        name: str,
        workers: int,
        limit: int,
        queue: DueQueue[Domain],
        hub: Hub,
        advance: Callable[[Domain], None],
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
        self._thread = threading.Thread(target=self._run, name="wire", daemon=True)
        self._staffing = threading.Lock()  # for `_room` and `_open`
        self._room = 0
        self._open = 0  # domains that are being worked on
        self._shared_at = 0.0
        self._stop_by_ns = 0

    @property
    def room(self) -> int:
        """How many requests may be on the wire at once. Takes no lock: it may be asked from a signal handler."""
        return self._room

    # -- for the main thread -------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def share_slots(self, now: float) -> None:
        """Hold as many slots as this process may have requests on the wire."""
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

    def finish(self, *, is_in_trouble: bool) -> bool:
        """Finish what is on the wire and what is half made, as far as that is a matter of seconds; end the thread.

        False: something is still on the wire, and its domain and slot belong to it until the process ends.
        """
        queue = self._queue
        self._stop_by_ns = time.monotonic_ns() + int(STOP_GRACE * 1e9)
        queue.end(self._may_finish)
        is_empty = not queue.is_held and not is_in_trouble and queue.wait_until_empty(STOP_GRACE)
        if not is_empty:
            queue.clear()
            is_empty = queue.wait_until_empty(STOP_AT_MOST)
        self._hub.stop()
        self._thread.join(STOP_AT_MOST)
        return is_empty

    def close(self) -> None:
        """Give all slots back; nothing may be on the wire any more."""
        self._slots.close()

    def _may_finish(self, domain: Domain, due_ns: int) -> bool:
        """While stopping: is this visit half made, and will it go on soon?"""
        return domain.has_asked and domain.wish is not None and due_ns <= self._stop_by_ns

    # -- the thread itself ---------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._hub.run(self._begin_due)
        except Exception as problem:
            log.exception("the wire thread found a mistake in this program")
            self._give_up(problem)

    def _begin_due(self) -> float:
        """Begin what is due, as far as there is room; in how many seconds there may be more."""
        while True:
            with self._staffing:
                if self._open >= self._room:
                    return math.inf
                domain = self._queue.take()
                if domain is None:
                    return self._queue.patience()
                self._open += 1
            self._hub.spawn(self._serve, domain)

    def _serve(self, domain: Domain) -> None:
        """A greenlet's life: one step of one domain."""
        try:
            self._advance(domain)
        except TooLate:
            pass
        except Exception as problem:
            if not isinstance(problem, OSError):
                log.exception("working on %s found a mistake in this program", domain.name)
            self._give_up(problem)
        finally:
            with self._staffing:
                self._open -= 1
            self._queue.done()
