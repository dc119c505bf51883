"""PURE. Requests and hours of a run, at least and at most, from budgets and delays."""

from __future__ import annotations

from crawler.model.settings import Config
from crawler.rules.budgets import requests_a_page


def estimate_lines(config: Config) -> list[str]:
    """What can be said before the first request: about the quality list, and about one discovered domain."""
    crawler, limits = config.crawler, config.limits
    delay, domains = crawler.minimum_time_on_page / 1000, len(config.quality)
    each = requests_a_page(crawler)
    # At least robots.txt and the seeds. Domains do not wait for each other, so the longest one counts.
    least = sum(1 + len(entry.seeds) * each for entry in config.quality)
    shortest = max((len(entry.seeds) * each for entry in config.quality), default=0) * delay
    most = crawler.max_domain_requests * domains
    at_once = most * delay / max(1, min(crawler.max_concurrent_pages_open, domains))
    longest = max((crawler.max_domain_requests - 1) * delay, at_once)
    is_wild = any(entry.domain.startswith("*.") for entry in config.quality)
    lines = [
        f"quality list: {least:,} to {most:,} requests, {words(shortest)} to {words(longest)}"
        + (", more where a wildcard is many domains" if is_wild else "")
    ]
    if crawler.max_depth:
        other = crawler.budget(is_quality=False)
        lines.append(
            f"each discovered domain: up to {other:,} requests, {words((other - 1) * delay)};"
            " their number is not known before"
        )
    if limits.max_duration:
        lines.append(f"[limits] max-duration ends it after {words(limits.max_duration)}")
    if limits.max_pages:
        lines.append(f"[limits] max-pages ends it after {limits.max_pages:,} pages")
    return lines


def words(seconds: float) -> str:
    """`40 s`, `12 min`, `3.5 h`, `2.1 days`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86_400:.1f} days"
