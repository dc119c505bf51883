"""PURE. The figures of a run, as records: everything that the summary and `stats` say.

Every output takes its figures from `Figures`, so that no two outputs can disagree. The words mean:

- *crawled*: the page is `processed`; *waiting*: `queued` or `fetching`; *failed* (member `errors`): see
  `crawler.model.states.ERRORS`; *known*: every page that the run saw, in any state.
- a page counts at its least depth; a domain is new at the least depth of its pages.
- blacklisted and stubbed domains are not counted among the domains discovered: they have lists of their own.
- everything is about the run that the map shows. Reference counts and link sums by domain are of all runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from crawler.model.link_context import LinkContext
from crawler.model.shown_text import plain, url_words

TOP = 20  # rows of a list in the summary


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
    urls_known: int  # all that this run saw, in every state
    waiting: int
    beyond_max_depth: int
    not_followed: int  # `discovered`: only links that are not followed lead there
    over_budget: int  # `request_limit_hit`
    not_seen_again: int  # pages of earlier runs that this one has not seen
    out_of_scope: int = 0  # `discovered`, too, but not among `not_followed`
    rejected: int = 0  # of `pages_crawled`: they answered with 2xx and are no pages


@dataclass(frozen=True, slots=True)
class DepthFigures:
    depth: int | None  # None: no followed path leads there
    crawled: int
    known: int
    new_domains: int  # first seen in this run
    domains: int  # all of the run whose least depth this is


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
    left: int = 0  # pages that the run wanted and got no answer for: waiting, held back or unreachable
    why: str | None = None  # the reasons, if no page was crawled

    @property
    def is_fully_crawled(self) -> bool:
        return self.crawled > 0 and not self.left and self.closed is None


@dataclass(frozen=True, slots=True)
class FailedSeed:
    """A seed that was not crawled. `target`: the page that it redirects to, if that is the one that failed."""

    url: str
    why: str
    error: str | None
    target: str | None = None


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
class Referrer:
    """A page of a quality domain that links to a page of a candidate. `text` and `rel` are the link's, where known."""

    page: str
    target: str
    text: str = ""
    rel: str = ""

    @property
    def words(self) -> str:
        """For people."""
        about = LinkContext(self.text, self.rel).words
        return f"{url_words(self.page, 200)} -> {url_words(self.target, 200)}" + (f"  {plain(about)}" if about else "")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A discovered domain that quality domains link to."""

    domain: str
    klass: str
    quality_domains: int  # different ones that link there
    links: int
    depth: int | None  # the least of its pages
    title: str | None  # of its front page, if that was crawled
    crawled: int
    known: int
    referrers: tuple[Referrer, ...]
    why: tuple[str, ...]  # why no more of it was crawled; empty: every known page was


@dataclass(frozen=True, slots=True)
class LinkBack:
    domain: str
    klass: str
    links_to_quality: int
    links_from_quality: int


@dataclass(frozen=True, slots=True)
class FixableLink:
    """A link on pages of a quality domain that its owner may want to change. `target`: the URL to change it to."""

    domain: str
    url: str
    status: int | None
    target: str | None
    pages: int
    examples: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True, slots=True)
class ClosedDomain:
    domain: str
    reason: (
        str  # rate-limited | request-limit | crawl-delay | breaker-open | cleared | robots-unreachable | robots-denied
    )
    request: int | None
    pages: int  # left unvisited because of it


@dataclass(frozen=True, slots=True)
class BreakerFigures:
    """A domain whose circuit breaker opened in the run, and how it stands."""

    domain: str
    state: str  # open | half-open | closed
    changes: int
    detail: str


@dataclass(frozen=True, slots=True)
class Trap:
    domain: str
    family: str | None  # None: single URLs whose shape is a trap's
    error: str
    pages: int | None


@dataclass(frozen=True, slots=True)
class ScopeFigures:
    """Pages that one rule puts out of scope."""

    rule: str
    pages: int


@dataclass(frozen=True, slots=True)
class PageTypeFigures:
    name: str | None  # None: pages that no [[page-type]] matches
    crawled: int
    known: int


@dataclass(frozen=True, slots=True)
class CapFigures:
    """A unit of a [[cap]] that is reached."""

    name: str
    value: str  # of the captured group; empty: the cap counts all pages together
    error: str
    pages: int  # left unvisited by it


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
class Rejection:
    """Pages that were rejected for one reason."""

    word: str  # soft | hard
    reason: str  # its slug
    pages: int


@dataclass(frozen=True, slots=True)
class RejectedPage:
    url: str
    word: str
    reason: str  # slug and words


@dataclass(frozen=True, slots=True)
class UnlinkedPages:
    """Pages that were found (`sitemap`) or tried (`speculated`, `archive`) without a link."""

    way: str
    pages: int
    crawled: int
    led_to: int | None  # pages that the run had not seen before; None: not counted


@dataclass(frozen=True, slots=True)
class GuessedForm:
    """A list, or a form of archives, of which pages were tried without a link."""

    way: str
    form: str
    tried: int
    ended_by: str | None


@dataclass(frozen=True, slots=True)
class SameText:
    """Pages that show the same text, or nearly the same. `examples` are the first of them."""

    pages: int
    examples: list[str]
    is_near: bool = False


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures. Lists are complete unless their name says `top`; outputs may show fewer.

    `dead_links` are gone, `unreachable_links` were not reachable on the day of the visit, `moved_links` redirect
    permanently.
    """

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
    candidates: list[Candidate] = field(default_factory=list)
    candidates_total: int = 0
    top_linking_back: list[LinkBack] = field(default_factory=list)
    linking_back_total: int = 0
    dead_links: list[FixableLink] = field(default_factory=list)
    dead_links_total: dict[str, int] = field(default_factory=dict)  # by quality domain
    unreachable_links: list[FixableLink] = field(default_factory=list)
    unreachable_links_total: dict[str, int] = field(default_factory=dict)  # by quality domain
    moved_links: list[FixableLink] = field(default_factory=list)
    moved_links_total: int = 0
    closed: list[ClosedDomain] = field(default_factory=list)
    breakers: list[BreakerFigures] = field(default_factory=list)
    traps: list[Trap] = field(default_factory=list)
    scope: list[ScopeFigures] = field(default_factory=list)
    page_types: list[PageTypeFigures] = field(default_factory=list)  # empty: no page has a type
    caps: list[CapFigures] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    cut_pages: list[CutPage] = field(default_factory=list)
    cut_pages_total: int = 0
    links_cut: int = 0
    truncated_pages: list[str] = field(default_factory=list)  # the first thousand
    truncated_total: int = 0
    same_texts: list[SameText] = field(default_factory=list)  # the largest groups
    same_texts_total: int = 0
    near_texts: list[SameText] = field(default_factory=list)
    near_texts_total: int = 0
    rejections: list[Rejection] = field(default_factory=list)
    rejected: list[RejectedPage] = field(default_factory=list)
    unlinked: list[UnlinkedPages] = field(default_factory=list)
    guessed: list[GuessedForm] = field(default_factory=list)
    seeds: int = 0
    seeds_waiting: int = 0
    failed_seeds: list[FailedSeed] = field(default_factory=list)


def is_listed(klass: str) -> bool:
    """Is this a class with a section of its own (blacklisted, stubbed)?"""
    return klass in ("blacklisted", "stubbed")


def whole_seconds(time: str) -> str:
    """`2025-01-15T10:30:00.358Z` without its fraction."""
    return re.sub(r"(:\d\d)\.\d+", r"\1", time)


def duration_words(seconds: int) -> str:
    """`4h 15m 23s`; leading zeros are left out."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [(hours, "h"), (minutes, "m"), (rest, "s")]
    while len(parts) > 1 and parts[0][0] == 0:
        parts.pop(0)
    return " ".join(f"{number}{unit}" for number, unit in parts)
