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

from crawler.model.urls import Address, Base, Link, LinkResolver, hash64
from ingest.map_rows import Generations
from ingest.page_index import Register

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

    def __init__(self, resolver: LinkResolver, register: Register, size: int) -> None:
        self._resolver = resolver
        self._register = register
        self._memory: Generations[Address, int] = Generations(max(1, size // 2))  # 0: no page
        self._leads: dict[Address, Lead] = {}  # of the batch

    def follow(self, base: str, hrefs: Sequence[str]) -> Ways:
        """Where these hrefs of a page at `base` lead. What is no link to a page is left out."""
        remembered = self._memory.young.get
        # An absolute href is its own address, and no other href is anybody's.
        numbers = list(map(remembered, hrefs))
        leads: list[Lead] = []
        if None in numbers:
            places = [place for place, number in enumerate(numbers) if number is None]
            addresses = Base(base).addresses([hrefs[place] for place in places])
            for place, address, number in zip(places, addresses, map(remembered, addresses), strict=True):
                if number is None:
                    number = self._find(address)
                    if number is None:
                        leads.append(self._leads[address])
                        number = 0
                numbers[place] = number
        known = dict.fromkeys(numbers)
        known.pop(0, None)
        return Ways(list(known), leads)  # type: ignore[arg-type]  # there is no None among them any more

    def _find(self, address: Address) -> int | None:
        """The page at this address; 0 if there can be none, None if it is not known: then there is a lead."""
        number = self._memory.recall(address)
        if number is not None or address in self._leads:
            return number
        is_new = False
        if isinstance(address, str):
            hash_ = hash64(address)
            number = self._register.known(address, hash_)
            link = self._resolver.link_at(address, hash_) if not number else None
            is_new = number is None and link is not None and link.hash == hash_
        else:
            link = self._resolver.link_to(address)
        if link is not None:
            number = 0 if is_new else self._register.place(link)[0]
            if not number:
                self._leads[address] = Lead(link)
                return None
        self._remember(address, number or 0)
        return number or 0

    def _remember(self, address: Address, number: int) -> None:
        length = len(address) if isinstance(address, str) else len(address[0]) + len(address[1])
        if length <= _LONGEST:
            self._memory.put(address, number)

    def settle(self) -> None:
        """The batch is done with: remember what its leads have become, and forget what is due."""
        for address, lead in self._leads.items():
            if lead.number:
                self._remember(address, lead.number)
        self._leads = {}
        self._memory.age()
