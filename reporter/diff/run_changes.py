"""PURE. The changes from one run to another, as records. Counts are exact; each list holds the first of its kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

LISTED = 100_000  # changes of one kind that are listed; the rest are counted


class Kind(StrEnum):
    """The thing that changed, and how. A page is *crawled* if its state is `processed`."""

    DOMAIN_NEW = "domain-new"
    DOMAIN_VANISHED = "domain-vanished"
    DOMAIN_RETURNED = "domain-returned"
    DOMAIN_CLASS = "domain-class"
    DOMAIN_REACH = "domain-reach"  # its least depth
    PAGE_NEW = "page-new"
    PAGE_VANISHED = "page-vanished"
    PAGE_RETURNED = "page-returned"
    PAGE_DIED = "page-died"  # crawled, then an error
    PAGE_CAME_BACK = "page-came-back"  # an error, then crawled
    PAGE_MOVED = "page-moved"  # redirects permanently, to another place than before
    PAGE_TITLE = "page-title"
    LINK_NEW = "link-new"
    LINK_VANISHED = "link-vanished"
    LINK_RETURNED = "link-returned"


@dataclass(frozen=True, slots=True)
class Change:
    """One change. `name` is a domain or URL, `target` the other end of a link."""

    kind: Kind
    name: str
    target: str | None = None
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class ComparedRun:
    number: int
    started: str
    finished: str | None
    status: str


@dataclass(slots=True)
class Changes:
    """All changes between two runs. `rules` are the settings that differ.

    `cut_short` are domains whose budget ran out in one of the runs: neither looked at all of them, so what is new or
    vanished there may only not have been visited.
    """

    before: ComparedRun
    after: ComparedRun
    rules: tuple[str, ...] = ()
    cut_short: tuple[str, ...] = ()
    counts: Counter[Kind] = field(default_factory=Counter)
    lists: dict[Kind, list[Change]] = field(default_factory=dict)

    def add(self, change: Change) -> None:
        self.counts[change.kind] += 1
        listed = self.lists.setdefault(change.kind, [])
        if len(listed) < LISTED:
            listed.append(change)

    def sort(self) -> None:
        """By name: the rows were compared in the order of their hashes."""
        for listed in self.lists.values():
            listed.sort(key=lambda change: (change.name, change.target or ""))
