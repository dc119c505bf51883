"""PURE. The class of a domain: blacklist, stub, quality, in this order; otherwise discovered.

Patterns are compared with the domains of keys, which have no `www.`: a pattern `www.example.com` means
`example.com`. `*.example.com` matches the bare domain and every subdomain.
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


class Verdict(NamedTuple):
    """A domain's class. `origins` are the indexes of all quality entries that contain it; `rule` decided."""

    klass: DomainClass
    origins: tuple[int, ...]
    rule: str | None


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
        self.classify = lru_cache(maxsize=_REMEMBERED)(self._classify)

    def _classify(self, domain: str) -> Verdict:
        for patterns, klass in (
            (self._blacklist, DomainClass.BLACKLISTED),
            (self._stub, DomainClass.STUBBED),
            (self._quality, DomainClass.QUALITY),
        ):
            found = patterns.all_matches(domain)
            if found:
                origins = found if klass is DomainClass.QUALITY else ()
                return Verdict(klass, origins, patterns.patterns[found[0]])
        return Verdict(DomainClass.DISCOVERED, (), None)


class EntryNotes:
    """The notes and tags of list entries, by the domains that the entries decide about."""

    def __init__(self, config: Config) -> None:
        self._classifier = Classifier(config)
        self._notes = {(note.list_name, note.domain): note for note in config.entry_notes}

    def of(self, domain: str) -> EntryNote | None:
        """What the curator says about this domain; None: nothing, or it is in no list."""
        verdict = self._classifier.classify(domain)
        return self._notes.get((LIST_NAMES.get(verdict.klass, ""), verdict.rule or ""))


__all__ = ["LIST_NAMES", "Classifier", "DomainClass", "EntryNotes", "PatternList", "Verdict", "matches"]
