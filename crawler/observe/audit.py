"""Was the crawl polite? The ledgers in the result spools, read again and checked: `sumi-ripple audit`.

Every request that was made stands in the ledger of a result, with the monotonic clock of the machine. From these
alone follows whether the promises were kept:

- **spacing**: between the end of a request to a domain and the start of the next one lies at least
  `minimum-time-on-page`, or the `Crawl-delay` of the host asked, as far as that was known by then;
- **budget**: no domain had more than `max-domain-requests` requests in a run, lost ones included;
- **robots**: no page was asked for unless its host's robots.txt had been read in the 24 hours before;
- **lists**: no request went to a domain on the blacklist or the stub list.

Which boot of the machine came before which is not asked of the wall clock, which may be set: a writer's spool tells
it. Where the spools do not tell it, what one boot learned says nothing about the requests of another.

The spools are read once, merged by time, with a few requests of each domain in memory. Only where a robots.txt
redirected to a domain that another fetcher was busy with can a request turn up late in the spools; the domains
concerned are read a second time, whole.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, get_args

from crawler.model.records import DomainEvent, Exchange, PageResult, Result, RobotsResult, RunEvent
from crawler.model.settings import Config
from crawler.rules.lists import Classifier
from crawler.visit.robots import FRESH_SECONDS, policy_of
from crawler.workspace.door import ResultLogs
from crawler.workspace.log import Damage, Line, OnDamage
from crawler.workspace.opening import open_workspace
from crawler.workspace.reading import parse_lines, read_records

_WINDOW = 12  # requests of a domain that may stand out of order in the spools
_KEPT = 1000  # violations that are named; the rest is counted


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise. promise: `spacing`, `budget`, `robots` or `lists`."""

    promise: str
    domain: str
    run: int
    at_ms: int
    words: str

    def line(self) -> str:
        at = datetime.fromtimestamp(self.at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        return f"violation of {self.promise}: {self.domain}, run {self.run}, {at.replace('+00:00', 'Z')}: {self.words}"


@dataclass(slots=True)
class AuditReport:
    """What the ledgers prove. `violations` names the first of them, `violation_count` counts all."""

    minimum_ms: int
    budget: int
    requests: int = 0
    pairs: int = 0
    domains: int = 0
    pages: int = 0
    robots_files: int = 0
    lost: int = 0
    damaged: int = 0
    writers: int = 0
    runs: set[int] = field(default_factory=set)
    other_configs: set[int] = field(default_factory=set)
    busiest: tuple[int, str, int] = (0, "", 0)  # requests, domain, run
    closest: tuple[int, str] | None = None  # milliseconds beyond what was due, domain
    violations: list[Violation] = field(default_factory=list)
    violation_count: int = 0

    @property
    def is_clean(self) -> bool:
        return self.violation_count == 0

    def lines(self) -> Iterator[str]:
        """The report for people."""
        runs = f"{len(self.runs)} run{'s' if len(self.runs) != 1 else ''}"
        yield f"{self.requests:,} requests to {self.domains:,} domains in {runs}, for {self.pages:,} pages."
        if self.closest is not None:
            yield (
                f"spacing: {self.pairs:,} pairs of requests, each at least {self.minimum_ms:,} ms (or the host's"
                f" Crawl-delay) apart; the closest had {self.closest[0]:,} ms to spare ({self.closest[1]})."
                if self.closest[0] >= 0
                else f"spacing: {self.pairs:,} pairs of requests, not all of them far enough apart."
            )
        most, domain, run = self.busiest
        if most:
            yield f"budget: {self.budget:,} requests a domain and run; the most was {most:,} ({domain}, run {run})."
        yield f"robots: {self.robots_files:,} robots.txt answers, checked against every page asked for."
        if self.lost:
            yield f"{self.lost:,} requests had left a fetcher that was killed before it wrote them down; they count."
        if self.damaged:
            yield f"{self.damaged:,} spool lines could not be read and are not part of this."
        for number in sorted(self.other_configs):
            yield f"run {number} was made under another configuration; it is judged by the present one."
        for violation in self.violations:
            yield violation.line()
        if self.violation_count > len(self.violations):
            yield f"… and {self.violation_count - len(self.violations):,} more violations."
        yield "clean: no violation." if self.is_clean else f"NOT clean: {self.violation_count:,} violations."


def audit(config: Config) -> AuditReport:
    """Read every result spool of the config's workspace and check the promises."""
    results = open_workspace(config.workspace).results
    report = AuditReport(
        config.crawler.minimum_time_on_page, config.crawler.max_domain_requests, writers=len(results.writers())
    )

    def count_damage(damage: Damage) -> None:
        report.damaged += 1

    boots = _boots(results)
    check = _Check(config, report, boots)
    for record in _merged(results, boots, count_damage):
        check.take(record)
    late = check.finish()
    if late:
        again = _Check(config, report, boots, only=late)
        for record in _merged(results, boots, None):
            again.take(record)
        again.finish()
    report.violations.sort(key=lambda violation: (violation.at_ms, violation.domain))
    return report


# -- reading in the order of time -------------------------------------------------------------------------


class _Boots:
    """The boots of the machine, ranked. `certain` ranks have a sure place: every other boot is known to have been
    before, or known to have been after. Ranks of the others are a guess, by the wall clock.
    """

    def __init__(self, orders: list[list[str]], first_seen: dict[str, str]) -> None:
        """`orders`: for each writer, the boots in which it wrote, one after the other."""
        guess = sorted(first_seen, key=lambda boot: first_seen[boot])
        bit = {boot: 1 << place for place, boot in enumerate(guess)}
        before = dict(bit)  # for each boot a set of bits: itself and all that some writer saw before it
        is_settled = False
        while not is_settled:
            is_settled = True
            for order in orders:
                seen = 0
                for boot in order:
                    seen |= before[boot]
                    if before[boot] != seen:
                        before[boot], is_settled = seen, False
        ranked = sorted(guess, key=lambda boot: before[boot].bit_count())
        self._ranks = {boot: rank for rank, boot in enumerate(ranked)}
        # Is the line between the first so many boots and the rest a sure one?
        all_of_rest = [-1]
        for boot in reversed(ranked):
            all_of_rest.append(all_of_rest[-1] & before[boot])
        first = any_of_first = 0
        is_line = [True]
        for boot, rest in zip(ranked, reversed(all_of_rest[:-1]), strict=True):
            first |= bit[boot]
            any_of_first |= before[boot]
            is_line.append(first & ~rest == 0 and any_of_first & ~first == 0)
        self.certain = frozenset(rank for rank in range(len(ranked)) if is_line[rank] and is_line[rank + 1])

    def rank(self, boot: str) -> int:
        return self._ranks.get(boot, len(self._ranks))


def _boots(results: ResultLogs) -> _Boots:
    """The boots that the logs tell of. A process lives in one boot and never writes to an old segment."""
    orders: list[list[str]] = []
    first_seen: dict[str, str] = {}
    for writer in results.writers():
        order: list[str] = []
        for number in results.segments(writer):
            records: Iterator[tuple[PageResult | RobotsResult, Line]] = parse_lines(
                results.segment_lines(writer, number), PageResult, RobotsResult
            )
            record = next((record for record, _ in records if record.boot), None)
            if record is not None:
                at = first_seen.get(record.boot)
                first_seen[record.boot] = record.at if at is None else min(at, record.at)
                if order[-1:] != [record.boot]:
                    order.append(record.boot)
        orders.append(order)
    return _Boots(orders, first_seen)


def _merged(results: ResultLogs, boots: _Boots, on_damage: OnDamage | None) -> Iterator[Result]:
    """All records; those of one domain nearly always in the order in which they came about.

    A record is appended after its last request has ended, so the latest end so far in its log is a time by which
    it may be merged: a domain changes hands only after its holder's last append.
    """

    def timed(writer: str, place: int) -> Iterator[tuple[tuple[int, int], int, Result]]:
        rank, latest = 0, 0
        reader = results.reader(writer, on_damage=on_damage)
        try:
            records: Iterator[tuple[Result, Line]] = read_records(reader, *get_args(Result))
            for record, _ in records:
                if isinstance(record, PageResult | RobotsResult) and record.ledger:
                    this = boots.rank(record.boot)
                    end = max(entry.mono_ms + entry.elapsed_ms for entry in record.ledger)
                    rank, latest = (rank, max(latest, end)) if this == rank else (this, end)
                yield (rank, latest), place, record
        finally:
            reader.close()

    streams = [timed(writer, place) for place, writer in enumerate(results.writers())]
    for _, _, record in heapq.merge(*streams, key=lambda item: item[:2]):
        yield record


# -- checking ---------------------------------------------------------------------------------------------


class _Event(NamedTuple):
    """Something at a time: a request, or (`learned`) the moment from which a host's robots.txt is known."""

    boot: int
    mono_ms: int
    order: int
    run: int
    entry: Exchange
    is_robots: bool
    learned: tuple[str, int, bool] | None = None  # host, crawl delay in ms, may be asked


class _Host(NamedTuple):
    crawl_delay_ms: int
    may_be_asked: bool
    boot: int
    mono_ms: int
    at_ms: int


class _Domain:
    __slots__ = ("boot", "clock_ms", "ended_ms", "hosts", "is_late", "last", "readers", "sent", "unread", "window")

    def __init__(self) -> None:
        self.window: list[_Event] = []
        self.last: tuple[int, int] = (-1, 0)  # boot and time of the last event that left the window
        self.boot = -1
        self.clock_ms = 0  # the wall clock at the start of this boot, by what it said at the first request in it
        self.ended_ms = 0
        self.hosts: dict[str, _Host] = {}
        self.unread: dict[tuple[str, int], _Event] = {}  # asked in an uncertain boot, without a robots.txt so far
        self.readers: dict[str, set[int]] = {}  # the uncertain boots in which a host's robots.txt was read
        self.sent: dict[int, int] = {}
        self.is_late = False


class _Check:
    """Takes records, checks requests. With `only`, the spacing and robots of those domains, in perfect order."""

    def __init__(self, config: Config, report: AuditReport, boots: _Boots, only: frozenset[str] | None = None) -> None:
        self._config = config
        self._report = report
        self._boots = boots
        self._only = only
        self._classify = Classifier(config).classify
        self._domains: dict[str, _Domain] = {}
        self._found: list[Violation] = []
        self._order = 0
        self._run_configs: dict[int, str] = {}

    def take(self, record: Result) -> None:
        if isinstance(record, PageResult | RobotsResult):
            is_robots = isinstance(record, RobotsResult)
            boot = self._boots.rank(record.boot)
            for entry in record.ledger:
                self._add(entry.domain, _Event(boot, entry.mono_ms, self._next(), record.run, entry, is_robots))
            if isinstance(record, RobotsResult) and record.ledger:
                self._learn(record, boot)
            if self._only is None:
                self._report.runs.add(record.run)
                self._report.pages += not is_robots
                self._report.robots_files += is_robots
        elif isinstance(record, DomainEvent) and record.event == "lost-requests" and self._only is None:
            self._report.lost += record.count
            self._count(record.domain, record.run, record.count, 0)
        elif isinstance(record, RunEvent) and record.config_hash:
            self._run_configs[record.run] = record.config_hash

    def finish(self) -> frozenset[str]:
        """Check what is left; the domains that have to be read again."""
        report = self._report
        for name, domain in self._domains.items():
            while domain.window:
                self._leave_window(name, domain)
            for (host, boot), event in domain.unread.items():
                if not domain.readers.get(host, set()) - {boot}:
                    self._unread(name, event)
        late = frozenset(name for name, domain in self._domains.items() if domain.is_late)
        for violation in self._found:
            if violation.domain not in late or violation.promise in ("budget", "lists"):
                report.violation_count += 1
                if len(report.violations) < _KEPT:
                    report.violations.append(violation)
        if self._only is None:
            report.domains = sum(bool(domain.sent) for domain in self._domains.values())
            present = self._config.config_hash
            report.other_configs = {run for run, seen in self._run_configs.items() if seen != present}
        return late

    def _next(self) -> int:
        self._order += 1
        return self._order

    def _learn(self, record: RobotsResult, boot: int) -> None:
        last = max(record.ledger, key=lambda entry: entry.mono_ms + entry.elapsed_ms)
        policy = policy_of(record)
        may_be_asked = policy.error is None or self._config.crawler.robots_unreachable == "allow"
        self._add(
            record.domain,
            _Event(
                boot,
                last.mono_ms + last.elapsed_ms,
                0,
                record.run,
                last,
                True,
                (record.host, policy.crawl_delay_ms, may_be_asked),
            ),
        )

    def _add(self, name: str, event: _Event) -> None:
        if self._only is not None and name not in self._only:
            return
        domain = self._domains.get(name)
        if domain is None:
            domain = self._domains[name] = _Domain()
        if (event.boot, event.mono_ms) < domain.last:
            domain.is_late = True
        heapq.heappush(domain.window, event)
        if self._only is None and len(domain.window) > _WINDOW:
            self._leave_window(name, domain)

    def _leave_window(self, name: str, domain: _Domain) -> None:
        event = heapq.heappop(domain.window)
        domain.last = max(domain.last, (event.boot, event.mono_ms))
        entry = event.entry
        if event.learned is not None:
            host, delay, may_be_asked = event.learned
            domain.hosts[host] = _Host(delay, may_be_asked, event.boot, event.mono_ms, entry.at_ms)
            if event.boot not in self._boots.certain:
                domain.readers.setdefault(host, set()).add(event.boot)
            return
        if self._only is None:
            self._report.requests += 1
            self._count(name, event.run, 1, entry.at_ms)
            if self._classify(name).klass.is_listed:
                self._violated("lists", name, event, f"{entry.method} to {entry.host}, which is on a list")
        self._check_spacing(name, domain, event)
        if not event.is_robots:
            self._check_robots(name, domain, event)

    def _check_spacing(self, name: str, domain: _Domain, event: _Event) -> None:
        entry = event.entry
        if domain.boot == event.boot:
            host = domain.hosts.get(entry.host)
            delay = host.crawl_delay_ms if host and self._is_certain(host, event) else 0
            due = max(self._report.minimum_ms, delay)
            spare = entry.mono_ms - domain.ended_ms - due
            if self._only is None:
                self._report.pairs += 1
            closest = self._report.closest
            if closest is None or spare < closest[0]:
                self._report.closest = (spare, name)
            if spare < 0:
                words = (
                    f"{entry.method} to {entry.host} {spare + due:,} ms after the request before it; {due:,} ms are due"
                )
                self._violated("spacing", name, event, words)
        else:
            domain.clock_ms = entry.at_ms - entry.mono_ms
        domain.boot = event.boot
        domain.ended_ms = entry.mono_ms + entry.elapsed_ms

    def _check_robots(self, name: str, domain: _Domain, event: _Event) -> None:
        entry = event.entry
        host = domain.hosts.get(entry.host)
        if host is None:
            if event.boot in self._boots.certain:
                self._unread(name, event)
            else:  # it may turn up yet, in a boot that may have been before this one
                domain.unread.setdefault((entry.host, event.boot), event)
            return
        if not self._is_certain(host, event):
            return
        is_same = event.boot == host.boot
        age = entry.mono_ms - (host.mono_ms if is_same else host.at_ms - domain.clock_ms)
        # A visit may begin just before the day is over and take its time.
        if age > (FRESH_SECONDS + 3600) * 1000:
            self._violated("robots", name, event, f"{entry.host}: its robots.txt was {age / 3_600_000:.1f} hours old")
        elif not host.may_be_asked:
            self._violated("robots", name, event, f"{entry.host}: its robots.txt could not be read")

    def _is_certain(self, host: _Host, event: _Event) -> bool:
        """Had this been learned when the request was made, and nothing newer?"""
        return host.boot == event.boot or {host.boot, event.boot} <= self._boots.certain

    def _unread(self, name: str, event: _Event) -> None:
        entry = event.entry
        self._violated("robots", name, event, f"{entry.method} to {entry.host} before its robots.txt was read")

    def _count(self, name: str, run: int, count: int, at_ms: int) -> None:
        domain = self._domains.get(name)
        if domain is None:
            domain = self._domains[name] = _Domain()
        before = domain.sent.get(run, 0)
        sent = domain.sent[run] = before + count
        report = self._report
        if sent > report.busiest[0]:
            report.busiest = (sent, name, run)
        if sent > report.budget >= before:
            words = f"more than {report.budget:,} requests"
            self._found.append(Violation("budget", name, run, at_ms, words))

    def _violated(self, promise: str, name: str, event: _Event, words: str) -> None:
        self._found.append(Violation(promise, name, event.run, event.entry.at_ms, words))


__all__ = ["AuditReport", "Violation", "audit"]
