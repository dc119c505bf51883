"""PURE. The findings of an audit, and their text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from crawler.model.shown_text import counted, domain_words, text_words

KEPT = 1000  # violations that are listed; the rest are only counted


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise. `promise` is `spacing`, `budget`, `numbers`, `robots` or `lists`."""

    promise: str
    domain: str
    run: int
    at_ms: int
    words: str

    def line(self) -> str:
        at = datetime.fromtimestamp(self.at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        domain, words = domain_words(self.domain), text_words(self.words)
        return f"violation of {self.promise}: {domain}, run {self.run}, {at.replace('+00:00', 'Z')}: {words}"


@dataclass(slots=True)
class AuditReport:
    """The findings of an audit. `violations` holds the first `kept` of them (None: all), `violation_count` counts all.

    `command` is the one that lists them all.
    """

    requests: int = 0
    pairs: int = 0
    domains: int = 0
    pages: int = 0
    robots_files: int = 0
    sitemaps: int = 0
    lost: int = 0
    numbered: int = 0  # requests whose numbers the ledgers have
    unseen: int = 0  # numbers before the last that no ledger has
    unreported: int = 0  # of these: beyond the requests that were reported as lost
    first_gap: tuple[str, int] | None = None  # domain and run of the first of those
    unknown_robots: int = 0  # requests whose robots.txt may be in a record that was dropped
    dropped_before: int = 0  # the first run whose records are all kept, where earlier ones were dropped
    damaged: int = 0
    writers: int = 0
    runs: set[int] = field(default_factory=set)
    limits: tuple[str, ...] = ()  # those that the runs were judged by, in words
    busiest: tuple[int, str, int] = (0, "", 0)  # requests, domain, run
    closest: tuple[int, str] | None = None  # milliseconds more than required, domain
    violations: list[Violation] = field(default_factory=list)
    violation_count: int = 0
    kept: int | None = KEPT
    command: str = "sumi-ripple audit --all"

    def add_closest(self, spare_ms: int, domain: str) -> None:
        """Two requests to a domain had so much more between them than required."""
        if self.closest is None or spare_ms < self.closest[0]:
            self.closest = (spare_ms, domain)

    @property
    def is_clean(self) -> bool:
        return self.violation_count == 0

    def add(self, violation: Violation) -> None:
        self.violation_count += 1
        if self.kept is None or len(self.violations) < self.kept:
            self.violations.append(violation)

    def add_missing(self, domain: str, run: int, missing: int, unreported: int) -> None:
        """Numbers of a domain in a run that no ledger has, and how many more they are than requests reported as lost.

        More are no violation: reports and ledgers are written after requests, so some are always on their way while a
        crawl is under way, and a domain that nobody takes over any more has nobody to report for it.
        """
        self.unseen += missing
        if unreported > 0:
            self.unreported += unreported
            self.first_gap = self.first_gap or (domain, run)

    def lines(self) -> Iterator[str]:
        """The report as text."""
        requests, domains = counted(self.requests, "request"), counted(self.domains, "domain")
        runs, pages = counted(len(self.runs), "run"), counted(self.pages, "page")
        sitemaps = f" and {counted(self.sitemaps, 'sitemap')}" if self.sitemaps else ""
        yield f"{requests} to {domains} in {runs}, for {pages}{sitemaps}."
        yield from self.limits
        if self.closest is not None:
            nearest = domain_words(self.closest[1])
            yield (
                f"spacing: {self.pairs:,} pairs of requests, each as far apart as its run's limit (or the host's"
                f" Crawl-delay) asks; the closest had {self.closest[0]:,} ms to spare ({nearest})."
                if self.closest[0] >= 0
                else f"spacing: {self.pairs:,} pairs of requests, not all of them far enough apart."
            )
        most, domain, run = self.busiest
        if most:
            yield f"budget: the most requests to a domain in a run were {most:,} ({domain_words(domain)}, run {run})."
        if self.numbered:
            gaps = f"{self.unseen:,} are missing, of requests that were lost" if self.unseen else "without a gap"
            if self.first_gap is not None:
                nearest, run = self.first_gap
                gaps += (
                    f"; {self.unreported:,} of them nobody has reported (yet), as of {domain_words(nearest)}, run {run}"
                )
            yield f"numbers: {self.numbered:,} requests have their numbers, each once in its domain and run, {gaps}."
        yield f"robots: {self.robots_files:,} robots.txt answers, checked against every page requested."
        if self.unknown_robots:
            yield (
                f"robots: not known for {counted(self.unknown_robots, 'request')}: the records of runs before run"
                f" {self.dropped_before} are gone (prune results, [spool] results), and with them what was read then."
            )
        if self.lost:
            yield f"{self.lost:,} requests were sent by fetchers that were killed before recording them; they count."
        if self.damaged:
            yield f"{self.damaged:,} spool lines could not be read and are not checked."
        for violation in self.violations:
            yield violation.line()
        if self.violation_count > len(self.violations):
            yield f"… and {self.violation_count - len(self.violations):,} more violations: {self.command}"
        yield "clean: no violation." if self.is_clean else f"NOT clean: {self.violation_count:,} violations."
