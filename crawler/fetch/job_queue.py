"""The jobs of one domain that are still to be done, read from its job log in small groups."""

from __future__ import annotations

from collections import deque
from collections.abc import Set

from crawler.model.records import Job
from crawler.model.urls import UrlError, domain_of, wire_of
from crawler.workspace.log import Cursor, LogReader
from crawler.workspace.reading import read_records

JOBS_AT_ONCE = 64
REMEMBERED_KEYS = 128  # visits of a domain that are remembered, so that a job written twice is done once

_MOST_RUNS = 2**31  # gates keep the number of a run in 32 bits

JobIdentity = tuple[int, str]  # (run, key)


class JobQueue:
    """Jobs of a domain in the order in which they were released, each with the cursor after it.

    Owned by the holder of the domain: `DomainClaims` and `Takeover` until it is adopted, then its `DomainWorker`.

    Invariants:
    - a job is returned by `next` at most once, unless it is put back;
    - lines that hold no job are passed over;
    - `fill` reads at most `JOBS_AT_ONCE` jobs; only `skip_done_jobs` may read more, at a takeover.
    """

    __slots__ = ("_reader", "_recent", "_waiting")

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._waiting: deque[tuple[Job, Cursor]] = deque()
        self._recent: dict[JobIdentity, None] = {}

    def __len__(self) -> int:
        """Jobs in memory. Takes no lock: it may be called from a signal handler."""
        return len(self._waiting)

    def fill(self) -> bool:
        """Read more jobs if there are none in memory. False: there are no more."""
        if not self._waiting:
            self._read_more()
            self._reader.close()  # the next window is another file
        return bool(self._waiting)

    def next(self) -> tuple[Job, Cursor] | None:
        """The next job in memory and the cursor after it; None: `fill` first."""
        return self._waiting.popleft() if self._waiting else None

    def first_run(self) -> int:
        """The run of the next job in memory; 0: there is none."""
        return self._waiting[0][0].run if self._waiting else 0

    def put_back(self, job: Job, end: Cursor) -> None:
        """Return the job that `next` returned last: it is not begun now."""
        self._waiting.appendleft((job, end))

    def remember(self, job: Job) -> None:
        """The job is done: should it come again, `is_done` knows it."""
        self._recent[job.run, job.key] = None
        if len(self._recent) > REMEMBERED_KEYS:
            del self._recent[next(iter(self._recent))]

    def is_done(self, job: Job) -> bool:
        """Was this job done recently?"""
        return (job.run, job.key) in self._recent

    def skip_done_jobs(self, done: Set[JobIdentity]) -> Cursor | None:
        """Skip every job up to the last one that has a result; returns the cursor after it, None if there is none.

        Jobs are done one after the other: those before a job with a result have one, or need none.
        """
        while len(self._waiting) % JOBS_AT_ONCE == 0 and self._read_more():
            pass
        self._recent.update(dict.fromkeys(done))
        ends = [end for job, end in self._waiting if (job.run, job.key) in done]
        if not ends:
            return None
        last = max(ends)
        self._waiting = deque((job, end) for job, end in self._waiting if end > last)
        return last

    def close(self) -> None:
        self._reader.close()

    def _read_more(self) -> bool:
        before = len(self._waiting)
        self._waiting.extend((job, line.end) for job, line in read_records(self._reader, Job, limit=JOBS_AT_ONCE))
        return len(self._waiting) > before


def job_fault(job: Job) -> str | None:
    """The reason why a job cannot be done, as no scheduler of this program writes it; None: it is sound."""
    if not 0 < job.run < _MOST_RUNS:
        return f"there is no run {job.run}"
    try:
        wire = wire_of(job.wire)
    except UrlError as problem:
        return str(problem)
    if wire != job.wire:
        return "its URL is not one that can be requested"
    if domain_of(job.wire) != job.domain:
        return "its URL is of another domain"
    return None
