"""The checks of an audit: every request in the ledgers against the promises, domain by domain.

A few requests of each domain wait in a window, sorted by time, before they are checked.

An engine's clock may have been set back. Then a request has a higher number than another one that seems later: the
gate numbers requests one after the other, and takes the time of each as it does. Such a domain is read a second time,
and its requests before and after that moment are told apart like those of two boots: nothing is known of the time
between.
"""

from __future__ import annotations

import heapq
from itertools import pairwise
from typing import NamedTuple

from crawler.model.records import DomainEvent, Exchange, PageResult, Result, RobotsResult, SitemapResult
from crawler.observe.audit_report import AuditReport, Violation
from crawler.observe.boots import BootOrder
from crawler.observe.run_limits import RunLimits, milliseconds
from crawler.visit.robots import FRESH_SECONDS, policy_of

_OLDEST_MS = (FRESH_SECONDS + 3600) * 1000  # of a robots.txt, where a visit began just before its 24 hours were over
_WINDOW = 12  # requests of a domain that may be out of order in the spools


class _Event(NamedTuple):
    """A request; or, if `learned` is set, the moment from which a host's robots.txt is known.

    `steps`: how often the clock had been set back by then, in this boot, as far as that was looked at.
    """

    boot: int
    steps: int
    mono_ms: int
    order: int
    run: int
    entry: Exchange
    is_robots: bool
    # host, crawl delay in ms, may be requested; the domain's last request for it
    learned: tuple[str, int, bool, int] | None = None

    @property
    def number(self) -> int:
        """Of the request in its run; 0: it is not known."""
        return self.entry.number if self.learned is None else self.learned[3]


class _HostRules(NamedTuple):
    """A host's robots.txt, as last read."""

    crawl_delay_ms: int
    may_be_requested: bool
    boot: int
    mono_ms: int
    at_ms: int


class _DomainHistory:
    """The requests to one domain so far, as far as later ones are checked against them."""

    __slots__ = (
        *("boot", "clock_ms", "closest", "ended_ms", "hosts", "is_late", "last", "lost", "newest", "numbers"),
        *("readers", "refunded", "sent", "steps", "unread", "window"),
    )

    def __init__(self) -> None:
        self.window: list[_Event] = []
        self.last: tuple[int, int] = (-1, 0)  # boot and time of the latest event taken from the window
        self.newest = (-1, 0, 0)  # boot, run and number of the request with the highest number among those
        self.boot = -1
        self.steps = 0
        self.closest: int | None = None  # milliseconds more than the delay between two requests, at least
        self.clock_ms = 0  # the wall clock at the start of this boot, computed from the first request in it
        self.ended_ms = 0
        self.hosts: dict[str, _HostRules] = {}
        self.unread: dict[tuple[str, int], _Event] = {}  # requested in an uncertain boot, no robots.txt found so far
        self.readers: dict[str, set[int]] = {}  # the uncertain boots in which a host's robots.txt was read
        self.sent: dict[int, int] = {}
        self.numbers: dict[int, int] = {}  # by run: a bit for each number that was given to a request
        self.lost: dict[int, int] = {}  # by run: requests that were reported as lost
        self.refunded: set[int] = set()  # runs in which an outage gave numbers back
        self.is_late = False


def with_steps(events: list[_Event]) -> list[_Event]:
    """A heap of all of a domain's events, with `steps`; as they are where numbers do not tell the requests' order."""
    requests = sorted((event for event in events if event.learned is None), key=_by_number)
    known = {_by_number(event) for event in requests}
    is_told = all(event.number and event.entry.is_counted for event in requests)
    if not is_told or len(known) < len(requests):
        return events
    steps: dict[tuple[int, int, int], int] = {}
    for before, event in pairwise(requests):
        if before.boot == event.boot:
            steps[_by_number(event)] = steps.get(_by_number(before), 0) + (event.mono_ms < before.mono_ms)
    found = [event._replace(steps=steps.get(_by_number(event), 0)) for event in events]
    heapq.heapify(found)
    return found


def _by_number(event: _Event) -> tuple[int, int, int]:
    return event.boot, event.run, event.number


