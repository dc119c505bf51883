"""A domain in one fetcher's hands: its lease, its bookmark, its jobs and the visit under way.

The bookmark (`bookmark.json` beside the jobs) says behind which job every result is durable, and whose spool the
results since then are in. Whoever takes the lease of a fetcher that died reads those results first
(`crawler/fetch/takeover.py`).
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Set

from msgspec.structs import replace

from crawler.model.messages import NO_RETRIES, Request, RetryCounts
from crawler.model.records import Closure, Exchange, Job
from crawler.model.urls import authority_of, domain_of
from crawler.pace.gate_record import GateRecord, LedgerMark
from crawler.visit.flow import Visit, number_of
from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.door import Claim, Gate
from crawler.workspace.log import Cursor, LogReader
from crawler.workspace.reading import read_records

BOOKMARK = "bookmark.json"
JOBS_AT_ONCE = 64
REMEMBERED_KEYS = 128  # visits of a domain that are remembered, so that a job written twice is done once
MOST_NAMES = 64
_HANDICAP_NS = 10_000_000  # for every request so far; a page takes two
_LARGEST_HANDICAP_NS = 2_000_000_000


def read_jobs(reader: LogReader, limit: int) -> list[tuple[Job, Cursor]]:
    """The next jobs of a domain, each with the cursor after it; lines that are no job are passed over."""
    return [(job, line.end) for job, line in read_records(reader, Job, limit=limit)]


class Domain:
    """A leased domain: its jobs, its visit under way, its gate and its place in the spools."""

    __slots__ = (
        "_stagger",
        "bookmark",
        "closed_run",
        "closes",
        "delays",
        "done",
        "gate",
        "has_asked",
        "has_found_closure",
        "idle_since",
        "is_idle",
        "is_nudged",
        "job",
        "job_end",
        "jobs",
        "lease",
        "ledger",
        "mark",
        "name",
        "names",
        "reader",
        "recent",
        "robots_ledger",
        "run",
        "synced",
        "tried",
        "uncounted",
        "visit",
        "wish",
    )

    def __init__(self, name: str, lease: Claim, gate: Gate, reader: LogReader, bookmark: Bookmark) -> None:
        self.name = name
        # Or else all would keep step: all HEADs are quickly done, and then nobody is due for as long as the pause is.
        self._stagger = zlib.crc32(name.encode()) % (2 * _HANDICAP_NS)
        self.lease = lease
        self.gate = gate
        self.reader = reader
        self.bookmark = bookmark
        self.done = bookmark.jobs
        self.synced = bookmark
        self.jobs: deque[tuple[Job, Cursor]] = deque()
        self.recent: dict[tuple[int, str], None] = {}
        self.visit: Visit | None = None
        self.job: Job | None = None
        self.job_end = bookmark.jobs
        self.wish: Request | None = None
        self.has_asked = False
        self.tried = NO_RETRIES
        self.delays: dict[str, int] = {}  # what each host's robots.txt wants between requests, where that is known
        self.names: dict[str, str] = {}  # hosts asked for this domain's sake → the domain that each belongs to
        self.ledger: list[Exchange] = []
        self.robots_ledger: list[Exchange] = []
        self.run = 0
        self.uncounted = 0  # ledger entries in the result spool that the gate's record does not count yet
        self.mark: LedgerMark | None = None
        self.closes: Closure | None = None
        self.closed_run = 0
        self.has_found_closure = False  # `closes` is an earlier process's, and not told again yet
        self.is_idle = True
        self.is_nudged = False
        self.idle_since = 0.0

    def handicap(self) -> int:
        """By how many nanoseconds it stands behind a domain that has not been asked yet, when both are due.

        So whoever was found late catches up, and small sites are done early, when there is more to do than can be done
        at once. It is bounded: whoever has had much waits a little, and not for all others to have had as much.
        """
        return min(self.gate.record.sent * _HANDICAP_NS, _LARGEST_HANDICAP_NS) + self._stagger

    def remember(self, job: Job) -> None:
        self.recent[job.run, job.key] = None
        if len(self.recent) > REMEMBERED_KEYS:
            del self.recent[next(iter(self.recent))]

    def tried_of(self, job: Job) -> RetryCounts:
        """What had been tried of a job that was cut off; with another one at work it does not matter any more."""
        if self.tried.job and self.tried.job != number_of(job):
            self.tried = NO_RETRIES
        return self.tried

    def place_of(self, url: str) -> tuple[str, str]:
        """(authority, domain) of a wire URL: nearly always the same one."""
        authority = authority_of(url)
        name = self.names.get(authority)
        if name is None:
            if len(self.names) >= MOST_NAMES:
                self.names.clear()
            name = self.names[authority] = domain_of(url)
        return authority, name

    def bring_up_to_date(self, record: GateRecord) -> GateRecord:
        """The gate's record with what this fetcher has written down since."""
        is_new = self.uncounted or self.closes is not None or self.mark not in (None, record.mark)
        if record.run != self.run or not (is_new or self.tried != record.retry_counts):
            return record
        ledgered = min(record.sent, record.ledgered + self.uncounted)
        closes = record.closes or (self.closes if self.closed_run == record.run else None)
        mark = self.mark or record.mark
        return replace(record, ledgered=ledgered, closes=closes, mark=mark, retry_counts=self.tried)

    def step_over(self, done: Set[tuple[int, str]]) -> None:
        """Jobs are done one after the other: all up to the last one with a result are settled."""
        while len(self.jobs) % JOBS_AT_ONCE == 0 and (more := read_jobs(self.reader, JOBS_AT_ONCE)):
            self.jobs.extend(more)
        ends = [end for job, end in self.jobs if (job.run, job.key) in done]
        if ends:
            self.done = max(ends)
            self.jobs = deque((job, end) for job, end in self.jobs if end > self.done)
        self.recent.update(dict.fromkeys(done))

    def drop(self) -> None:
        """Let the domain go, whatever its state."""
        self.reader.close()
        self.gate.close()
        self.lease.release()
