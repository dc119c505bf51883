"""Every page of the map in a few bytes: what a link needs to know of where it leads, without asking the database.

A link needs its target's number, its domain and whether it brings the target nearer to anything. That is a hash to
find the page by, the number of its domain, the number of its reach (few reaches stand for many pages) and its
standing: some 30 bytes a page, in arrays, and no more than memory accesses however large the map is. Only of pages
that change is the row ever read.

Invariants:
- it says what the database will say after the next commit; pages in the store's hands may know better for a moment;
- reach number 0 says nothing: the page has no followed way, or there was no room to keep its reach. Ask its row;
- a page is known by its key's 64-bit hash and its domain, so that no site's URLs can be taken for another's.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Sequence
from operator import itemgetter

from crawler.model.states import PageState
from crawler.model.urls import Link, hash64
from ingest.rules.depth import NOWHERE, Distances, parse_reach

# Standings. A link that leads to one of the first three changes something, to the others only if it brings news.
UNSEEN = 0  # not in this run yet
BLACKLISTED = 1
STUBBED = 2
QUEUED = 3
VISITED = 4
OTHER = 5  # what a nearer way makes of it takes the whole page to say

REACHES = 200_000  # kept at most; with that many the table of reaches has some 40 MB
_FIRST_SLOTS = 1 << 12
_FULL = 0.7  # of the slots: beyond, runs of taken ones get long
_ROWS = 20_000

_STANDINGS = {PageState.QUEUED: QUEUED, PageState.STUBBED: STUBBED, PageState.BLACKLISTED: BLACKLISTED}
_LOAD = f"""
SELECT url_hash, reach, domain_id << 3 |
       CASE WHEN seen_run <> ?1 THEN {UNSEEN} WHEN visited_run = ?1 THEN {VISITED} WHEN state = 'queued' THEN {QUEUED}
            WHEN state = 'stubbed' THEN {STUBBED} WHEN state = 'blacklisted' THEN {BLACKLISTED} ELSE {OTHER} END
