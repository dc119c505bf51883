"""PURE. Rows → figures: from the counts of one scan over all pages, each figure is worked out once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from crawler.model.states import ERRORS, WAITING, PageState, slug_of
from reporter.error_categories import ALWAYS_SHOWN, ERROR_WORDS, category_of, reason_words, reasons_line
from reporter.figures import (
    ClosedDomain,
    DepthFigures,
    DomainFigures,
    ErrorFigures,
    FailedSeed,
    Overall,
    RateLimited,
    RunFigures,
    Trap,
    is_listed,
    whole_seconds,
)

Counts = Mapping[tuple[int, str, int | None, str | None], int]


class RunFacts(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def started_at(self) -> str: ...
    @property
    def finished_at(self) -> str | None: ...
    @property
    def status(self) -> str: ...


class DomainFacts(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def domain(self) -> str: ...
    @property
    def klass(self) -> str: ...
    @property
    def run(self) -> int: ...
    @property
    def request_count(self) -> int: ...
    @property
    def rate_limited(self) -> int: ...
    @property
    def closed_reason(self) -> str | None: ...
    @property
    def closed_at_request(self) -> int | None: ...
    @property
    def robots_outcome(self) -> str | None: ...
    @property
    def first_seen_run(self) -> int: ...


class SeedFacts(Protocol):
    @property
    def url(self) -> str: ...
    @property
    def end(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def error(self) -> str | None: ...


def run_figures(run: RunFacts) -> RunFigures:
    """The figures in the header of a report."""
    seconds = None
    if run.finished_at:
        try:
            # From whole seconds, as both times are shown, so that the three agree.
            begin, end = (datetime.fromisoformat(whole_seconds(text)) for text in (run.started_at, run.finished_at))
            seconds = max(0, int((end - begin).total_seconds()))
        except (ValueError, TypeError):
            seconds = None
    return RunFigures(run.id, run.started_at, run.finished_at, run.status, seconds)


@dataclass(slots=True)
class _Tally:
    crawled: int = 0
    known: int = 0
    waiting: int = 0
    errors: int = 0
    unanswered: int = 0  # held back, or no answer came
    reasons: Counter[str] = field(default_factory=Counter)  # of pages that were not crawled
    crawled_low: int | None = None
    crawled_high: int | None = None
    low: int | None = None
    high: int | None = None

    def widen(self, depth: int | None, is_crawled: bool) -> None:
        if depth is None:
            return
        self.low = depth if self.low is None else min(self.low, depth)
        self.high = depth if self.high is None else max(self.high, depth)
        if is_crawled:
            self.crawled_low = depth if self.crawled_low is None else min(self.crawled_low, depth)
            self.crawled_high = depth if self.crawled_high is None else max(self.crawled_high, depth)


@dataclass(slots=True)
class PageFigures:
    """The figures that one pass over the counts yields."""

    states: dict[str, int]
    depths: list[DepthFigures]
    domains: list[DomainFigures]
    errors: list[ErrorFigures]
    error_slugs: dict[str, int]
    robots_denied: dict[str, int]  # by domain
    traps: dict[tuple[str, str], int]  # by (domain, slug)
    held_back: dict[str, int]  # by domain: waiting pages that a closure ended
    out_of_scope: int = 0


def page_figures(counts: Counts, domains: Mapping[int, DomainFacts], run: int) -> PageFigures:
    """All figures that follow from the number of pages by (domain, state, depth, error)."""
    states: Counter[str] = Counter()
    categories: Counter[str] = Counter()
    slugs: Counter[str] = Counter()
    crawled_at: Counter[int | None] = Counter()
    known_at: Counter[int | None] = Counter()
    robots_denied: Counter[str] = Counter()
    held_back: Counter[str] = Counter()
    traps: Counter[tuple[str, str]] = Counter()
    tallies: defaultdict[int, _Tally] = defaultdict(_Tally)
    crawled_in = {number for (number, state, _, _), count in counts.items() if state == PageState.PROCESSED and count}
    for (domain_id, state, depth, error), count in counts.items():
        states[state] += count
        known_at[depth] += count
        tally = tallies[domain_id]
        tally.known += count
        is_crawled = state == PageState.PROCESSED
        tally.widen(depth, is_crawled)
        if is_crawled:
            crawled_at[depth] += count
            tally.crawled += count
            continue
        tally.reasons[reason_words(state, error)] += count
        if _is_unanswered(state, error):
            tally.unanswered += count
        if state in WAITING:
            tally.waiting += count
        elif state in ERRORS:
            tally.errors += count
            slug = _slug(state, error)
            # Where no visit succeeded, nothing is known of the site: it has no traps.
            is_unproven = slug.startswith("trap") and domain_id not in crawled_in
            categories["never-answered" if is_unproven else category_of(state, error)] += count
            slugs[slug] += count
            name = domains[domain_id].domain
            if slug == "robots-denied":
                robots_denied[name] += count
            elif slug in ("rate-limited", "crawl-delay-too-long", "breaker-open", "cleared", "robots-unreachable"):
                held_back[name] += count
            elif slug.startswith("trap") and not is_unproven:
                traps[name, slug] += count
        elif state == PageState.REQUEST_LIMIT_HIT:
            held_back[domains[domain_id].domain] += count
    return PageFigures(
        states=dict(sorted(states.items(), key=lambda item: (-item[1], item[0]))),
        depths=_depths(known_at, crawled_at, tallies, domains, run),
        domains=_domains(tallies, domains, run),
        errors=[
            ErrorFigures(name, words, categories[name])
            for name, words in ERROR_WORDS.items()
            if categories[name] or name in ALWAYS_SHOWN
        ],
        error_slugs=dict(sorted(slugs.items(), key=lambda item: (-item[1], item[0]))),
        robots_denied=dict(robots_denied),
        traps=dict(traps),
        held_back=dict(held_back),
        out_of_scope=sum(count for (_, _, _, error), count in counts.items() if error == "out-of-scope"),
    )


_UNANSWERED = (
    *("rate-limited", "http-429", "crawl-delay-too-long", "breaker-open", "robots-unreachable", "request-limit"),
    "cleared",
)


def _is_unanswered(state: str, error: str | None) -> bool:
    """Did the run want this page, and get no answer for it?"""
    if state in (PageState.UNREACHABLE, PageState.RATE_LIMITED, PageState.REQUEST_LIMIT_HIT):
        return True
    slug = _slug(state, error)
    return slug in _UNANSWERED or slug.startswith("http-5")


def _slug(state: str, error: str | None) -> str:
    return slug_of(error) or str(state).replace("_", "-")


def _depths(
    known: Mapping[int | None, int],
    crawled: Mapping[int | None, int],
    tallies: Mapping[int, _Tally],
    domains: Mapping[int, DomainFacts],
    run: int,
) -> list[DepthFigures]:
    unlisted = {number: tally.low for number, tally in tallies.items() if not is_listed(domains[number].klass)}
    there = Counter(unlisted.values())
    new = Counter(low for number, low in unlisted.items() if domains[number].first_seen_run >= run)
    depths = sorted({*known, *there, 0}, key=lambda depth: (depth is None, depth or 0))
    return [
        DepthFigures(depth, crawled.get(depth, 0), known.get(depth, 0), new.get(depth, 0), there.get(depth, 0))
        for depth in depths
        if depth is not None or there.get(None, 0) or crawled.get(None, 0) or known.get(None, 0)
    ]


def _domains(tallies: Mapping[int, _Tally], domains: Mapping[int, DomainFacts], run: int) -> list[DomainFigures]:
    figures = []
    for number, tally in tallies.items():
        row = domains[number]
        is_current = row.run == run
        figures.append(
            DomainFigures(
                domain=row.domain,
                klass=row.klass,
                crawled=tally.crawled,
                known=tally.known,
                waiting=tally.waiting,
                errors=tally.errors,
                requests=row.request_count if is_current else 0,
                depth_low=tally.crawled_low if tally.crawled else tally.low,
                depth_high=tally.crawled_high if tally.crawled else tally.high,
                closed=row.closed_reason if is_current else None,
                left=tally.waiting + tally.unanswered,
                why=None if tally.crawled else reasons_line(tally.reasons),
            )
        )
    figures.sort(key=lambda figure: (-figure.crawled, -figure.known, figure.domain))
    return figures


def overall(pages: PageFigures, links: int, pages_in_all: int, rejected: int = 0) -> Overall:
    """The figures of the first table."""
    states = pages.states
    known = sum(states.values())
    return Overall(
        pages_crawled=states.get(PageState.PROCESSED, 0),
        domains_discovered=sum(1 for domain in pages.domains if not is_listed(domain.klass)),
        links=links,
        blacklisted=states.get(PageState.BLACKLISTED, 0),
        stubbed=states.get(PageState.STUBBED, 0),
        errors=sum(states.get(state, 0) for state in ERRORS),
        urls_known=known,
        waiting=sum(states.get(state, 0) for state in WAITING),
        beyond_max_depth=states.get(PageState.DEPTH_EXCEEDED, 0),
        not_followed=states.get(PageState.DISCOVERED, 0) - pages.out_of_scope,
        over_budget=states.get(PageState.REQUEST_LIMIT_HIT, 0),
        not_seen_again=pages_in_all - known,
        out_of_scope=pages.out_of_scope,
        rejected=rejected,
    )


def rate_limited(domains: Iterable[DomainFacts], run: int) -> list[RateLimited]:
    """The domains that answered 429 in this run."""
    found = [
        RateLimited(row.domain, row.closed_at_request if row.closed_reason == "rate-limited" else None)
        for row in domains
        if row.rate_limited and row.run == run
    ]
    return sorted(found, key=lambda figure: figure.domain)


def closed_domains(domains: Iterable[DomainFacts], pages: PageFigures, run: int) -> list[ClosedDomain]:
    """The domains with pages left unvisited: because of a 429, the budget, failures, or their robots.txt."""
    crawled = {figure.domain: figure.crawled for figure in pages.domains}
    found = []
    for row in domains:
        if row.run == run and row.closed_reason:
            found.append(
                ClosedDomain(row.domain, row.closed_reason, row.closed_at_request, pages.held_back.get(row.domain, 0))
            )
        elif row.run == run and row.robots_outcome == "unreachable" and pages.held_back.get(row.domain):
            found.append(ClosedDomain(row.domain, "robots-unreachable", None, pages.held_back[row.domain]))
        elif pages.robots_denied.get(row.domain) and not crawled.get(row.domain):
            found.append(ClosedDomain(row.domain, "robots-denied", None, pages.robots_denied[row.domain]))
    return sorted(found, key=lambda figure: (figure.reason, -figure.pages, figure.domain))


def trap_figures(families: Iterable[tuple[str, str, str]], pages: PageFigures) -> list[Trap]:
    """The families that were closed, and by domain the single URLs that look like a trap.

    Only in domains where a visit succeeded: a host that refuses connections has no traps.
    """
    answered = {figure.domain for figure in pages.domains if figure.crawled}
    closed = [family for family in families if family[0] in answered]
    shared = Counter((domain, slug_of(error) or "") for domain, _, error in closed)
    # Pages have an error, not a family: where two families of a domain share one, the pages cannot be told apart.
    figures = [
        Trap(domain, family, error, pages.traps.get(name, 0) if shared[name] == 1 else None)
        for domain, family, error in closed
        for name in [(domain, slug_of(error) or "")]
    ]
    figures += [
        Trap(domain, None, slug, count)
        for (domain, slug), count in sorted(pages.traps.items(), key=lambda item: (-item[1], item[0]))
        if (domain, slug) not in shared
    ]
    return figures


def failed_seeds(seeds: Iterable[SeedFacts]) -> list[FailedSeed]:
    """The seeds that were not crawled, with reasons. One that redirects has the outcome of its target."""
    return [
        FailedSeed(row.url, reason_words(row.state, row.error), row.error, row.end if row.end != row.url else None)
        for row in seeds
        if row.state != PageState.PROCESSED and row.state not in WAITING
    ]
