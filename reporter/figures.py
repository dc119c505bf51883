"""PURE. Rows → figures: everything the summary and `stats` say, worked out once, from one scan's counts.

Whoever shows a figure takes it from `Figures`, so that no two outputs can disagree. What the words mean:

- *crawled*: the page is `processed`; *waiting*: `queued` or `fetching`; *errors*: see `crawler.model.states.ERRORS`.
- a page stands at its least depth; a domain is new at the least depth of its pages.
- blacklisted and stubbed domains are not counted among the domains discovered: they have lists of their own.
- everything is about the run that the map shows. Reference counts and link sums by domain are of all runs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from crawler.model.states import ERRORS, WAITING, PageState, slug_of

TOP = 20  # rows of a list in the summary

# Error categories: name for machines, words for people. The order is the report's.
ERROR_WORDS: dict[str, str] = {
    "dead-links": "Dead Links (404)",
    "gone": "Gone (410)",
    "rate-limited": "Rate Limited (429)",
    "connection-refused": "Connection Refused",
    "timeout": "Timeout",
    "dns": "Name Not Found (DNS)",
    "tls": "No Trusted TLS",
    "connection-lost": "Connection Lost",
    "address-blocked": "Address Not Allowed",
    "robots-denied": "Robots Denied",
    "robots-unreachable": "Robots Unreachable",
    "crawl-delay": "Crawl-Delay Too Long",
    "redirects": "Redirect Loops and Chains",
    "server-errors": "Server Errors (5xx)",
    "client-errors": "Refused by the Server (4xx)",
    "content-mismatch": "Not HTML",
    "too-large": "Too Large",
    "bad-answers": "Unreadable Answers",
    "traps": "Crawler Traps",
    "other": "Other",
}
ALWAYS_SHOWN = ("dead-links", "rate-limited", "connection-refused", "timeout", "robots-denied", "other")

_BY_SLUG = {
    "connection-refused": "connection-refused",
    "timeout": "timeout",
    "dns": "dns",
    "dns-temporary": "dns",
    "tls": "tls",
    "connection-reset": "connection-lost",
    "connection-failed": "connection-lost",
    "early-close": "connection-lost",
    "address-blocked": "address-blocked",
    "robots-denied": "robots-denied",
    "robots-unreachable": "robots-unreachable",
    "crawl-delay-too-long": "crawl-delay",
    "redirect-loop": "redirects",
    "redirect-limit": "redirects",
    "bad-redirect": "redirects",
    "bad-response": "bad-answers",
    "bad-encoding": "bad-answers",
    "content-mismatch": "content-mismatch",
    "too-large": "too-large",
    "rate-limited": "rate-limited",
}


def category_of(state: str, error: str | None) -> str:
    """Which row of the error summary counts a page of this state with this error message (or its slug)?"""
    slug = slug_of(error)
    if state == PageState.DEAD_LINK:
        return "gone" if slug == "http-410" else "dead-links"
    if state == PageState.RATE_LIMITED:
        return "rate-limited"
    if slug is not None:
        if slug in _BY_SLUG:
            return _BY_SLUG[slug]
        for start, name in (("trap", "traps"), ("http-5", "server-errors"), ("http-4", "client-errors")):
            if slug.startswith(start):
                return name
    return "content-mismatch" if state == PageState.CONTENT_MISMATCH else "other"


# -- what the figures are ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunFigures:
    id: int
    started: str
    finished: str | None
    status: str
    seconds: int | None  # None: not finished, or its times cannot be read


@dataclass(frozen=True, slots=True)
class Overall:
    pages_crawled: int
    domains_discovered: int
    links: int
    blacklisted: int
    stubbed: int
    errors: int
    urls_known: int  # all that this run saw, in whatever state
    waiting: int
    beyond_max_depth: int
    not_followed: int  # `discovered`: only links that are not followed lead there
    over_budget: int  # `request_limit_hit`
    not_seen_again: int  # pages of earlier runs that this one has not met


@dataclass(frozen=True, slots=True)
class DepthFigures:
    depth: int | None  # None: no followed way leads there
    crawled: int
    known: int
    new_domains: int


@dataclass(frozen=True, slots=True)
class DomainFigures:
    domain: str
    klass: str
    crawled: int
    known: int
    waiting: int
    errors: int
    requests: int
    depth_low: int | None  # over its crawled pages; over all of them if none was crawled
    depth_high: int | None
    closed: str | None


@dataclass(frozen=True, slots=True)
class ErrorFigures:
    name: str
    words: str
    count: int


@dataclass(frozen=True, slots=True)
class Reference:
    url: str
    count: int


@dataclass(frozen=True, slots=True)
class RateLimited:
    domain: str
    request: int | None


@dataclass(frozen=True, slots=True)
class LinkedDomain:
    domain: str
    klass: str
    quality_domains: int
    links: int


@dataclass(frozen=True, slots=True)
class LinkBack:
    domain: str
    klass: str
    links_to_quality: int
    links_from_quality: int


@dataclass(frozen=True, slots=True)
class MendableLink:
    """A link on pages of a quality domain that its owner may want to change. `target`: where it should lead."""

    domain: str
    url: str
    status: int | None
    target: str | None
    pages: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClosedDomain:
    domain: str
    reason: str  # rate-limited | request-limit | crawl-delay | robots-unreachable | robots-denied
    request: int | None
    pages: int  # left unvisited because of it


@dataclass(frozen=True, slots=True)
class Trap:
    domain: str
    family: str | None  # None: single URLs whose shape is a trap's
    error: str
    pages: int | None


@dataclass(frozen=True, slots=True)
class Quarantined:
    writer: str
    reason: str
    lines: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CutPage:
    url: str
    links_cut: int


@dataclass(frozen=True, slots=True)
class Figures:
    """All of it. Lists are whole unless their name says `top`; showing fewer is the renderers' business."""

    run: RunFigures
    overall: Overall
    states: dict[str, int]
    depths: list[DepthFigures]
    domains: list[DomainFigures]
    errors: list[ErrorFigures]
    error_slugs: dict[str, int]
    rate_limited: list[RateLimited]
    top_blacklisted: list[Reference] = field(default_factory=list)
    top_stubbed: list[Reference] = field(default_factory=list)
    top_linked: list[LinkedDomain] = field(default_factory=list)
    linked_total: int = 0
    top_linking_back: list[LinkBack] = field(default_factory=list)
    linking_back_total: int = 0
    dead_links: list[MendableLink] = field(default_factory=list)
    dead_links_total: dict[str, int] = field(default_factory=dict)  # by quality domain
    moved_links: list[MendableLink] = field(default_factory=list)
    moved_links_total: int = 0
    closed: list[ClosedDomain] = field(default_factory=list)
    traps: list[Trap] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    cut_pages: list[CutPage] = field(default_factory=list)
    cut_pages_total: int = 0
    links_cut: int = 0


