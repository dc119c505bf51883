"""A domain that this fetcher holds: its claim and its parts, each with an owner of its own.

    jobs        JobQueue         what is to be done
    progress    JobProgress      how far it is done, durable and bookmarked (owned by the Journal)
    pace        DomainPace       its gate, delays, closure and retries
    visit       VisitInProgress  the visit under way (owned by the DomainWorker)
    idleness    Idleness         whether anybody works on it

The bookmark names the job up to which every result is durable, and the result log in which later results are. A
fetcher that claims the domain of a dead one reads those results first (`crawler/fetch/takeover.py`).
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Set

from crawler.fetch.domain_pace import DomainPace
from crawler.fetch.job_queue import JobIdentity, JobQueue
from crawler.fetch.journal import JobProgress
from crawler.fetch.visit_in_progress import VisitInProgress
from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.door import Claim, Gate

_HANDICAP_NS = 10_000_000  # for every request so far; a page takes two
_LARGEST_HANDICAP_NS = 2_000_000_000


class Idleness:
    """Whether a domain is idle, and whether new jobs were announced meanwhile. Safe to use from every thread.

    Invariant: an announcement is never lost. Either it makes an idle domain busy, or `try_rest` fails once.
    """

    __slots__ = ("_is_idle", "_is_notified", "_lock", "_since")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_idle = True
        self._is_notified = False
        self._since = 0.0

    @property
    def is_idle(self) -> bool:
        return self._is_idle

    def has_lasted_since(self, moment: float) -> bool:
        """Has the domain been idle since this moment, or longer?"""
        return self._is_idle and self._since <= moment

    def is_at_rest(self) -> bool:
        """Is it idle, with no announcement left? Then it stays so until `notify`."""
        with self._lock:
            return self._is_idle and not self._is_notified

    def notify(self) -> bool:
        """New jobs were announced. True: the domain was idle and is busy now, and the caller has to work on it."""
        with self._lock:
            if not self._is_idle:
                self._is_notified = True
                return False
            self._is_idle = False
            return True

    def try_rest(self, now: float, *, is_ending: bool) -> bool:
        """There are no jobs: become idle. False: some were announced meanwhile, look again (unless it is ending)."""
        with self._lock:
            if self._is_notified and not is_ending:
                self._is_notified = False
                return False
            self._is_idle = True
            self._since = now
            return True


class LeasedDomain:
    """A claimed domain and its parts.

    Invariants:
    - it is in exactly one place: idle (the main thread has it), in the queue, or with the greenlet that took it out;
    - only that place uses its parts, except `idleness`, and `progress`, which the journal guards with its lock.
    """

    __slots__ = ("_claim", "_stagger", "idleness", "is_404_known", "jobs", "name", "pace", "progress", "visit")

    def __init__(self, name: str, claim: Claim, gate: Gate, jobs: JobQueue, bookmark: Bookmark) -> None:
        self.name = name
        # Without it all domains would keep step: all HEADs are quickly done, and then none is due for a whole delay.
        self._stagger = zlib.crc32(name.encode()) % (2 * _HANDICAP_NS)
        self._claim = claim
        self.jobs = jobs
        self.progress = JobProgress(name, bookmark)
        self.pace = DomainPace(name, gate)
        self.visit: VisitInProgress | None = None
        self.idleness = Idleness()
        self.is_404_known = False  # a missing page of it was read, as `learn-404` asks

    def handicap(self) -> int:
        """Nanoseconds by which a domain that was never asked goes before this one, when both are due.

        So domains that were found late catch up, and small sites are done early, when more is due than can be done at
        once. It is bounded: a domain with many requests waits a little, not until all others have had as many.
        """
        return min(self.pace.sent * _HANDICAP_NS, _LARGEST_HANDICAP_NS) + self._stagger

    def begin_visit(self, visit: VisitInProgress) -> None:
        self.visit = visit

    def end_visit(self) -> None:
        self.visit = None

    @property
    def is_half_made(self) -> bool:
        """Has the visit under way sent a request, and waits to send another?"""
        return self.visit is not None and self.visit.is_half_made

    def skip_done_jobs(self, done: Set[JobIdentity]) -> None:
        """Skip jobs that have a durable result. Only before the domain is adopted."""
        end = self.jobs.skip_done_jobs(done)
        if end is not None:
            self.progress.start_at(end)

    def close(self) -> Claim:
        """Close its parts, in whatever state they are; returns the claim, which is to be released."""
        self.jobs.close()
        self.pace.gate.close()
        return self._claim
