"""What the ingest has in its hands: the pages that a batch changes, and domains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from crawler.model.states import PageState
from crawler.rules.lists import DomainClass

if TYPE_CHECKING:
    from crawler.model.records import PageResult

_DISCOVERED = PageState.DISCOVERED  # by its name it costs as much as a function call

Key = TypeVar("Key")
Value = TypeVar("Value")


class Domain:
    """A domain's row. What it says of closures and counts holds for run `run`."""

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
        self.pin = pin  # the reach that lying inside quality entries gives to its pages
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

    def enter_run(self, run: int) -> None:
        """A new run counts anew and knows of no closure."""
        if self.run < run:
            self.run = run
            self.closed = None
            self.closed_at_request = None
            self.request_count = 0
            self.lost_requests = 0


class Page:
    """A page's row, with what the last commit wrote of it (`stored_…`) beside what it is now."""

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
        "reach",
        "redirect_error",
        "redirect_to",
        "seen_run",
        "state",
        "stored_priority",
        "stored_reach",
        "stored_state",
        "stored_visited_run",
        "trap",
        "visit",
        "visit_error",
        "visited",
        "visited_run",
        "wire",
    )

    def __init__(self, number: int, key: str, hash_: int, wire: str | None, domain: Domain, run: int, at: str) -> None:
        self.id = number
        self.key = key
        self.hash = hash_
        self.wire = wire  # None: the key itself is what is requested
        self.domain = domain
        self.at = at
        self.discovered_run = run
        self.seen_run = run
        self.state = _DISCOVERED
        self.error: str | None = None
        self.reach = 0
        self.depth: int | None = None
        self.trap: str | None = None
        self.family: int | None = None
        self.visited_run: int | None = None
        self.visited: PageState | None = None  # what the visit of `visited_run` ended in
        self.visit_error: str | None = None
        self.visit: PageResult | None = None  # a result taken in since the last commit
        self.redirect_to: int | None = None
        self.redirect_error: str | None = None
        self.stored_state: PageState | None = None  # None: not in the database yet
        self.stored_priority = 0
        self.stored_reach = 0
        self.stored_visited_run: int | None = None
        self.is_reentered = False  # a new run has seen it; depths of the run before may have to go

    def enter_run(self, run: int) -> None:
        """Seen again in a new run: its history stays in the row, its standing is found out anew."""
        self.seen_run = run
        self.reach = 0
        self.depth = None
        self.visited = None
        self.visit_error = None
        self.redirect_to = None
        self.redirect_error = None
        self.is_reentered = True


class Generations(Generic[Key, Value]):
    """A bounded memory: what was not asked for during a whole generation is forgotten."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        found = self.young.get(key)
        return self.recall(key) if found is None else found

    def recall(self, key: Key) -> Value | None:
        """What is not among the young, and belongs there from now on."""
        found = self._old.get(key)
        if found is not None:
            self.young[key] = found
        return found

    def put(self, key: Key, value: Value) -> None:
        self.young[key] = value

    def age(self) -> None:
        """Forget what is due. Only between commits: what is to be written must stay."""
        if len(self.young) > self._size:
            self._old = self.young
            self.young = {}
