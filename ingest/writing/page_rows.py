"""Rows of `pages` into memory."""

from __future__ import annotations

from typing import Any

from crawler.model.origins import Origin
from crawler.model.settings import TrapSettings
from crawler.model.states import PageState
from crawler.rules.page_rules import is_out_of_scope
from crawler.rules.traps import shape_error
from ingest.memory.map_rows import MapDomain, MapPage
from ingest.rules.depth import Distances

_QUEUED = PageState.QUEUED
_DOMAIN_ID = 4
_STATES: dict[str, PageState] = {
    state.value: state for state in PageState
}  # an enum's own look-up is ten times as slow
_ORIGINS: dict[str, Origin] = {origin.value: origin for origin in Origin}

PAGES = (  # by a list of ids
    "SELECT pages.id, url, url_hash, wire_url, domain_id, state, error_message, reach, depth, seen_run, visited_run,"
    " redirect_to, family, discovered_run, origin, page_type, links_print"
    " FROM json_each(?) AS wanted CROSS JOIN pages ON pages.id = wanted.value"
)


def domain_of_row(row: tuple[Any, ...]) -> int:
    """The number of a row's domain."""
    return int(row[_DOMAIN_ID])


def page_of_row(
    row: tuple[Any, ...], domain: MapDomain, traps: TrapSettings, distances: Distances, *, by_level: bool
) -> MapPage:
    """The page of a row of `PAGES`, as it is stored."""
    number, key, hash_, wire, _, state, error, reach, depth, seen, visited, redirect, family, first, *more = row
    origin, page_type, links_print = more
    page = MapPage(number, key, hash_, wire, domain, first, "")
    page.state = page.stored_state = _STATES.get(state) or PageState(state)
    page.error = error
    page.reach = page.stored_reach = distances.parse(reach)
    page.depth = depth
    page.seen_run = seen
    page.visited_run = page.stored_visited_run = visited
    page.redirect_to = page.stored_redirect = redirect
    page.family = family
    page.page_type = page_type or ""
    page.links_print = links_print or 0
    page.origin = page.stored_origin = _ORIGINS.get(origin) or Origin(origin)
    if page.state is _QUEUED:
        page.stored_priority = page.priority(by_level=by_level)
    if is_out_of_scope(error):
        page.trap = error
    else:
        page.trap = shape_error(key, traps) if not domain.is_listed else None
    if visited is not None and visited == seen:
        if redirect is not None:
            page.visited = PageState.PROCESSED
            page.redirect_error = error if page.state is PageState.FAILED else None
        else:
            page.visited, page.visit_error = page.state, error
    return page
