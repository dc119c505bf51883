"""PURE. The domains that have pages to visit: those that wait for their first window, those at work, those held back.

Invariants:
- a domain is active exactly while it has outstanding pages (released, and their frontier rows are still there);
- a domain waits in at most one of the two lines: `waiting` without outstanding pages, `wanting_more` with some;
- a domain that is held back is in neither line until it is retried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from crawler.schedule.turns import Turns


class ActiveDomain:
    """A domain with outstanding pages."""

    __slots__ = (
        "carried",
        "families",
        "fruitless",
        "has_more",
        "id",
        "is_cut_short",
        "is_held_at",
        "last_progress",
        "name",
        "outstanding",
        "priority",
        "sitemap_priority",
        "windows",
    )

    def __init__(self, name: str, number: int, now: float) -> None:
        self.name = name
        self.id = number
        self.outstanding: dict[int, str] = {}  # page → key
        self.carried: set[int] = set()  # those of them that are not due: no fetcher has a job for them
        self.families: dict[int, int] = {}  # page → family, of those that are in one
        self.windows: dict[int, set[int]] = {}  # window number → its pages that are still outstanding
        self.is_cut_short = False  # the budget of the run before was less than the domain
        self.is_held_at: int | None = None  # so many jobs are all that it may have, while nothing better is known
        self.has_more = True  # rows beyond the outstanding ones, as far as is known
        self.sitemap_priority: int | None = None  # of a sitemap, which waits until no page of the domain does
        self.priority = 0  # of the best of those
        self.last_progress = now
        self.fruitless = 0  # releases in a row that left no result

    def add(self, page: int, key: str, family: int | None) -> None:
        self.outstanding[page] = key
        if family is not None:
            self.families[page] = family

    @property
    def job_count(self) -> int:
        """Outstanding pages that a fetcher has to visit."""
        return len(self.outstanding) - len(self.carried)

    def pages_of_family(self, family: int) -> set[int]:
        return {page for page, its_family in self.families.items() if its_family == family}


class DomainQueues:
    """Which domain is served next. `window` is the number of jobs that a domain may have outstanding."""

    def __init__(self, window: int, most_active: int) -> None:
        self._window = window
        self._most_active = most_active
        self.active: dict[str, ActiveDomain] = {}
        self.cooling: set[str] = set()  # active domains whose circuit breaker is open
        self.waiting = Turns()  # domains without outstanding pages
        self.wanting_more = Turns()  # domains with some, and room for more
        self._held_back: dict[str, float] = {}  # name → when to retry: every page in front is in a closed family

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.waiting or self._held_back)

    @property
    def has_waiting(self) -> bool:
        """Does any domain wait for a window, or to be tried again?"""
        return bool(self.waiting or self.wanting_more or self._held_back)

    def names(self) -> set[str]:
        """Every domain with pages to visit."""
        return {*self.active, *self._held_back, *self.waiting.names()}

    def clear(self) -> None:
        self.active.clear()
        self.waiting.clear()
        self.wanting_more.clear()
        self._held_back.clear()

    def note_work(self, name: str, priority: int) -> None:
        """The domain has waiting pages, the best of them of this priority."""
        domain = self.active.get(name)
        if domain is None:
            self._held_back.pop(name, None)
            self.waiting.offer(name, priority)
            return
        domain.is_held_at = None  # there may be something better now
        domain.priority = min(domain.priority, priority) if domain.has_more else priority
        domain.has_more = True
        self.request_more(domain)

    def note_closed(self, name: str) -> None:
        """The domain is closed for this run: it releases nothing more."""
        self.waiting.drop(name)
        self._held_back.pop(name, None)

    def request_more(self, domain: ActiveDomain) -> None:
        """Queue a domain that is half-way through its window for more jobs."""
        most = self._window if domain.is_held_at is None else domain.is_held_at
        is_low = domain.job_count <= most // 2
        if domain.has_more and is_low and domain.name not in self._held_back:
            self.wanting_more.offer(domain.name, domain.priority)

    def remove_done(
        self, domain: ActiveDomain, pages: Iterable[int], now: float, remove_window: Callable[[str, int], None]
    ) -> None:
        """These pages are outstanding no longer. A window without outstanding pages is removed."""
        gone = set(pages)
        if domain.outstanding.keys().isdisjoint(gone):
            return
        for page in gone:
            domain.outstanding.pop(page, None)
            domain.families.pop(page, None)
            domain.carried.discard(page)
        for number, left in list(domain.windows.items()):
            left -= gone
            if not left:
                del domain.windows[number]
                remove_window(domain.name, number)
        domain.last_progress = now
        domain.fruitless = 0
        if domain.outstanding:
            self.request_more(domain)
            return
        del self.active[domain.name]
        self.wanting_more.drop(domain.name)
        rank = domain.priority if domain.has_more else domain.sitemap_priority
        if rank is not None and domain.name not in self._held_back:
            self.waiting.offer(domain.name, rank)

    def hold_back(self, name: str, until: float) -> None:
        """Nothing of this domain can be released before then."""
        self._held_back[name] = until

    def retry_held_back(self, name: str) -> None:
        """Something may have changed in a domain that was held back."""
        if self._held_back.pop(name, None) is None:
            return
        if (domain := self.active.get(name)) is not None:
            self.request_more(domain)
        else:
            self.waiting.offer(name, 0)

    def retry_due(self, now: float) -> None:
        for name in [name for name, until in self._held_back.items() if until <= now]:
            self.retry_held_back(name)

    def next_domain(self) -> str | None:
        """The domain to serve next; None if none can be served now.

        While all places are taken, only active domains are served: a new one gets its turn when one of them is done.
        """
        new, old = self.waiting.first(), self.wanting_more.first()
        # A domain that is left alone for a while takes no place: others never notice.
        has_place = len(self.active) - len(self.cooling & self.active.keys()) < self._most_active
        if new is not None and has_place and (old is None or new[0] <= old[0]):
            return new[1]
        if old is not None and (new is None or has_place or old[0] < new[0]):
            return old[1]
        return None

    def take_from_line(self, name: str) -> ActiveDomain | None:
        """Remove a domain from its line to serve it; None: it has no outstanding pages yet."""
        self.waiting.drop(name)
        self.wanting_more.drop(name)
        return self.active.get(name)
