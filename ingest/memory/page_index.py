"""Every page of the map in a few bytes, so that a link finds its target without asking the database.

A link needs its target's number, its domain, and whether it brings the target nearer to a quality entry. The index
holds a hash to find the page by, the number of its domain, the number of its reach (few reaches serve many pages), its
standing, and how it enters a run: some 30 bytes a page, in arrays. A lookup costs memory accesses alone, however large
the map is. Rows are read only of pages that change.

Invariants:
- it agrees with the database after the next commit; pages that the store has loaded may be newer until then;
- reach number 0 means nothing is known: the page has no followed path, or there was no room for its reach. Its row
  has the answer;
- a page that is not in this run yet keeps the reach that its row has, from an earlier run;
- a page that does not enter a run by its row has the reach number of its row;
- a page is identified by its key's 64-bit hash and its domain, so no site's URLs can be mistaken for another's.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from operator import itemgetter

from crawler.model.states import PageState
from crawler.model.urls import Link, hash64
from ingest.memory import lookup
from ingest.rules.depth import NOWHERE, Distances

# Standings. A link to one of the first three always changes something, to the others only if it brings them nearer.
UNSEEN = 0  # not in this run yet
BLACKLISTED = 1
STUBBED = 2
QUEUED = 3
VISITED = 4
OTHER = 5  # the effect of a shorter path depends on the whole row

# What decides the state of a page that enters a run.
BY_ROW = 0  # more than is said here: its row is read
BY_DEPTH = 1  # its depth: it was too far away to be visited, and is so again unless a shorter path leads there
FIXED = 2  # nothing: it is listed or out of scope, however near it is (both were never visited)

REACHES = 200_000  # kept at most; with that many the table of reaches has some 40 MB
_FIRST_SLOTS = 1 << 12
_FULL = 0.7  # of the slots: above that, probing gets long

# To look an enum's member up by its name, or in a set, costs as much as a function call.
_DISCOVERED, _DEPTH_EXCEEDED = PageState.DISCOVERED, PageState.DEPTH_EXCEEDED
_BLACKLISTED, _STUBBED = PageState.BLACKLISTED, PageState.STUBBED
_STANDINGS = {PageState.QUEUED: QUEUED, PageState.STUBBED: STUBBED, PageState.BLACKLISTED: BLACKLISTED}


def standing_of(state: PageState, is_visited: bool, is_linked: bool = True) -> int:
    """The standing of a page that this run has seen, from its state, whether this run visited it, and whether a link
    leads there: the first link to a waiting page changes its row.
    """
    if is_visited:
        return VISITED
    standing = _STANDINGS.get(state, OTHER)
    return standing if is_linked or standing != QUEUED else OTHER


def entry_of(state: PageState, error: str | None, is_visited: bool, is_linked: bool) -> int:
    """How a page in this state enters the next run. `is_visited`: by any run. `is_linked`: by any page."""
    if is_visited or not is_linked:
        return BY_ROW
    if state is _DISCOVERED:
        return BY_DEPTH if error is None else FIXED  # the error is the rule that puts it out of scope
    if state is _DEPTH_EXCEEDED:
        return BY_DEPTH
    return FIXED if state is _BLACKLISTED or state is _STUBBED else BY_ROW


class PageIndex:
    """Arrays by page number (`hashes`, `domains`, `reaches`, `standings`, `entries`, `unlinked`), and a hash table into
    them.
    """

    def __init__(self, distances: Distances) -> None:
        self._distances = distances
        self.parse_reach = distances.parse
        self.hashes = array("q", [0])
        self.domains = array("I", [0])
        self.reaches = array("I", [0])  # numbers into `values`
        self.standings = bytearray([OTHER])
        self.has_unseen = False  # False in a first run: it has seen every page
        self.entries = bytearray([BY_ROW])
        self.unlinked = bytearray([0])  # 1: known by a sitemap or the like, and no link leads there yet
        self.has_unlinked = False
        self.values: list[int] = [NOWHERE]  # reaches by their number
        self._value_numbers: dict[int, int] = {NOWHERE: 0}
        self._is_crowded = False
        self.domain_names: list[str] = [""]
        self.domain_numbers: dict[str, int] = {}
        self._slots = array("I", bytes(4 * _FIRST_SLOTS))
        self._mask = _FIRST_SLOTS - 1

    def __len__(self) -> int:
        """The number of known pages; they are numbered from 1."""
        return len(self.hashes) - 1

    # -- loading -------------------------------------------------------------------------------------

    def extend(
        self,
        hashes: Iterable[int],
        domains: Iterable[int],
        standings: Iterable[int],
        reaches: Iterable[int],
        unlinked: Iterable[int] = (),
        entries: Iterable[int] = (),
    ) -> None:
        """Add the pages that follow by number, column by column. `finish_loading` makes them findable."""
        self.hashes.extend(hashes)
        self.domains.extend(domains)
        self.standings.extend(standings)
        self.reaches.extend(reaches)
        for column, values in ((self.unlinked, unlinked), (self.entries, entries)):
            column.extend(values)
            column.extend(bytes(len(self.hashes) - len(column)))

    def finish_loading(self) -> None:
        self.has_unlinked = 1 in self.unlinked
        self.has_unseen = UNSEEN in self.standings
        self._rehash()

    def begin_run(self) -> None:
        """Mark every page as not seen: a new run begins."""
        self.standings = bytearray([OTHER]) + bytearray(len(self))
        self.has_unseen = len(self) > 0
        self._is_crowded = False

    # -- pages ---------------------------------------------------------------------------------------

    def find(self, link: Link) -> tuple[int, int]:
        """(number, hash) of the page that a link leads to; (0, the hash to add it with) if it is not known.

        Where two keys share a hash, the second is stored under its next one.
        """
        hash_, probe = link.hash, 0
        while True:
            number = self._slots[self._slot(hash_)]
            if not number or self.domain_names[self.domains[number]] == link.domain:
                return number, hash_
            probe += 1
            hash_ = hash64(link.key, probe)

    def find_key(self, text: str, hash_: int) -> int | None:
        """The page whose key is this text (with its hash); 0: unknown without parsing, None: there is no such page.

        For addresses that are not parsed yet: normalising a key changes nothing, so a text that is a key is normal.
        Keys with a port are not recognised.
        """
        number = self._slots[self._slot(hash_)]
        if not number:
            return None
        return number if text.startswith(self.domain_names[self.domains[number]] + "/", 8) else 0

    @property
    def table(self) -> tuple[array[int], array[int], array[int], list[str]]:
        """For the compiled look-up: slots, hashes, domains, and the domains' names. Nothing may be added meanwhile."""
        return self._slots, self.hashes, self.domains, self.domain_names

    def _slot(self, hash_: int) -> int:
        """The slot of this hash, or the free slot for it."""
        if lookup.compiled is not None:
            return lookup.compiled.slot(self._slots, self.hashes, hash_)  # type: ignore[no-any-return]
        slots, mask, hashes = self._slots, self._mask, self.hashes
        at = hash_ & mask
        while (number := slots[at]) and hashes[number] != hash_:
            at = (at + 1) & mask
        return at

    def add(self, hash_: int, domain: int) -> int:
        """Add a page; returns its number."""
        number = len(self.hashes)
        self.hashes.append(hash_)
        self.domains.append(domain)
        self.reaches.append(0)
        self.standings.append(OTHER)
        self.entries.append(BY_ROW)
        self.unlinked.append(0)
        if number > _FULL * len(self._slots):
            self._rehash()
        else:
            self._slots[self._slot(hash_)] = number
        return number

    def _rehash(self) -> None:
        """Make room for at least half as many pages again."""
        size = len(self._slots)
        while len(self.hashes) > _FULL / 1.5 * size:
            size *= 2
        self._slots = slots = array("I", bytes(4 * size))
        self._mask = mask = size - 1
        if lookup.compiled is not None:
            lookup.compiled.fill(slots, self.hashes)
            return
        for number, hash_ in enumerate(self.hashes):
            at = hash_ & mask
            while slots[at]:
                at = (at + 1) & mask
            slots[at] = number  # number 0 is no page: its slot counts as free

    def set_linked(self, number: int, is_linked: bool) -> None:
        """Whether a link leads to this page, or the crawl starts there."""
        self.unlinked[number] = not is_linked
        self.has_unlinked = self.has_unlinked or not is_linked

    def unlinked_among(self, numbers: Sequence[int]) -> list[int]:
        """Those of these pages that no link has led to yet."""
        if not self.has_unlinked or not any(flags := picked(self.unlinked, numbers)):
            return []
        return [number for number, flag in zip(numbers, flags, strict=True) if flag]

    # -- domains -------------------------------------------------------------------------------------

    def add_domain(self, number: int, name: str) -> None:
        while len(self.domain_names) <= number:
            self.domain_names.append("")
        self.domain_names[number] = name
        self.domain_numbers[name] = number

    # -- reaches -------------------------------------------------------------------------------------

    def reach_number(self, reach: int) -> int:
        """The number of this reach; 0 if there is no room for one more."""
        known = self._value_numbers.get(reach)
        if known is not None:
            return known
        if len(self.values) >= REACHES:
            return 0
        self._value_numbers[reach] = number = len(self.values)
        self.values.append(reach)
        return number

    def drop_unused_reaches(self) -> None:
        """Between commits: if there is no more room for reaches, release those that no page has any more."""
        if len(self.values) < REACHES or self._is_crowded:
            return
        used = sorted({0, *self.reaches})
        renumbered = array("I", bytes(4 * len(self.values)))
        for new, old in enumerate(used):
            renumbered[old] = new
        self.values = [self.values[old] for old in used]
        self._value_numbers = {value: number for number, value in enumerate(self.values)}
        self.reaches = array("I", [renumbered[old] for old in self.reaches])
        self._is_crowded = len(self.values) > REACHES // 2  # then trying again soon would gain nothing

    def pages_brought_nearer(self, numbers: Sequence[int], arriving: int) -> list[int]:
        """Those of these pages that a path with this reach may bring nearer to a quality entry."""
        guards, values = self._distances.guards, self.values
        reaches = picked(self.reaches, numbers)
        # Many pages share few reaches.
        open_ = {r for r in set(reaches) if not r or ((values[r] | guards) - arriving) & guards != guards}
        return [number for number, reach in zip(numbers, reaches, strict=True) if reach in open_] if open_ else []


def picked(column: Sequence[int], numbers: Sequence[int]) -> tuple[int, ...]:
    """A column's values for these pages. (Two thirds of the time of a loop.)"""
    if len(numbers) > 1:
        return itemgetter(*numbers)(column)  # type: ignore[no-any-return]
    return tuple([column[number] for number in numbers])