class LedgerChecks:
    """Checks the requests of the records that are added. With `only`: spacing and robots of these domains alone, whose
    requests are sorted first.
    """

    def __init__(
        self,
        limits: RunLimits,
        report: AuditReport,
        boots: BootOrder,
        only: frozenset[str] | None = None,
        dropped_until_ms: int | None = None,
    ) -> None:
        """`dropped_until_ms`: records from before this time may have been dropped; None: all are kept."""
        self._limits = limits
        self._report = report
        self._boots = boots
        self._only = only
        self._dropped_until_ms = dropped_until_ms
        self._unknown: dict[str, int] = {}  # by domain: requests whose robots.txt may be in a dropped record
        self._domains: dict[str, _DomainHistory] = {}
        self._found: list[Violation] = []
        self._order = 0
        self._over_budget: set[tuple[str, int]] = set()  # (domain, run) whose violation was found

    def add(self, record: Result) -> None:
        if isinstance(record, PageResult | RobotsResult | SitemapResult):
            is_robots = isinstance(record, RobotsResult)
            boot = self._boots.rank(record.boot)
            for entry in record.ledger:
                self._add_event(
                    entry.domain, _Event(boot, 0, entry.mono_ms, self._next_order(), record.run, entry, is_robots)
                )
            if isinstance(record, RobotsResult) and record.ledger:
                self._learn(record, boot)
            if self._only is None:
                self._report.runs.add(record.run)
                self._report.pages += isinstance(record, PageResult)
                self._report.sitemaps += isinstance(record, SitemapResult) and bool(record.ledger)
                self._report.robots_files += is_robots
        elif isinstance(record, DomainEvent) and record.event == "lost-requests" and self._only is None:
            self._report.lost += record.count
            lost = self._history(record.domain).lost
            lost[record.run] = lost.get(record.run, 0) + record.count
            self._count(record.domain, record.run, record.count, milliseconds(record.at))

    def finish(self) -> frozenset[str]:
        """Check the remaining requests; returns the domains that have to be read again."""
        report = self._report
        for name, domain in self._domains.items():
            if self._only is not None:
                domain.window = with_steps(domain.window)
            while domain.window:
                self._check_oldest(name, domain)
            for (host, boot), event in domain.unread.items():
                if not domain.readers.get(host, set()) - {boot}:
                    self._add_unread(name, event)
        late = frozenset(name for name, domain in self._domains.items() if domain.is_late)
        for name, domain in self._domains.items():
            if name not in late and domain.closest is not None:
                report.add_closest(domain.closest, name)
        for violation in self._found:
            if violation.domain not in late or violation.promise in ("budget", "lists", "numbers"):
                report.add(violation)
        report.unknown_robots += sum(count for name, count in self._unknown.items() if name not in late)
        if self._only is None:
            report.domains = sum(bool(domain.sent) for domain in self._domains.values())
            for name, domain in self._domains.items():
                for run, numbers in domain.numbers.items():
                    report.numbered += numbers.bit_count()
                    missing = numbers.bit_length() - 1 - numbers.bit_count()
                    report.add_missing(name, run, missing, missing - domain.lost.get(run, 0))
        return late

    def _next_order(self) -> int:
        self._order += 1
        return self._order

    def _learn(self, record: RobotsResult, boot: int) -> None:
        last = record.ledger[-1]
        own = next((entry.number for entry in reversed(record.ledger) if entry.domain == record.domain), 0)
        policy = policy_of(record, "*")  # the delay and the error count here, not the rules
        may_be_requested = policy.error is None or self._limits.at(record.run, last.at_ms).may_ignore_robots
        self._add_event(
            record.domain,
            _Event(
                boot,
                0,
                last.mono_ms + last.elapsed_ms,
                0,
                record.run,
                last,
                True,
                (record.host, policy.crawl_delay_ms, may_be_requested, own),
            ),
        )

    def _add_event(self, name: str, event: _Event) -> None:
        if self._only is not None and name not in self._only:
            return
        domain = self._history(name)
        if (event.boot, event.mono_ms) < domain.last:
            domain.is_late = True
        heapq.heappush(domain.window, event)
        if self._only is None and len(domain.window) > _WINDOW:
            self._check_oldest(name, domain)

    def _history(self, name: str) -> _DomainHistory:
        domain = self._domains.get(name)
        if domain is None:
            domain = self._domains[name] = _DomainHistory()
        return domain

    def _check_oldest(self, name: str, domain: _DomainHistory) -> None:
        event = heapq.heappop(domain.window)
        domain.last = max(domain.last, (event.boot, event.mono_ms))
        entry = event.entry
        if event.learned is not None:
            host, delay, may_be_requested, _ = event.learned
            domain.hosts[host] = _HostRules(delay, may_be_requested, event.boot, event.mono_ms, entry.at_ms)
            if event.boot not in self._boots.certain:
                domain.readers.setdefault(host, set()).add(event.boot)
            return
        if self._only is None:
            self._report.requests += 1
            self._look_at_clock(domain, event)
            self._count(name, event.run, int(entry.is_counted), entry.at_ms)
            self._check_number(name, domain, event)
            if self._limits.at(event.run, entry.at_ms).is_listed(name):
                self._add_violation("lists", name, event, f"{entry.method} to {entry.host}, which is on a list")
        self._check_spacing(name, domain, event)
        if not event.is_robots and entry.is_counted:
            self._check_robots(name, domain, event)

    def _look_at_clock(self, domain: _DomainHistory, event: _Event) -> None:
        """A lower number than one before it: the clock was set back in between, unless numbers were given back."""
        if event.number and event.run not in domain.refunded:
            this = (event.boot, event.run, event.number)
            if this < domain.newest and event.boot == domain.newest[0]:
                domain.is_late = True
            domain.newest = max(domain.newest, this)

    def _check_number(self, name: str, domain: _DomainHistory, event: _Event) -> None:
        """A number is given once in a run: twice means that two fetchers passed the same gate at the same time."""
        entry, run = event.entry, event.run
        if not entry.is_counted:
            domain.refunded.add(run)
        elif entry.number:
            given = domain.numbers.get(run, 0)
            if given >> entry.number & 1 and run not in domain.refunded:
                words = f"{entry.method} to {entry.host} has the number {entry.number:,}, and so has another request"
                self._add_violation("numbers", name, event, words)
            domain.numbers[run] = given | 1 << entry.number

    def _check_spacing(self, name: str, domain: _DomainHistory, event: _Event) -> None:
        entry = event.entry
        if (domain.boot, domain.steps) == (event.boot, event.steps):
            host = domain.hosts.get(entry.host)
            is_known = host is not None and self._is_certain(host, event) and not self._may_be_replaced(host, event)
            delay = host.crawl_delay_ms if host and is_known else 0
            due = max(self._limits.at(event.run, entry.at_ms).minimum_ms, delay)
            spare = entry.mono_ms - domain.ended_ms - due
            if self._only is None:
                self._report.pairs += 1
            domain.closest = spare if domain.closest is None else min(domain.closest, spare)
            if spare < 0:
                words = (
                    f"{entry.method} to {entry.host} {spare + due:,} ms after the request before it; {due:,} ms are due"
                )
                self._add_violation("spacing", name, event, words)
        else:
            domain.clock_ms = entry.at_ms - entry.mono_ms
        domain.boot, domain.steps = event.boot, event.steps
        domain.ended_ms = entry.mono_ms + entry.elapsed_ms

    def _check_robots(self, name: str, domain: _DomainHistory, event: _Event) -> None:
        entry = event.entry
        host = domain.hosts.get(entry.host)
        if host is None:
            if event.boot in self._boots.certain:
                self._add_unread(name, event)
            else:  # it may still be found, in a boot that may be earlier than this one
                known = domain.unread.get((entry.host, event.boot))
                if known is None or self._may_be_dropped(known):
                    domain.unread[entry.host, event.boot] = event
            return
        if not self._is_certain(host, event):
            return
        is_same = event.boot == host.boot
        age = entry.mono_ms - (host.mono_ms if is_same else host.at_ms - domain.clock_ms)
        if age > _OLDEST_MS:
            words = f"{entry.host}: its robots.txt was {age / 3_600_000:.1f} hours old"
        elif not host.may_be_requested:
            words = f"{entry.host}: its robots.txt could not be read"
        else:
            return
        if self._may_be_replaced(host, event):
            self._count_unknown(name)
        else:
            self._add_violation("robots", name, event, words)

    def _is_certain(self, host: _HostRules, event: _Event) -> bool:
        """Was this surely known when the request was made?"""
        return host.boot == event.boot or {host.boot, event.boot} <= self._boots.certain

    def _may_be_dropped(self, event: _Event) -> bool:
        """May a robots.txt have been read, in time for this request, whose record was dropped?"""
        until = self._dropped_until_ms
        return until is not None and event.entry.at_ms <= until + _OLDEST_MS

    def _may_be_replaced(self, host: _HostRules, event: _Event) -> bool:
        """May a dropped record say something else than this one, which is older?"""
        return self._may_be_dropped(event) and host.at_ms < (self._dropped_until_ms or 0)

    def _count_unknown(self, name: str) -> None:
        self._unknown[name] = self._unknown.get(name, 0) + 1

    def _add_unread(self, name: str, event: _Event) -> None:
        if self._may_be_dropped(event):
            self._count_unknown(name)
            return
        entry = event.entry
        self._add_violation("robots", name, event, f"{entry.method} to {entry.host} before its robots.txt was read")

    def _count(self, name: str, run: int, count: int, at_ms: int) -> None:
        domain = self._history(name)
        before = domain.sent.get(run, 0)
        sent = domain.sent[run] = before + count
        report = self._report
        if sent > report.busiest[0]:
            report.busiest = (sent, name, run)
        budget = self._limits.at(run, at_ms).budget(name)
        if sent > budget and (name, run) not in self._over_budget:
            self._over_budget.add((name, run))
            self._found.append(Violation("budget", name, run, at_ms, f"more than {budget:,} requests"))

    def _add_violation(self, promise: str, name: str, event: _Event, words: str) -> None:
        self._found.append(Violation(promise, name, event.run, event.entry.at_ms, words))
