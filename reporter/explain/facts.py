"""PURE. Everything that is known about one URL, as records."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from reporter.escape import json_text
from reporter.explain.turn import Turn
from reporter.explain.wording import in_words

VERSION = 1


@dataclass(frozen=True, slots=True)
class PathStep:
    url: str
    depth: int
    via: str  # start | link | redirect


@dataclass(frozen=True, slots=True)
class OriginDepth:
    """A page's depth for one quality entry. `path` is empty where the map no longer has one."""

    origin: str
    depth: int
    path: tuple[PathStep, ...]


@dataclass(frozen=True, slots=True)
class Robots:
    """`outcome` is domain_states.robots_outcome (None: never asked); `rule` is the deciding line, if there is one."""

    outcome: str | None
    fetched_at: str | None
    rule: str | None
    allowed: bool | None
    crawl_delay: float | None


@dataclass(frozen=True, slots=True)
class LinkHere:
    url: str
    kind: str  # link | nofollow | redirect
    text: str = ""  # of the link, where known
    rel: str = ""


@dataclass(frozen=True, slots=True)
class Cap:
    """A [[cap]] that the page is under, and the visits of its unit in the newest run."""

    name: str
    per: str
    value: str
    max_pages: int
    visits: int


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What the page said about itself when it was last accepted. `same_text`: who showed the same in that run."""

    run: int
    content_hash: str
    stored: bool
    noarchive: bool
    bytes: int
    description: str | None
    language: str | None
    canonical: str | None
    heading: str | None
    link_count: int
    same_text: tuple[str, ...] = ()
    near_text: tuple[str, ...] = ()
    fields: dict[str, tuple[str, ...]] = field(default_factory=dict)  # the user's own


@dataclass(frozen=True, slots=True)
class Revisit:
    """The plan of a page's visits ([revisit] schedule)."""

    next_crawl_at: str | None  # None: with the next run, because the last visit found no answer
    interval: int  # seconds
    visited_at: str  # the last visit
    changed_at: str  # the last one that found it new or changed
    carried_run: int | None  # the last run that did not visit it, because it was not due


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that is known. Fields that only a page in the map has are None or empty for a URL never seen."""

    url: str
    key: str
    wire: str
    domain: str
    klass: str
    rule: str | None  # the pattern that decides the class
    rule_list: str | None  # quality | blacklist | stub
    rule_line: int | None
    config: str | None
    class_in_map: str | None
    is_known: bool
    newest_run: int | None
    state: str | None
    status: int | None
    error: str | None
    validation: str | None  # ok | soft | hard
    rejection_reason: str | None
    title: str | None
    content_type: str | None
    truncated: bool  # its compressed body ended before its stream did
    visited_at: str | None
    visited_run: int | None
    discovered_at: str | None
    first_run: int | None
    last_run: int | None
    redirect_to: str | None
    redirects_from_here: tuple[str, ...]
    depths: tuple[OriginDepth, ...]
    max_depth: int
    robots: Robots
    trap: str | None
    family: str | None
    family_closed: str | None  # the error that new pages of its family get
    closed: str | None
    requests: int | None
    linked_from: tuple[LinkHere, ...]
    linked_from_total: int
    to_be_crawled: tuple[str, ...]
    turn: Turn | None = None  # of a page that waits
    origin: str | None = None  # seed | linked | sitemap | archive | speculated
    in_sitemap: str | None = None  # the sitemap that names it
    lastmod: str | None = None  # as that sitemap says
    next_page: str | None = None  # the next page of its list
    next_by: str | None = None  # by what evidence: rel | address
    page_type: str | None = None
    scope: str | None = None  # the rule that puts it out of scope
    caps: tuple[Cap, ...] = ()
    facts: PageFacts | None = None  # of its last accepted visit
    revisit: Revisit | None = None  # None: it is visited with every run, or was not visited yet
    is_outside_parts: bool = False  # its domain is quality in part, and it is in none of the parts

    def json(self) -> str:
        fields = asdict(self)
        fields["class"] = fields.pop("klass")
        return json_text({"v": VERSION, "kind": "explanation", **fields})

    def text(self, *, is_uncut: bool = False) -> str:
        return in_words(self, is_uncut=is_uncut)
