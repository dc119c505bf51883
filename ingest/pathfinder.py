"""Where the hrefs of a page lead: to pages by their numbers, and to pages that are not known yet.

Most links of a page have been met before, on another page of its site or elsewhere, and what an href at an address
leads to never changes. So it is remembered by page number, and a link that is remembered costs a look into a
dictionary: nothing is parsed, normalised or hashed again.

At most about `size` addresses are remembered, in two generations: when the young one is full, the old one is
forgotten, which happens between batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from crawler.urls import Address, Base, Link, Resolver
from ingest.register import Register

_LONGEST = 2048  # characters: longer addresses are rare, and would make the memory's size a guess


class Lead:
    """A link to a page that was not known when the batch came in. Whoever makes the page sets `number`."""

    __slots__ = ("link", "number")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.number = 0


class Ways(NamedTuple):
    """Where a page leads: the numbers of known pages, each once, and leads, in the order of their appearance."""

    numbers: list[int]
    leads: list[Lead]


class Pathfinder:
    """`follow` for every page of a batch, `settle` when the batch is done with."""

    def __init__(self, resolver: Resolver, register: Register, size: int) -> None:
        self._resolver = resolver
        self._register = register
        self._room = max(1, size // 2)
        self._young: dict[Address, int] = {}  # 0: no page
        self._old: dict[Address, int] = {}
        self._leads: dict[Address, Lead] = {}  # of the batch

    def follow(self, base: str, hrefs: Sequence[str]) -> Ways:
        """Where these hrefs of a page at `base` lead. What is no link to a page is left out."""
        remembered = self._young.get
        # An absolute href is its own address, and no other href is anybody's.
        numbers = list(map(remembered, hrefs))
        leads: list[Lead] = []
        if None in numbers:
            places = [place for place, number in enumerate(numbers) if number is None]
            addresses = Base(base).addresses([hrefs[place] for place in places])
            for place, address, number in zip(places, addresses, map(remembered, addresses), strict=True):
                if number is None:
                    number = self._find(address)
                    if not number and (lead := self._leads.get(address)):
                        leads.append(lead)
                numbers[place] = number
        known = dict.fromkeys(numbers)
        known.pop(0, None)
        return Ways(list(known), leads)  # type: ignore[arg-type]  # there is no None among them any more

    def _find(self, address: Address) -> int:
        """The page at this address; 0 if there can be none, or if it is not known and there is a lead instead."""
        number = self._old.get(address)
        if number is None:
            if address in self._leads:
                return 0
            link = self._resolver.link_to(address)
            number = 0 if link is None else self._register.place(link)[0]
            if link is not None and not number:
                self._leads[address] = Lead(link)
                return 0
        if _length(address) <= _LONGEST:
            self._young[address] = number
        return number

    def settle(self) -> None:
        """The batch is done with: remember what its leads have become, and forget what is due."""
        for address, lead in self._leads.items():
            if lead.number and _length(address) <= _LONGEST:
                self._young[address] = lead.number
        self._leads = {}
        if len(self._young) > self._room:
            self._young, self._old = {}, self._young


def _length(address: Address) -> int:
    return len(address) if isinstance(address, str) else len(address[0]) + len(address[1])