FROM pages ORDER BY id
"""  # few columns: each costs more than the reading of the row


def standing_of(state: PageState, is_visited: bool) -> int:
    """The standing of a page that this run has seen, in this state, by a visit of this run or without one."""
    return VISITED if is_visited else _STANDINGS.get(state, OTHER)


class Register:
    """Arrays over page numbers (`hashes`, `domains`, `reaches`, `standings`), and a hash table that leads to them."""

    def __init__(self, distances: Distances) -> None:
        self._distances = distances
        self.hashes = array("q", [0])
        self.domains = array("I", [0])
        self.reaches = array("I", [0])  # numbers into `values`
        self.standings = bytearray([OTHER])
        self.has_unseen = False  # can there be pages that this run has not seen yet? Not in the first one
        self.values: list[int] = [NOWHERE]  # reaches by their number
        self._value_numbers: dict[int, int] = {NOWHERE: 0}
        self._is_crowded = False
        self.domain_names: list[str] = [""]
        self.domain_numbers: dict[str, int] = {}
        self._slots = array("I", bytes(4 * _FIRST_SLOTS))
        self._mask = _FIRST_SLOTS - 1

    def __len__(self) -> int:
        """How many pages are known; they are numbered from 1."""
        return len(self.hashes) - 1

    # -- loading -------------------------------------------------------------------------------------

    def load(self, db: sqlite3.Connection, run: int) -> None:
        """Read the whole map in, as it stands in this run. Pages are numbered without a gap, so order tells."""
        for number, name in db.execute("SELECT id, domain FROM domain_states ORDER BY id"):
            self.add_domain(number, name)
        numbers: dict[bytes, int] = {}  # by the stored form, which saves parsing most of them
        rows = db.execute(_LOAD, (run,))
        while chunk := rows.fetchmany(_ROWS):
            hashes, stored, places = zip(*chunk, strict=True)
            for reach in set(stored) - numbers.keys():
                numbers[reach] = self.reach_number(parse_reach(reach))
            self.hashes.extend(hashes)
            self.domains.extend([place >> 3 for place in places])
            self.standings.extend([place & 7 for place in places])
            # What stands there from an earlier run is of no use in this one.
            self.reaches.extend([place & 7 and numbers[r] for place, r in zip(places, stored, strict=True)])
        self.has_unseen = UNSEEN in self.standings
        self._rehash()

    def begin_run(self) -> None:
        """A new run has seen nothing yet."""
        self.standings = bytearray([OTHER]) + bytearray(len(self))
        self.has_unseen = len(self) > 0
        self.reaches = array("I", bytes(4 * (len(self) + 1)))
        self.values = [NOWHERE]
        self._value_numbers = {NOWHERE: 0}
        self._is_crowded = False

    # -- pages ---------------------------------------------------------------------------------------

    def place(self, link: Link) -> tuple[int, int]:
        """(number, hash) of the page that a link leads to; (0, the hash it is to get) if it is not known.

        Where two texts share a hash, the second stands under its next one.
        """
        hash_, probe = link.hash, 0
        while True:
            number = self._slots[self._slot(hash_)]
            if not number or self.domain_names[self.domains[number]] == link.domain:
                return number, hash_
            probe += 1
            hash_ = hash64(link.key, probe)

    def known(self, address: str, hash_: int) -> int | None:
        """The page that has this very text (with its hash) for a key; 0 if that cannot be said, None if there is none.

        For addresses that nobody has parsed yet: normalising a key changes nothing, so what is a key is normal. Keys
        with a port are not looked for.
        """
        number = self._slots[self._slot(hash_)]
        if not number:
            return None
        return number if address.startswith(self.domain_names[self.domains[number]] + "/", 8) else 0

    def _slot(self, hash_: int) -> int:
        """Where this hash stands, or would."""
        slots, mask, hashes = self._slots, self._mask, self.hashes
        at = hash_ & mask
        while (number := slots[at]) and hashes[number] != hash_:
            at = (at + 1) & mask
        return at

    def add(self, hash_: int, domain: int) -> int:
        """A new page, and its number."""
        number = len(self.hashes)
        self.hashes.append(hash_)
        self.domains.append(domain)
        self.reaches.append(0)
        self.standings.append(OTHER)
        if number > _FULL * len(self._slots):
            self._rehash()
        else:
            self._slots[self._slot(hash_)] = number
        return number

    def _rehash(self) -> None:
        """Make room, for half as many pages again at least."""
        size = len(self._slots)
        while len(self.hashes) > _FULL / 1.5 * size:
            size *= 2
        self._slots = slots = array("I", bytes(4 * size))
        self._mask = mask = size - 1
        for number, hash_ in enumerate(self.hashes):
            at = hash_ & mask
            while slots[at]:
                at = (at + 1) & mask
            slots[at] = number  # the first is 0, which is no page and takes no slot

    # -- domains -------------------------------------------------------------------------------------

    def add_domain(self, number: int, name: str) -> None:
        while len(self.domain_names) <= number:
            self.domain_names.append("")
        self.domain_names[number] = name
        self.domain_numbers[name] = number

    # -- reaches -------------------------------------------------------------------------------------

    def reach_number(self, reach: int) -> int:
        """The number that stands for this reach; 0 if there is no room for one more."""
        known = self._value_numbers.get(reach)
        if known is not None:
            return known
        if len(self.values) >= REACHES:
            return 0
        self._value_numbers[reach] = number = len(self.values)
        self.values.append(reach)
        return number

    def settle_reaches(self) -> None:
        """Between commits: if there is no more room for reaches, let go of those that no page has any more."""
        if len(self.values) < REACHES or self._is_crowded:
            return
        used = sorted({0, *self.reaches})
        renumbered = array("I", bytes(4 * len(self.values)))
        for new, old in enumerate(used):
            renumbered[old] = new
        self.values = [self.values[old] for old in used]
        self._value_numbers = {value: number for number, value in enumerate(self.values)}
        self.reaches = array("I", [renumbered[old] for old in self.reaches])
        self._is_crowded = len(self.values) > REACHES // 2  # then it would soon be tried again, and in vain

    def news(self, numbers: Sequence[int], arriving: int) -> list[int]:
        """Those of these pages that a way with this reach may bring nearer to something."""
        guards, values = self._distances.guards, self.values
        reaches = picked(self.reaches, numbers)
        # Many pages share few reaches.
        open_ = {r for r in set(reaches) if not r or ((values[r] | guards) - arriving) & guards != guards}
        return [number for number, reach in zip(numbers, reaches, strict=True) if reach in open_] if open_ else []


def picked(column: Sequence[int], numbers: Sequence[int]) -> tuple[int, ...]:
    """What a column says of these pages. (Two thirds of what a loop takes.)"""
    if len(numbers) > 1:
        return itemgetter(*numbers)(column)  # type: ignore[no-any-return]
    return tuple([column[number] for number in numbers])
