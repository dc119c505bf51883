"""The visit that a domain is at: the job, the generator that makes the visit, its pending request, its ledgers."""

from __future__ import annotations

from crawler.model.messages import Request
from crawler.model.records import Exchange, Job
from crawler.visit.flow import Reply, Visit, Wish, number_of
from crawler.workspace.log import Cursor


class VisitInProgress:
    """One visit, from its first step to its result. Owned by the `DomainWorker`, which alone calls its methods.

    Invariants:
    - `pending` is the request that the visit waits for; None while it pauses, and before its first step;
    - every request that left is in one of the ledgers, and each ledger entry is returned once: by
      `pop_robots_ledger` if a robots.txt result is written first, else by `ledger`.
    """

    __slots__ = (
        "_has_asked",
        "_page_ledger",
        "_robots_ledger",
        "_visit",
        "is_suspect",
        "job",
        "job_end",
        "number",
        "pending",
    )

    def __init__(self, job: Job, job_end: Cursor, visit: Visit, *, is_suspect: bool = False) -> None:
        self.job = job
        self.number = number_of(job)
        self.is_suspect = is_suspect  # it has killed a fetcher
        self.job_end = job_end  # the cursor after the job
        self._visit = visit
        self.pending: Request | None = None
        self._has_asked = False
        self._page_ledger: list[Exchange] = []
        self._robots_ledger: list[Exchange] = []

    @property
    def is_half_made(self) -> bool:
        """Has it sent a request, and waits to send another?"""
        return self._has_asked and self.pending is not None

    def step(self, reply: Reply) -> Wish:
        """The visit's next wish, after this reply. Raises StopIteration with the result, like any generator."""
        return self._visit.send(reply)

    def wait_for(self, request: Request | None) -> None:
        """The request that the visit wants next; None: it pauses."""
        self.pending = request

    def record(self, entry: Exchange, *, is_robots: bool) -> None:
        """A request left, and this is its ledger entry."""
        self._has_asked = True
        (self._robots_ledger if is_robots else self._page_ledger).append(entry)

    def pop_robots_ledger(self) -> tuple[Exchange, ...]:
        """The entries of requests for robots.txt so far; they are in no later ledger."""
        ledger = tuple(self._robots_ledger)
        self._robots_ledger.clear()
        return ledger

    def ledger(self) -> tuple[Exchange, ...]:
        """All entries that are in no earlier ledger."""
        return tuple(self._robots_ledger + self._page_ledger)
