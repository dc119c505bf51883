"""The domains of one fetcher: heard of, leased, let go.

    releases, job folders ──▶ heard of ──▶ leased, its predecessor's work taken over ──▶ let go, once idle for a while

Every fetcher hears of every release. The one whose turn it is tries at once, the others after a while: a domain whose
fetcher is slow, full or dead finds another one.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Collection

from crawler.fetch.domain_worker import Steps
from crawler.fetch.journal import Results
from crawler.fetch.lease import JOBS_AT_ONCE, Domain, read_jobs
from crawler.fetch.takeover import Takeover
from crawler.model.moments import Moment
from crawler.model.records import Release
from crawler.model.settings import Config
from crawler.workspace.door import Workspace
from crawler.workspace.reading import read_records

IDLE_LEASE = 8.0  # an idle domain is let go after this many seconds: taking it again costs more than keeping it …
IDLE_LEASE_WHEN_FULL = 3.0  # … unless others wait for its room
LOOK_AGAIN = 3.0  # for a domain that another fetcher should have
LOOK_AGAIN_AT_MOST = 30.0
TAKING_AT_ONCE = 0.1  # seconds of taking leases before the main thread looks around again
SCAN_EVERY = 30.0  # how often the whole jobs folder is looked at


class Domains:
    """Which domains this process has, and which it might have. For the main thread alone.

    Invariants:
    - at most `max-active-domains` are held, each with its lease;
    - a domain is worked on only after what its predecessor left is in order and its bookmark names this process;
    - a bookmark names nobody only when all that was written down is durable and counted in the gate.
    """

    def __init__(
        self,
        config: Config,
        workspace: Workspace,
        index: int,
        workers: int,
        steps: Steps,
        results: Results,
        clock: Callable[[], Moment],
    ) -> None:
        self._workspace = workspace
        self._most = config.crawler.max_active_domains
        self._index = index
        self._workers = workers
        self._steps = steps
        self._results = results
        self._clock = clock
        self._takeover = Takeover(workspace, config, results)
        # From a little while ago on: who starts later than others must know what they know, or else each of them might
        # leave a domain to the other one.
        self._releases = workspace.releases.recent_reader()
        self._held: dict[str, Domain] = {}
        self._heard: dict[str, tuple[float, float]] = {}  # domain → (when to try, how long to wait after that)
        self._scanned_at = 0.0
        self.has_more_to_take = False  # there was no time to try for all that could be tried for

    @property
    def held(self) -> Collection[Domain]:
        return self._held.values()

    @property
    def heard(self) -> int:
        """How many domains are still to be tried for."""
        return len(self._heard)

    # -- finding work --------------------------------------------------------------------------------

    def listen(self, now: float) -> None:
        """BodyWanted in what was released, and now and then everything that lies there."""
        for release, _ in read_records(self._releases, Release, limit=5000):
            self._hear(release.domain, release.turn, now)
        if now - self._scanned_at >= SCAN_EVERY or not self._scanned_at:
            self._scanned_at = now
            self._scan_jobs(now)

    def _hear(self, domain: str, turn: int, now: float) -> None:
        """There may be new jobs for this domain."""
        mine = self._held.get(domain)
        if mine is not None:
            self._steps.nudge(mine)
        elif turn % self._workers == self._index % self._workers:
            self._heard[domain] = (now, 1.0)
        elif domain not in self._heard:
            self._heard[domain] = (now + LOOK_AGAIN, LOOK_AGAIN)

    def _scan_jobs(self, now: float) -> None:
        """Every domain with a job folder: what was released before we listened, or left by a dead fetcher."""
        for domain in self._workspace.domains_with_jobs():
            if domain not in self._held and domain not in self._heard:
                self._hear(domain, zlib.crc32(domain.encode()), now)  # nobody says whose turn it is

    # -- taking --------------------------------------------------------------------------------------

    def take_due(self, now: float) -> None:
        """BodyWanted the leases of domains that were heard of, as far as there is room."""
        if not self._heard:
            return
        due = [domain for domain, (at, _) in self._heard.items() if at <= now]
        self.has_more_to_take = False
        taken: list[Domain] = []
        for domain in due:
            if len(self._held) + len(taken) >= self._most:
                break
            if time.monotonic() - now > TAKING_AT_ONCE:
                self.has_more_to_take = True
                break
            if domain in self._held:
                del self._heard[domain]
                continue
            _, wait = self._heard[domain]
            if self._take(domain, taken):
                del self._heard[domain]
            else:
                self._heard[domain] = (now + wait, min(wait * 2, LOOK_AGAIN_AT_MOST))
        self._adopt(taken)
        self._takeover.forget(now)

    def _take(self, name: str, taken: list[Domain]) -> bool:
        """Try to become this domain's fetcher. True if there is nothing more to try for."""
        lease = self._workspace.claim(name)
        if lease is None:
            return False
        bookmark = self._workspace.bookmark(name)
        reader = self._workspace.jobs(name, bookmark.jobs)
        jobs = read_jobs(reader, JOBS_AT_ONCE)
        if not jobs:
            reader.close()
            lease.release()
            return True
        gate = self._workspace.gate(name, self._clock)
        domain = Domain(name, lease, gate, reader, bookmark)
        domain.jobs.extend(jobs)
        if not self._takeover.bring_in_order(domain, bookmark):
            domain.drop()
            return False
        taken.append(domain)
        return True

    def _adopt(self, taken: list[Domain]) -> None:
        """Begin to work on domains whose leases were taken: when it is durable that they are ours, all at once."""
        try:
            self._results.adopt(taken)
        except OSError:
            for domain in taken:
                domain.drop()
            raise
        for domain in taken:
            self._held[domain.name] = domain
            self._steps.nudge(domain)

    # -- letting go ----------------------------------------------------------------------------------

    def let_go_idle(self, now: float) -> None:
        """Release what has been idle for a while, sooner if others wait."""
        is_full = len(self._held) >= self._most
        idle_since = now - (IDLE_LEASE_WHEN_FULL if is_full else IDLE_LEASE)
        self._let_go([each for each in self._held.values() if each.is_idle and each.idle_since <= idle_since])

    def save(self, *, with_half_made: bool) -> None:
        """At the end: let go of what is idle; of the others keep what is durable, unless somebody is still at work.

        A visit that was not finished: its job stays before the bookmark and is done again.
        """
        self._let_go([domain for domain in self._held.values() if domain.is_idle])
        if with_half_made:
            left = [domain for domain in self._held.values() if not domain.is_idle]
            for domain in left:
                domain.gate.update(domain.run, domain.bring_up_to_date)
            self._results.save(left)

    def drop(self) -> None:
        """Let go of all that is left, whatever its state."""
        for domain in self._held.values():
            domain.drop()

    def _let_go(self, domains: list[Domain]) -> None:
        """Release these idle domains' leases, with everything in order behind us."""
        leaving: list[tuple[Domain, bool]] = []
        for domain in domains:
            if not self._steps.is_at_rest(domain):
                continue
            del self._held[domain.name]
            self._results.make_durable(domain)
            is_counted = not domain.uncounted and domain.closes is None
            if not is_counted:
                is_counted = domain.gate.update(domain.run, domain.bring_up_to_date)
            # Where the gate is busy just now, the next fetcher counts for us.
            leaving.append((domain, is_counted))
        self._results.release(leaving)
        for domain, _ in leaving:
            domain.drop()
