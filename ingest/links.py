"""The targets of a page's hrefs: pages by their numbers, and pages that are not known yet.

Most links of a page have been met before, on another page of its site or elsewhere, and the target of an href at an
address never changes. So it is remembered by page number, and a remembered link costs one dictionary lookup: nothing is
parsed, normalised or hashed again.

A visit whose hrefs have the print that the visit before it had leads to the same pages: those are in the map.

At most about `size` addresses are remembered, in two generations: when the young one is full, the old one is
dropped, between batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from crawler.model.urls import Address, Base, Link, LinkResolver, hash64
from ingest.memory import lookup
from ingest.memory.generations import Generations
from ingest.memory.page_index import PageIndex

_LONGEST = 2048  # characters: longer addresses are rare, and would make the cache's size a guess


class NewTarget:
    """A link to a page that was not known when the batch came in. `number` is set when the page is made."""

    __slots__ = ("link", "number")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.number = 0


class Targets(NamedTuple):
    """The numbers of known pages, each once, and new targets, in the order of their appearance."""

    numbers: list[int]
    new: list[NewTarget]


def without_fragments(hrefs: Sequence[str]) -> list[str]:
    """The same hrefs, each once, in the order of their first appearance; a fragment names no page.

    Results of earlier versions hold a page's table of contents as so many hrefs that differ in their fragments alone.
    """
    found = dict.fromkeys([_without_fragment(href) if "#" in href else href for href in hrefs])
    return list(found)


def _without_fragment(href: str) -> str:
    """Spaces before the fragment belong to the address, and would be stripped from its end: such an href stays."""
    address = href[: href.index("#")]
    return href if address and address[-1] <= " " else address


class LinkFinder:
    """`find_targets` for every page of a batch, `end_batch` after it."""

    def __init__(self, resolver: LinkResolver, index: PageIndex, size: int) -> None:
        self._resolver = resolver
        self._index = index
        self._memory: Generations[Address, int] = Generations(max(1, size // 2))  # 0: no page
        self._new: dict[Address, NewTarget] = {}  # of the batch
        self._base = "", Base("")  # the last one, by its URL

    def find_targets(self, base: str, hrefs: Sequence[str]) -> Targets:
        """The targets of these hrefs of a page at `base`. Hrefs that are no link to a page are left out."""
        if "#" in "".join(hrefs):
            hrefs = without_fragments(hrefs)
        numbers, new = self._resolve(base, hrefs)
        known = dict.fromkeys(numbers)
        known.pop(0, None)
        return Targets(list(known), list(new.values()))

    def print_of(self, base: str, hrefs: Sequence[str]) -> int:
        """The same for hrefs that lead to the same pages. Never 0."""
        return hash64(repr((self._resolver.rules, base, hrefs))) or 1

    def numbers_of(self, base: str, hrefs: Sequence[str]) -> list[int]:
        """The page of each of these hrefs; 0: it has none. All their targets must have been made pages."""
        numbers, new = self._resolve(base, [_without_fragment(href) if "#" in href else href for href in hrefs])
        for place, target in new.items():
            numbers[place] = target.number
        return numbers

    def _resolve(self, base: str, hrefs: Sequence[str]) -> tuple[list[int], dict[int, NewTarget]]:
        """The page of each of these hrefs, or 0, and the targets that are not known, by their places."""
        if lookup.compiled is None:
            return self._resolve_any(base, hrefs)
        numbers, new, left = lookup.compiled.resolve(
            *(hrefs, self._base_of(base).parts, self._memory.young, self._memory.old, self._new),
            *(self._resolver.sites, self._resolver.longest, _LONGEST, self._index.table, Link, NewTarget),
        )
        if left:
            others, more = self._resolve_any(base, [hrefs[place] for place in left])
            for place, number in zip(left, others, strict=True):
                numbers[place] = number
            if more:
                new |= {left[place]: target for place, target in more.items()}
                new = dict(sorted(new.items()))
        return numbers, new

    def _resolve_any(self, base: str, hrefs: Sequence[str]) -> tuple[list[int], dict[int, NewTarget]]:
        """The same in Python, for hrefs of any kind."""
        remembered = self._memory.young.get
        # An absolute href is its own address, and no other href is the same text.
        numbers = list(map(remembered, hrefs))
        new: dict[int, NewTarget] = {}
        if None in numbers:
            places = [place for place, number in enumerate(numbers) if number is None]
            addresses = self._base_of(base).addresses([hrefs[place] for place in places])
            for place, address, number in zip(places, addresses, map(remembered, addresses), strict=True):
                if number is None:
                    number = self._find(address)
                    if number is None:
                        new[place] = self._new[address]
                        number = 0
                numbers[place] = number
        return numbers, new  # type: ignore[return-value]  # there is no None among them any more

    def _base_of(self, url: str) -> Base:
        """The base of this page's hrefs, parsed once."""
        if url != self._base[0]:
            self._base = url, Base(url)
        return self._base[1]

    def _find(self, address: Address) -> int | None:
        """The page at this address; 0 if there can be none, None if it is not known: then it is a new target."""
        number = self._memory.recall(address)
        if number is not None or address in self._new:
            return number
        is_new = False
        if isinstance(address, str):
            hash_ = hash64(address)
            number = self._index.find_key(address, hash_)
            link = self._resolver.link_at(address, hash_) if not number else None
            is_new = number is None and link is not None and link.hash == hash_
        else:
            link = self._resolver.link_to(address)
        if link is not None:
            number = 0 if is_new else self._index.find(link)[0]
            if not number:
                self._new[address] = NewTarget(link)
                return None
        self._remember(address, number or 0)
        return number or 0

    def _remember(self, address: Address, number: int) -> None:
        length = len(address) if isinstance(address, str) else len(address[0]) + len(address[1])
        if length <= _LONGEST:
            self._memory.put(address, number)

    def end_batch(self) -> None:
        """Remember the pages that were made of the new targets, and drop addresses that are due."""
        for address, target in self._new.items():
            if target.number:
                self._remember(address, target.number)
        self._new = {}
        self._memory.age()
