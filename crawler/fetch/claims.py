"""The domains that one fetcher holds: announced, claimed, released.

    releases, job logs ──▶ announced ──▶ claimed, its predecessor's work taken over ──▶ released, after being idle

Every fetcher reads every announcement. The fetcher whose turn it is tries at once, the others after a while: so a
domain whose fetcher is slow, full or dead finds another one.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Collection, Iterator

from crawler.fetch.domain_worker import DomainWorker
from crawler.fetch.job_queue import JobQueue
from crawler.fetch.journal import JobProgress, Journal
from crawler.fetch.leased_domain import LeasedDomain
from crawler.fetch.takeover import Takeover
from crawler.model.moments import Moment
from crawler.model.records import Release
from crawler.model.settings import Config
from crawler.pace.gate_record import GateRecord
from crawler.rules.lists import Classifier
from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.door import Claim, Workspace
from crawler.workspace.reading import read_records

IDLE_LEASE = 8.0  # seconds until an idle domain is released: claiming it again costs more than keeping it …
IDLE_LEASE_WHEN_FULL = 3.0  # … unless others wait for its place
RETRY_AFTER = 3.0  # for a domain that another fetcher should claim
RETRY_AFTER_AT_MOST = 30.0
CLAIMING_AT_ONCE = 0.1  # seconds of claiming before the main thread does its other work
CLAIMED_TOGETHER = 32  # domains; one after the other, each would wait for the disk …
CLAIMED_FIRST = 4  # … but a fetcher that has none begins with few: what follows is claimed beside their requests
SCAN_EVERY = 30.0  # between scans of all domains with jobs


class DomainClaims:
    """The domains that this process holds, and those that it may try to claim. For the main thread alone.

    Invariants:
    - at most `max-active-domains` are held, each with its claim;
    - none is held that is on the blacklist or the stub list: jobs released before it was put there are not done;
    - a domain is worked on only after its predecessor's work is taken over and its bookmark names this process;
    - a bookmark names no holder only if every result is durable and every request is counted in the gate.
    """

    def __init__(
        self,
        config: Config,
        workspace: Workspace,
        index: int,
        workers: int,
        worker: DomainWorker,
        journal: Journal,
        clock: Callable[[], Moment],
        sync_store: Callable[[], None] | None = None,
    ) -> None:
        self._workspace = workspace
        self._longest_ms = config.network.total_timeout
        self._most = config.crawler.max_active_domains
        self._classifier = Classifier(config)
        self._index = index
        self._workers = workers
        self._worker = worker
        self._journal = journal
        self._clock = clock
        self._takeover = Takeover(workspace, config, journal, sync_store)
        # It begins a little earlier than now: a fetcher that starts later than others must know the same
        # announcements, or else each of them might wait for the other to claim a domain.
        self._releases = workspace.releases.recent_reader()
        self._held: dict[str, LeasedDomain] = {}
        self._announced: dict[str, tuple[float, float]] = {}  # domain → (when to try, seconds to wait after that)
        self._scanned_at = 0.0
        self.has_more_to_claim = False  # there was no time to try every domain that is due

    @property
    def held(self) -> Collection[LeasedDomain]:
        return self._held.values()

    @property
    def progress(self) -> Iterator[JobProgress]:
        """The progress of every held domain."""
        return (domain.progress for domain in self._held.values())

    @property
    def announced(self) -> int:
        """The number of domains that are still to be tried."""
        return len(self._announced)

    # -- finding work --------------------------------------------------------------------------------

    def listen(self, now: float) -> None:
        """Read new announcements, and scan all domains with jobs now and then."""
        for release, _ in read_records(self._releases, Release, limit=5000):
            self._note(release.domain, release.turn, now)
        if now - self._scanned_at >= SCAN_EVERY or not self._scanned_at:
            self._scanned_at = now
            self._scan_jobs(now)

    def _note(self, domain: str, turn: int, now: float) -> None:
        """There may be new jobs for this domain."""
        mine = self._held.get(domain)
        if mine is not None:
            self._worker.notify_new_jobs(mine)
        elif self._classifier.classify(domain).klass.is_listed:
            return  # the scheduler removes its jobs as soon as the map knows
        elif turn % self._workers == self._index % self._workers:
            self._announced[domain] = (now, 1.0)
        elif domain not in self._announced:
            self._announced[domain] = (now + RETRY_AFTER, RETRY_AFTER)

    def _scan_jobs(self, now: float) -> None:
        """Note every domain with jobs: released before this process started, or left by a dead fetcher."""
        for domain in self._workspace.domains_with_jobs():
            if domain not in self._held and domain not in self._announced:
                self._note(domain, zlib.crc32(domain.encode()), now)  # no announcement says whose turn it is

    # -- claiming ------------------------------------------------------------------------------------

    def claim_due(self, now: float) -> None:
        """Claim announced domains that are due, as far as there is room."""
        if not self._announced:
            return
        for domain in self._announced.keys() & self._held.keys():
            del self._announced[domain]
        due = [domain for domain, (at, _) in self._announced.items() if at <= now]
        self.has_more_to_claim = False
        has_any = bool(self._held)
        while due and (room := self._most - len(self._held)) > 0:
            if time.monotonic() - now > CLAIMING_AT_ONCE:
                self.has_more_to_claim = True
                break
            count = min(room, CLAIMED_TOGETHER if has_any else CLAIMED_FIRST)
            names, due = due[:count], due[count:]
            self._adopt(self._claim_some(names, now))
            has_any = True
        self._takeover.forget(now)

    def _claim_some(self, names: list[str], now: float) -> list[LeasedDomain]:
        """Try to become the fetcher of these domains; returns those that it is now."""
        claimed: list[LeasedDomain] = []
        claims = self._workspace.claim_all(names)
        taken: set[str] = set()
        try:
            bookmarks = self._workspace.bookmarks(list(claims))
            for name in names:
                _, wait = self._announced[name]
                again: float | None = wait
                if name in claims:
                    again = self._begin(name, claims[name], bookmarks[name], claimed, wait)
                    if claimed and claimed[-1].name == name:
                        taken.add(name)
                if again is None:
                    del self._announced[name]
                else:
                    self._announced[name] = (now + again, min(wait * 2, RETRY_AFTER_AT_MOST))
        finally:
            self._workspace.release_all([claim for name, claim in claims.items() if name not in taken])
        return claimed

    def _begin(
        self, name: str, claim: Claim, bookmark: Bookmark, claimed: list[LeasedDomain], wait: float
    ) -> float | None:
        """Take this domain over. Seconds, mostly `wait`: it is given back, and has to be tried again after that.

        None, and it is not among the claimed ones: it is given back, and has no jobs.
        """
        jobs = JobQueue(self._workspace.jobs(name, bookmark.jobs))
        if not jobs.fill():
            jobs.close()
            return None
        gate = self._workspace.gate(name, self._clock, self._longest_ms)
        domain = LeasedDomain(name, claim, gate, jobs, bookmark)
        cooling = self._seconds_to_cool(gate.read(), jobs.first_run())
        if cooling > 0:
            domain.close()
            return cooling
        if not self._takeover.take_over(domain):
            domain.close()
            return wait
        claimed.append(domain)
        return None

    def _seconds_to_cool(self, record: GateRecord, run: int) -> float:
        """Seconds until the breaker of a domain lets the next visit through. 0, too, where that is not certain."""
        now = self._clock()
        if record.run != run or record.ended is None or record.ended.boot != now.boot:
            return 0.0
        if record.breaker.since_ns > now.mono_ns:  # the clock was set back since; who takes the domain over says so
            return 0.0
        return max(0.0, (record.breaker.due_ns - now.mono_ns) / 1e9)

    def _adopt(self, claimed: list[LeasedDomain]) -> None:
        """Begin to work on claimed domains, once their bookmarks durably name this process."""
        try:
            self._journal.adopt([domain.progress for domain in claimed])
        except OSError:
            self._give_up(claimed)
            raise
        for domain in claimed:
            self._held[domain.name] = domain
            self._worker.notify_new_jobs(domain)

    # -- releasing -----------------------------------------------------------------------------------

    def release_idle(self, now: float) -> None:
        """Release domains that have been idle for a while, sooner if others wait."""
        is_full = len(self._held) >= self._most
        since = now - (IDLE_LEASE_WHEN_FULL if is_full else IDLE_LEASE)
        self._release([each for each in self._held.values() if each.idleness.has_lasted_since(since)])

    def save(self, *, with_half_made: bool) -> None:
        """At the end: release idle domains; save the others, unless a request of one is still on the wire.

        The job of a visit that was not finished stays after the bookmark and is done again.
        """
        self._release([domain for domain in self._held.values() if domain.idleness.is_idle])
        if with_half_made:
            left = [domain for domain in self._held.values() if not domain.idleness.is_idle]
            for domain in left:
                domain.pace.flush()
            self._journal.save([domain.progress for domain in left])

    def close(self) -> None:
        """Give up every claim that is left, without saving."""
        self._give_up(list(self._held.values()))

    def _give_up(self, domains: list[LeasedDomain]) -> None:
        self._workspace.release_all([domain.close() for domain in domains])

    def _release(self, domains: list[LeasedDomain]) -> None:
        """Release these idle domains: results durable, requests counted, bookmark written, then the claim."""
        leaving: list[tuple[LeasedDomain, bool]] = []
        for domain in domains:
            if not domain.idleness.is_at_rest():
                continue
            del self._held[domain.name]
            self._journal.make_durable(domain.progress)
            # Where the gate is busy just now, the next fetcher counts.
            is_counted = domain.pace.is_flushed or domain.pace.flush()
            leaving.append((domain, is_counted))
        self._journal.release([(domain.progress, is_counted) for domain, is_counted in leaving])
        now = time.monotonic()
        for domain, _ in leaving:
            if (left := domain.pace.breaker.due_ns / 1e9 - now) > 0:
                self._announced[domain.name] = (now + left, 1.0)
        self._give_up([domain for domain, _ in leaving])
