"""The open files of a fetcher: the domains and idle connections that fit what the system allows."""

from __future__ import annotations

import logging
import resource
from dataclasses import dataclass

from crawler.model.settings import Config

log = logging.getLogger("sumi.fetcher")

WANTED = 8192
_FOR_ITSELF = 64  # logs, bells, pipes, threads that write bookmarks, look-ups, and some to spare
_A_REQUEST = 3  # its slot, its connection, and the gate of another domain that a robots.txt redirects to
_A_DOMAIN = 3  # its lease, its gate, and its jobs while they are read
_FEWEST_DOMAINS = 4


@dataclass(frozen=True, slots=True)
class FileBudget:
    """The domains and idle connections of one fetcher. `limit`: the files that it may have open."""

    limit: int
    domains: int
    idle_connections: int


def fit_open_files(config: Config, limit: int) -> FileBudget:
    """Share the files: first the requests on the wire, then domains, then idle connections.

    Claims and gates need their files; a connection that is not kept open is only made again. So idle connections get at
    most a third, and what domains leave.
    """
    free = max(limit - _FOR_ITSELF - _A_REQUEST * config.crawler.max_concurrent_pages_open, 0)
    idle = min(config.network.max_idle_connections, free // 3)
    domains = min(config.crawler.max_active_domains, max((free - idle) // _A_DOMAIN, _FEWEST_DOMAINS))
    return FileBudget(limit, domains, idle)


def allow_many_files() -> int:
    """Raise this process's limit of open files as far as the system allows; returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(soft, wanted)


def warn_of_few_files(config: Config, budget: FileBudget) -> None:
    """Say that fewer domains are visited at a time than the config allows, and what to do about it."""
    if budget.domains < config.crawler.max_active_domains:
        log.warning(
            "The system allows %d open files a process, so each fetcher works on at most %d domains at a time instead "
            "of %d; raise the limit (ulimit -n) for more",
            budget.limit,
            budget.domains,
            config.crawler.max_active_domains,
        )
