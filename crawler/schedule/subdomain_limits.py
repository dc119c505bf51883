"""The limit of hosts under one registered domain: which hosts were begun in this run."""

from __future__ import annotations

from crawler.database.frontier import Frontier
from crawler.model.settings import Config
from crawler.model.urls import hash64
from crawler.rules.subdomains import is_under, named_hosts, registered_domain, subdomains_of
from crawler.rules.traps import Family


class SubdomainLimits:
    """Counts the hosts that had jobs in this run, by their registered domain: first from the map, then in memory.

    Memory holds the names of hosts that were visited, which the limit bounds for each registered domain.
    """

    def __init__(self, frontier: Frontier, config: Config) -> None:
        self._frontier = frontier
        self._limit = config.traps.max_subdomains
        self._named = named_hosts(config)
        self._begun: dict[str, set[str]] | None = None
        self._closed: set[str] = set()

    def note(self, host: str, run: int) -> None:
        """The host has jobs."""
        base = self._counted(host)
        if base is not None:
            self._hosts(run).setdefault(base, set()).add(host)

    def may_begin(self, host: str, run: int) -> bool:
        """May jobs of this host be released?"""
        base = self._counted(host)
        if base is None or host in self._hosts(run).get(base, ()):
            return True
        return not self._is_closed(base, run) and len(self._hosts(run).get(base, ())) < self._limit

    def to_close(self, host: str, run: int) -> tuple[str, Family, tuple[str, ...]] | None:
        """The registered domain of a host that may not begin, its family, and the hosts that are spared.

        None: it is closed already.
        """
        base = self._counted(host)
        if base is None or self._is_closed(base, run):
            return None
        named = {name for name in self._named if is_under(base, name)}
        return base, subdomains_of(base, self._limit), tuple(sorted(named | self._hosts(run).get(base, set())))

    def close(self, base: str) -> None:
        """The family's event is recorded."""
        self._closed.add(base)

    def forget(self) -> None:
        """The map was replaced, or another run begins: count anew."""
        self._begun = None
        self._closed.clear()

    def _counted(self, host: str) -> str | None:
        return registered_domain(host) if self._limit and host not in self._named else None

    def _is_closed(self, base: str, run: int) -> bool:
        if base in self._closed:
            return True
        if self._frontier.is_family_closed(hash64(f"{base}\n*.{base}"), run):
            self._closed.add(base)
        return base in self._closed

    def _hosts(self, run: int) -> dict[str, set[str]]:
        if self._begun is None:
            self._begun = {}
            for host in self._frontier.asked_domains(run):
                if (base := self._counted(host)) is not None:
                    self._begun.setdefault(base, set()).add(host)
        return self._begun
