"""Rows of the map, as queries return them."""

from __future__ import annotations

from typing import NamedTuple


class RunRow(NamedTuple):
    id: int
    started_at: str
    finished_at: str | None
    status: str


class DomainRow(NamedTuple):
    id: int
    domain: str
    klass: str
    run: int
    request_count: int
    rate_limited: int
    closed_reason: str | None
    closed_at_request: int | None
    robots_outcome: str | None
    crawl_delay: float | None
    lost_requests: int
    first_seen_run: int = 1


DOMAIN_COLUMNS = (  # of `domain_states`, as DomainRow has them
    "id, domain, class, run, coalesce(request_count, 0), coalesce(rate_limited, 0), closed_reason, closed_at_request,"
    " robots_outcome, crawl_delay, lost_requests, coalesce(first_seen_run, 1)"
)


class PageRow(NamedTuple):
    id: int
    url: str
    wire_url: str | None
    domain: str
    domain_id: int
    state: str
    title: str | None
    status_code: int | None
    content_type: str | None
    visited_at: str | None
    discovered_at: str
    discovered_run: int
    seen_run: int
    visited_run: int | None
    error_message: str | None
    retry_count: int
    depth: int | None
    redirect_to: int | None
    nofollow: int
    links_cut: int
    truncated: int
    validation: str | None
    rejection_reason: str | None
    page_type: str | None = None
    klass: str | None = None  # None: that of its domain


class SeedRow(NamedTuple):
    """A seed's page, and the last page of its redirects (the same page, if there are none)."""

    url: str
    end: str
    state: str
    error: str | None


class BrokenLink(NamedTuple):
    """One target (gone, unreachable or permanently redirected) that pages of one quality domain link to."""

    domain_id: int
    target: int
    pages: int
    examples: tuple[int, ...]
