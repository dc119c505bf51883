"""PURE. The work that is left in a run, and how long it may take: from waiting pages, budgets and delays.

At least: the pages that wait now, each domain at its own pace, as many domains at a time as the config allows. At most:
new pages use up the budgets of these domains. New domains can make it longer. The time that requests take is not known
beforehand and not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from crawler.model.settings import CrawlerSettings
from crawler.rules.budgets import requests_a_page


@dataclass(frozen=True, slots=True)
class DomainLeft:
    """A domain with waiting pages. `requests` were sent to it in this run; `crawl_delay` in seconds, as it asks for."""

    waiting: int
    requests: int
    is_quality: bool
    crawl_delay: float | None = None


@dataclass(frozen=True, slots=True)
class WorkLeft:
    """`least` and `most` in seconds."""

    pages: int
    domains: int
    least: float
    most: float
    may_find_domains: bool


def work_left(domains: Iterable[DomainLeft], settings: CrawlerSettings) -> WorkLeft:
    """The work that is left in these domains."""
    each = requests_a_page(settings)
    pages = number = 0
    longest = [0.0, 0.0]  # of one domain: least, most
    together = [0.0, 0.0]
    for domain in domains:
        pages += domain.waiting
        number += 1
        delay = max(settings.minimum_time_on_page / 1000, domain.crawl_delay or 0.0)
        budget = max(0, settings.budget(is_quality=domain.is_quality) - domain.requests)
        for index, requests in enumerate((min(domain.waiting * each, budget), budget)):
            longest[index] = max(longest[index], requests * delay)
            together[index] += requests * delay
    at_a_time = max(1, min(settings.max_active_domains, number))
    least, most = (max(one, both / at_a_time) for one, both in zip(longest, together, strict=True))
    return WorkLeft(pages, number, least, most, settings.max_depth > 0)
