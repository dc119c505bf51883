"""PURE. The class of a domain: blacklist, stub, quality, in this order; otherwise discovered.

Patterns are compared with the domains of keys, which have no `www.`: a pattern `www.example.com` means
`example.com`. `*.example.com` matches the bare domain and every subdomain.

A quality entry with a path is a part of a site. Its domain is a quality domain; a page is in the entry if its path is
the entry's or below it, and a page of such a domain that is in no entry has the class `discovered`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from crawler.model.settings import Config, EntryNote
from crawler.model.urls import without_www

_REMEMBERED = 100_000  # domains


class DomainClass(StrEnum):
    QUALITY = "quality"
    BLACKLISTED = "blacklisted"
    STUBBED = "stubbed"
    DISCOVERED = "discovered"

    @property
    def is_listed(self) -> bool:
        """Is the domain on a list of domains that are never visited?"""
        return self is DomainClass.BLACKLISTED or self is DomainClass.STUBBED


# The list of the config that gives a domain its class.
LIST_NAMES = {DomainClass.QUALITY: "quality", DomainClass.BLACKLISTED: "blacklist", DomainClass.STUBBED: "stub"}


class Part(NamedTuple):
    """A quality entry that is a part of its domain: its path, and its index in the list."""

    path: str
    origin: int


class Verdict(NamedTuple):
    """A domain's class. `origins` are the indexes of all quality entries that contain the whole domain, `parts` those
    of a part of it; `rule` decided.
    """

    klass: DomainClass
    origins: tuple[int, ...]
    rule: str | None
    parts: tuple[Part, ...] = ()

    def origins_of(self, key: str) -> tuple[int, ...]:
        """The indexes of all quality entries that contain this page of the domain."""
        if not self.parts:
            return self.origins
        return tuple(sorted((*self.origins, *(part.origin for part in self.parts if is_below(part.path, key)))))

    def class_of(self, key: str) -> DomainClass:
        """The class of this page of the domain."""
        is_outside = bool(self.parts) and not self.origins_of(key)
        return DomainClass.DISCOVERED if is_outside else self.klass


def is_below(path: str, key: str) -> bool:
    """Is a key's path this one, or below it? `/~lab` holds `/~lab`, `/~lab/x` and `/~lab?x=1`, not `/~labor`."""
    start = key.find("/", 8)
    return key.startswith(path, start) and key[start + len(path) : start + len(path) + 1] in ("", "/", "?")


def matches(pattern: str, domain: str) -> bool:
    """Does a pattern contain a domain? The wildcard `*.base` contains `base` and all its subdomains."""
    domain = without_www(domain)
    if pattern.startswith("*."):
        base = pattern[2:]
        return domain == without_www(base) or domain.endswith("." + base)
    return domain == without_www(pattern)


class PatternList:
    """A list of patterns that finds its matches by looking up a domain's suffixes, however long it is."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = tuple(patterns)
        self._exact: dict[str, list[int]] = {}
        self._below: dict[str, list[int]] = {}
        for index, pattern in enumerate(self.patterns):
            base = pattern.removeprefix("*.")
            self._exact.setdefault(without_www(base), []).append(index)
            if base != pattern:
                self._below.setdefault(base, []).append(index)

    def all_matches(self, domain: str) -> tuple[int, ...]:
        """Indexes of every pattern that contains the domain, in the order of the list."""
        domain = without_www(domain)
        found = set(self._exact.get(domain, ()))
        if self._below:
            dot = domain.find(".")
            while dot >= 0:
                found.update(self._below.get(domain[dot + 1 :], ()))
                dot = domain.find(".", dot + 1)
        return tuple(sorted(found))


class Classifier:
    """Classes by one config. First match wins: blacklist, stub, quality, otherwise discovered."""

    def __init__(self, config: Config) -> None:
        self._blacklist = PatternList(config.blacklist)
        self._stub = PatternList(config.stub)
        self._quality = PatternList(entry.domain for entry in config.quality)
        self._entries = config.quality
        self.classify = lru_cache(maxsize=_REMEMBERED)(self._classify)

    def _classify(self, domain: str) -> Verdict:
        for patterns, klass in (
            (self._blacklist, DomainClass.BLACKLISTED),
            (self._stub, DomainClass.STUBBED),
            (self._quality, DomainClass.QUALITY),
        ):
            found = patterns.all_matches(domain)
            if found and klass is DomainClass.QUALITY:
                return self._quality_verdict(found)
            if found:
                return Verdict(klass, (), patterns.patterns[found[0]])
        return Verdict(DomainClass.DISCOVERED, (), None)

    def _quality_verdict(self, found: tuple[int, ...]) -> Verdict:
        """`rule`: the first entry for the whole domain, if there is one, or else the first part of it."""
        origins = tuple(index for index in found if not self._entries[index].path)
        parts = tuple(Part(self._entries[index].path, index) for index in found if self._entries[index].path)
        first = origins[0] if origins else parts[0].origin
        return Verdict(DomainClass.QUALITY, origins, self._entries[first].name, parts)


class EntryNotes:
    """The notes and tags of list entries, by the domains that the entries decide about."""

    def __init__(self, config: Config) -> None:
        self._classifier = Classifier(config)
        self._notes = {(note.list_name, note.domain): note for note in config.entry_notes}

    def of(self, domain: str) -> EntryNote | None:
        """What the curator says about this domain; None: nothing, or it is in no list."""
        verdict = self._classifier.classify(domain)
        return self._notes.get((LIST_NAMES.get(verdict.klass, ""), verdict.rule or ""))


__all__ = [
    "LIST_NAMES",
    "Classifier",
    "DomainClass",
    "EntryNotes",
    "Part",
    "PatternList",
    "Verdict",
    "is_below",
    "matches",
]
