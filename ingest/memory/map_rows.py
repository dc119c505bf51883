"""Rows in memory: a page that a batch changes, and a domain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawler.model.origins import Origin
from crawler.model.states import PageState
from crawler.rules.lists import DomainClass, is_below
from crawler.rules.page_priority import kind_of
from ingest.rules.page_state import priority

if TYPE_CHECKING:
    from crawler.model.records import PageResult

_LINKED, _SEED, _ARCHIVE = Origin.LINKED, Origin.SEED, Origin.ARCHIVE
_DISCOVERED = PageState.DISCOVERED  # to look it up by its name costs as much as a function call


class MapDomain:
    """A domain's row. Its closure and its counts are those of run `run`."""

    __slots__ = (
        "closed",
        "closed_at_request",
        "crawl_delay",
        "first_seen_run",
        "id",
        "is_listed",
        "klass",
        "lost_requests",
        "name",
        "parts",
        "pin",
        "request_count",
        "robots_at",
        "robots_outcome",
        "robots_status",
        "run",
    )

    def __init__(self, number: int, name: str, klass: DomainClass, pin: int, run: int) -> None:
        self.id = number
        self.name = name
        self.klass = klass
        self.is_listed = klass.is_listed
        self.pin = pin  # the reach of its pages from lying inside quality entries
        self.parts: tuple[tuple[str, int], ...] = ()  # (path, the same for pages there) of entries with a path
        self.run = run
        self.first_seen_run = run
        self.closed: str | None = None
        self.closed_at_request: int | None = None
        self.request_count = 0
        self.lost_requests = 0
        self.robots_at: str | None = None
        self.robots_outcome: str | None = None
        self.robots_status: int | None = None
        self.crawl_delay: float | None = None

    def pin_at(self, key: str) -> int:
        """The reach of one of its pages from lying inside quality entries."""
        pin = self.pin
        for path, its_pin in self.parts:  # of different entries: no two have a field in common
            if is_below(path, key):
                pin |= its_pin
        return pin

    def enter_run(self, run: int) -> None:
        """Start a new run: counts at zero, no closure."""
        if self.run < run:
            self.run = run
            self.closed = None
            self.closed_at_request = None
            self.request_count = 0
            self.lost_requests = 0


class MapSitemap:
    """A sitemap's row. It waits, or it was read in run `run`, or could not be."""

    __slots__ = (
        "announced_by",
        "domain",
        "entries",
        "error",
        "form",
        "id",
        "is_cut",
        "left_out",
        "level",
        "read_at",
        "state",
        "status",
        "url",
        "wire",
    )

    def __init__(self, number: int, url: str, wire: str, domain: MapDomain, announced_by: str, level: int) -> None:
        self.id = number
        self.url = url
        self.wire = wire
        self.domain = domain
        self.announced_by = announced_by
        self.level = level
        self.state = "waiting"
        self.form: str | None = None
        self.entries = 0
        self.left_out = 0
        self.is_cut = False
        self.status: int | None = None
        self.error: str | None = None
        self.read_at: str | None = None


class MapPage:
    """A page's row as it is now, and as the last commit wrote it (`stored_…`)."""

    __slots__ = (
        "at",
        "depth",
        "discovered_run",
        "domain",
        "error",
        "family",
        "hash",
        "id",
        "is_reentered",
        "key",
        "links_print",
        "origin",
        "page_type",
        "reach",
        "redirect_error",
        "redirect_to",
        "seen_run",
        "state",
        "stored_origin",
        "stored_priority",
        "stored_reach",
        "stored_redirect",
        "stored_state",
        "stored_visited_run",
        "trap",
        "visit",
        "visit_error",
        "visited",
        "visited_run",
        "wire",
    )

    def __init__(
        self, number: int, key: str, hash_: int, wire: str | None, domain: MapDomain, run: int, at: str
    ) -> None:
        self.id = number
        self.key = key
        self.hash = hash_
        self.wire = wire  # None: the key itself is requested
        self.domain = domain
        self.at = at
        self.discovered_run = run
        self.seen_run = run
        self.origin = _LINKED
        self.state = _DISCOVERED
        self.error: str | None = None
        self.reach = 0
        self.depth: int | None = None
        self.trap: str | None = None
        self.family: int | None = None
        self.page_type = ""
        self.visited_run: int | None = None
        self.visited: PageState | None = None  # the outcome of the visit in `visited_run`
        self.visit_error: str | None = None
        self.visit: PageResult | None = None  # a result applied since the last commit
        self.links_print = 0  # of the hrefs that the visit in `visited_run` found; 0: unknown
        self.redirect_to: int | None = None
        self.redirect_error: str | None = None
        self.stored_state: PageState | None = None  # None: not in the database yet
        self.stored_origin: Origin | None = None
        self.stored_priority = 0
        self.stored_reach = 0
        self.stored_redirect: int | None = None
        self.stored_visited_run: int | None = None
        self.is_reentered = False  # seen by a new run: depths of the run before may have to go

    def priority(self, *, by_level: bool) -> int:
        """The place of a page that waits. One that was let in without a depth waits as long as one without a link. An
        archive goes first: it is tried where nothing else waits, or once a day.
        """
        kind = kind_of(self.key, self.domain.name, is_seed=self.origin is _SEED or self.origin is _ARCHIVE)
        is_linked = (self.origin.is_linked or self.origin is _ARCHIVE) and self.depth is not None
        return priority(self.depth or 0, self.klass, is_linked, kind, by_level=by_level)

    @property
    def klass(self) -> DomainClass:
        """The class of its domain, unless only parts of that are quality and it is in none of them."""
        domain = self.domain
        return domain.klass if not domain.parts or domain.pin_at(self.key) else DomainClass.DISCOVERED

    @property
    def pin(self) -> int:
        """Its reach from lying inside quality entries."""
        return self.domain.pin_at(self.key) if self.domain.parts else self.domain.pin

    def enter_run(self, run: int) -> None:
        """Seen again in a new run: its history stays in the row, its state is decided anew."""
        self.seen_run = run
        self.reach = 0
        self.depth = None
        self.visited = None
        self.visit_error = None
        self.redirect_to = None
        self.redirect_error = None
        self.is_reentered = True