# -- how they are made ------------------------------------------------------------------------------------------

Counts = Mapping[tuple[int, str, int | None, str | None], int]


class Run(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def started_at(self) -> str: ...
    @property
    def finished_at(self) -> str | None: ...
    @property
    def status(self) -> str: ...


class Domain(Protocol):
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


def run_figures(run: Run) -> RunFigures:
    """The header's facts."""
    seconds = None
    if run.finished_at:
        try:
            # Of whole seconds, as both times are shown, so that the three agree.
            begin, end = (datetime.fromisoformat(whole_seconds(text)) for text in (run.started_at, run.finished_at))
            seconds = max(0, int((end - begin).total_seconds()))
        except (ValueError, TypeError):
            seconds = None
    return RunFigures(run.id, run.started_at, run.finished_at, run.status, seconds)


def whole_seconds(time: str) -> str:
    """`2025-01-15T10:30:00.358Z` without its fraction."""
    return re.sub(r"(:\d\d)\.\d+", r"\1", time)


def duration_words(seconds: int) -> str:
    """`4h 15m 23s`; what is zero at the front is left out."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [(hours, "h"), (minutes, "m"), (rest, "s")]
    while len(parts) > 1 and parts[0][0] == 0:
        parts.pop(0)
    return " ".join(f"{number}{unit}" for number, unit in parts)


@dataclass(slots=True)
class _Tally:
    crawled: int = 0
    known: int = 0
    waiting: int = 0
    errors: int = 0
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
    """What one pass over the counts yields; the parts that `Figures` puts together."""

    states: dict[str, int]
    depths: list[DepthFigures]
    domains: list[DomainFigures]
    errors: list[ErrorFigures]
    error_slugs: dict[str, int]
    robots_denied: dict[str, int]  # by domain
    traps: dict[tuple[str, str], int]  # by (domain, slug)
    held_back: dict[str, int]  # by domain: waiting pages settled by a closure


def page_figures(counts: Counts, domains: Mapping[int, Domain], run: int) -> PageFigures:
    """Everything that follows from how many pages of each (domain, state, depth, error) there are."""
    states: Counter[str] = Counter()
    categories: Counter[str] = Counter()
    slugs: Counter[str] = Counter()
    crawled_at: Counter[int | None] = Counter()
    known_at: Counter[int | None] = Counter()
    robots_denied: Counter[str] = Counter()
    held_back: Counter[str] = Counter()
    traps: Counter[tuple[str, str]] = Counter()
    tallies: defaultdict[int, _Tally] = defaultdict(_Tally)
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
        elif state in WAITING:
            tally.waiting += count
        elif state in ERRORS:
            tally.errors += count
            categories[category_of(state, error)] += count
            slug = _slug(state, error)
            slugs[slug] += count
            name = domains[domain_id].domain
            if slug == "robots-denied":
                robots_denied[name] += count
            elif slug in ("rate-limited", "crawl-delay-too-long", "robots-unreachable"):
                held_back[name] += count
            elif slug.startswith("trap"):
                traps[name, slug] += count
        elif state == PageState.REQUEST_LIMIT_HIT:
            held_back[domains[domain_id].domain] += count
    return PageFigures(
        states=dict(sorted(states.items(), key=lambda item: (-item[1], item[0]))),
        depths=_depths(known_at, crawled_at, tallies, domains),
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
    )


def _slug(state: str, error: str | None) -> str:
    return slug_of(error) or str(state).replace("_", "-")


def is_listed(klass: str) -> bool:
    """Blacklisted and stubbed domains have sections of their own."""
    return klass in ("blacklisted", "stubbed")


def _depths(
    known: Mapping[int | None, int],
    crawled: Mapping[int | None, int],
    tallies: Mapping[int, _Tally],
    domains: Mapping[int, Domain],
) -> list[DepthFigures]:
    new = Counter(tally.low for number, tally in tallies.items() if not is_listed(domains[number].klass))
    depths = sorted({*known, *new, 0}, key=lambda depth: (depth is None, depth or 0))
    return [
        DepthFigures(depth, crawled.get(depth, 0), known.get(depth, 0), new.get(depth, 0))
        for depth in depths
        if depth is not None or new.get(None, 0) or crawled.get(None, 0) or known.get(None, 0)
    ]


def _domains(tallies: Mapping[int, _Tally], domains: Mapping[int, Domain], run: int) -> list[DomainFigures]:
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
            )
        )
    figures.sort(key=lambda figure: (-figure.crawled, -figure.known, figure.domain))
    return figures


def overall(pages: PageFigures, links: int, pages_in_all: int) -> Overall:
    """The first table."""
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
        not_followed=states.get(PageState.DISCOVERED, 0),
        over_budget=states.get(PageState.REQUEST_LIMIT_HIT, 0),
        not_seen_again=pages_in_all - known,
    )


def rate_limited(domains: Iterable[Domain], run: int) -> list[RateLimited]:
    """The domains that answered 429 in this run."""
    found = [
        RateLimited(row.domain, row.closed_at_request if row.closed_reason == "rate-limited" else None)
        for row in domains
        if row.rate_limited and row.run == run
    ]
    return sorted(found, key=lambda figure: figure.domain)


def closed_domains(domains: Iterable[Domain], pages: PageFigures, run: int) -> list[ClosedDomain]:
    """The domains of which something was left unvisited: by a 429, the budget, or their robots.txt."""
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
    """The families that were closed, and by domain the single URLs that look like a trap."""
    closed = list(families)
    shared = Counter((domain, slug_of(error) or "") for domain, _, error in closed)
    # Pages know their error, not their family: where two families of a domain share one, nobody can tell.
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
