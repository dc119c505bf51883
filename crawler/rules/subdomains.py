"""PURE. Endless subdomains: the hosts under one registered domain are a family, too.

A server can answer for every host below its domain and link from each to new ones, so a limit of pages a domain never
comes into play. The registered domain (`example.co.uk` of `a.b.example.co.uk`) is the part that somebody had to
register, by the public suffix list. The list comes with its package and is never fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from publicsuffixlist import PublicSuffixList

from crawler.model.settings import Config
from crawler.model.shown_text import counted
from crawler.model.urls import domain_of
from crawler.rules.traps import Family

_ADDRESS = re.compile(r"\[.*\]|[0-9.]+")
_public_suffixes = lru_cache(maxsize=1)(PublicSuffixList)  # a tenth of a second: only where it is needed


@lru_cache(maxsize=20_000)
def registered_domain(host: str) -> str | None:
    """The registered domain of a host; None for addresses and for public suffixes themselves."""
    if _ADDRESS.fullmatch(host):
        return None
    found: str | None = _public_suffixes().privatesuffix(host)
    return found


def is_public_suffix(name: str) -> bool:
    """Is this a name below which anybody can register a domain: `com`, `co.uk`, `github.io`?"""
    return registered_domain(name) is None and not _ADDRESS.fullmatch(name)


def subdomains_of(base: str, limit: int) -> Family:
    """The family of all hosts under a registered domain."""
    error = f"trap-subdomains: {counted(limit, 'host')} under {base} were visited in this run"
    return Family(f"*.{base}", limit, error)


def is_subdomain_family(domain: str, family: str) -> bool:
    """Is this the name of such a family? (All others have a slash.)"""
    return family == f"*.{domain}"


def is_under(base: str, host: str) -> bool:
    """Does this registered domain contain the host?"""
    return (host == base or host.endswith("." + base)) and registered_domain(host) == base


def named_hosts(config: Config) -> frozenset[str]:
    """The hosts that the config names: they are visited whatever the limit is."""
    exact = [entry.domain for entry in config.quality if not entry.domain.startswith("*.")]
    seeds: Iterable[str] = (seed for entry in config.quality for seed in entry.seeds)
    return frozenset([*exact, *map(domain_of, seeds)])


__all__ = ["is_public_suffix", "is_subdomain_family", "is_under", "named_hosts", "registered_domain", "subdomains_of"]
