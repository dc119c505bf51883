"""The visit that a domain is at: the job, the generator that makes the visit, its pending request, its ledgers."""

from __future__ import annotations

from collections.abc import Callable

from crawler.model.messages import Request
from crawler.model.records import NETWORK_OUTAGE, Exchange, Job, PageResult, RobotsResult, SitemapResult
from crawler.resilience.suspicion import LOCAL_LOOKING, Interval
from crawler.visit.flow import Reply, Visit, Wish, number_of
from crawler.visit.sitemap_flow import SitemapVisit
from crawler.workspace.log import Cursor


class VisitInProgress:
    """One visit, from its first step to its result. Owned by the `DomainWorker`, which alone calls its methods.

    Invariants:
    - `pending` is the request that the visit waits for; None while it pauses, and before its first step;
    - every request that left is in one of the ledgers, and each ledger entry is returned once: by
      `pop_robots_ledger` if a robots.txt result is written first, else by `ledger`;
    - `withheld` is a result that is not recorded yet, because its failure may be ours.
    """

    __slots__ = (
        "_has_asked",
        "_page_ledger",
        "_robots_ledger",
        "_visit",
        "failures",
        "is_confirmed",
        "is_suspect",
        "job",
        "job_end",
        "last_failure",
        "note",
        "number",
        "pending",
        "withheld",
    )

    def __init__(self, job: Job, job_end: Cursor, visit: Visit | SitemapVisit, *, is_suspect: bool = False) -> None:
        self.job = job
        self.number = number_of(job)
        self.is_suspect = is_suspect  # it has killed a fetcher
        self.job_end = job_end  # the cursor after the job
        self._visit = visit
        self.pending: Request | None = None
        self.note = b""  # what is to be kept beside the page
        self._has_asked = False
        self._page_ledger: list[Exchange] = []
        self._robots_ledger: list[Exchange] = []
        self.failures: list[Interval] = []  # requests that failed in a way that may be ours
        self.last_failure: Interval | None = None  # the last request, if it is one of them
        self.is_confirmed = False  # one failed, the network was proved to work, and another one failed
        self.withheld: PageResult | SitemapResult | RobotsResult | None = None

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

    # -- failures that may be ours -------------------------------------------------------------------

    @property
    def first_failure(self) -> Interval | None:
        return self.failures[0] if self.failures else None

    def note_success(self) -> None:
        """The last request was answered."""
        self.last_failure = None

    def note_failure(self, request: Interval) -> None:
        """The last request failed in a way that may be ours."""
        self.failures.append(request)
        self.last_failure = request

    def withhold(self, result: PageResult | SitemapResult | RobotsResult) -> None:
        self.withheld = result
        self.pending = None

    def pop_withheld(self) -> PageResult | SitemapResult | RobotsResult:
        """The result is believed after all."""
        assert self.withheld is not None
        result, self.withheld, self.last_failure = self.withheld, None, None
        return result

    def begin_again(self, visit: Visit | SitemapVisit, is_out: Callable[[int], bool]) -> int:
        """Make the whole visit again. `is_out`: was there an outage at this monotonic nanosecond?

        Requests that an outage failed do not count; returns how many of them were to the visited page's domain.
        """
        out_ms = {failed.start // 1_000_000 for failed in self.failures if is_out(failed.start)}
        refunded = 0
        for ledger in (self._robots_ledger, self._page_ledger):
            for place, entry in enumerate(ledger):
                if entry.answer in LOCAL_LOOKING and entry.mono_ms in out_ms:
                    ledger[place] = entry._replace(answer=NETWORK_OUTAGE)
                    refunded += entry.domain == self.job.domain
        self._visit = visit
        self.pending = self.withheld = self.last_failure = None
        self.is_confirmed = not out_ms  # if it fails again: the network was proved to work meanwhile
        if out_ms:
            self.failures = []
        return refunded
