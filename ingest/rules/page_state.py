"""PURE. The state of a page, decided by one function for every order of arrival.

The state of a page is a function of the lists, its depths, its visit's result, the recorded redirects and the
recorded closures; the state it had before plays no part. That makes the map independent of the order in which results
come in: `decide_state` is called again whenever one of those things changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from crawler.database.format import UNLINKED_PRIORITY
from crawler.model.records import FamilyEvent
from crawler.model.settings import CapRule, TrapSettings
from crawler.model.states import PageState, slug_of
from crawler.rules.lists import DomainClass
from crawler.rules.page_priority import PageKind, rank_of
from crawler.rules.page_rules import is_cap, is_cap_in_force, is_out_of_scope
from ingest.rules.depth import MAX_REDIRECTS

# Looking up an enum's member by its name costs as much as a function call, and this is done for every page.
_QUALITY = DomainClass.QUALITY
_DISCOVERED, _DEPTH_EXCEEDED = PageState.DISCOVERED, PageState.DEPTH_EXCEEDED
_QUEUED, _FAILED = PageState.QUEUED, PageState.FAILED

# The state of pages of listed domains, whatever else is known of them.
LISTED_AS = {DomainClass.BLACKLISTED: PageState.BLACKLISTED, DomainClass.STUBBED: PageState.STUBBED}

# The state of waiting pages when their domain closes. With several reasons, the first of these counts.
CLOSED_AS: dict[str, tuple[PageState, str]] = {
    "rate-limited": (PageState.RATE_LIMITED, "rate-limited: the domain answered 429 and was left alone"),
    "request-limit": (PageState.REQUEST_LIMIT_HIT, "request-limit: the domain's request budget ran out"),
    "crawl-delay": (
        PageState.FAILED,
        "crawl-delay-too-long: robots.txt asks for a longer pause than the config allows",
    ),
    "breaker-open": (
        PageState.FAILED,
        "breaker-open: visits of the domain failed in a row, and it had not recovered when the run ended",
    ),
    "cleared": (PageState.FAILED, "cleared: a person had the waiting pages taken off the frontier"),
}
_PRECEDENCE = list(CLOSED_AS)
CLOSING_ERRORS = tuple(error for _, error in CLOSED_AS.values())


TOO_MANY_REDIRECTS = f"redirect-limit: more than {MAX_REDIRECTS} redirects in a row"


def is_open(
    klass: DomainClass, nearest: int | None, trap: str | None, is_past_redirect_limit: bool, max_depth: int
) -> bool:
    """Do the rules want this page visited? (Then its visit's result counts, and not before.)"""
    is_near = nearest is not None and nearest <= max_depth
    return not klass.is_listed and is_near and trap is None and not is_past_redirect_limit


def decide_state(
    klass: DomainClass,
    nearest: int | None,
    trap: str | None,
    is_past_redirect_limit: bool,
    visited: PageState | None,
    visit_error: str | None,
    redirect_error: str | None,
    family_error: str | None,
    closed: str | None,
    max_depth: int,
) -> tuple[PageState, str | None]:
    """The page's state and its error message.

    `nearest`: its least depth over all origins; None: no followed path leads here. `trap`: the fault in the shape of
    its URL, or the rule that puts it out of scope: it is only recorded then, however near it is.
    `is_past_redirect_limit`: only too many redirects in a row lead here. `visited`, `visit_error`: the outcome of this
    run's visit. `redirect_error`: the recorded redirects loop, or are too many. `family_error`: its family of similar
    URLs, or its unit of a cap, is closed. `closed`: the reason its domain is closed.
    """
    if klass in LISTED_AS:
        return LISTED_AS[klass], None
    if trap is not None and is_out_of_scope(trap):
        return _DISCOVERED, trap
    if nearest is None:
        return _DISCOVERED, None
    if nearest > max_depth:
        return _DEPTH_EXCEEDED, None
    if trap is not None:
        return _FAILED, trap
    if is_past_redirect_limit:
        return _FAILED, TOO_MANY_REDIRECTS
    if visited is not None:
        if redirect_error is not None:
            return _FAILED, redirect_error
        return visited, visit_error
    if family_error is not None:
        return _FAILED, family_error
    if closed is not None:
        return CLOSED_AS[closed]
    return _QUEUED, None


def far_state(nearest: int | None) -> PageState:
    """The state of a page that is too far away to be visited, as `decide_state` has it whatever else is known."""
    return _DISCOVERED if nearest is None else _DEPTH_EXCEEDED


def priority(
    depth: int,
    klass: DomainClass,
    is_linked: bool = True,
    kind: PageKind = PageKind.CONTENT,
    *,
    by_level: bool = False,
) -> int:
    """Lower goes first: by depth, at equal depth quality domains before others, then by kind; pages without a link
    after all that have one. A sitemap may name more pages than a site links to: those wait. `by_level`: [crawler]
    order = "priority".
    """
    rank = rank_of(kind, depth, is_quality=klass is _QUALITY, by_level=by_level)
    return rank if is_linked else rank + UNLINKED_PRIORITY


def is_family_in_force(event: FamilyEvent, traps: TrapSettings, caps: Sequence[CapRule] = ()) -> bool:
    """Would these limits have closed the family too?"""
    if is_cap(event):
        return is_cap_in_force(event, caps)
    limits = {
        "trap-query-variants": traps.max_query_variants,
        "trap-similar-paths": traps.max_similar_paths,
        "trap-subdomains": traps.max_subdomains,
    }
    limit = limits.get(slug_of(event.error) or "", event.limit)
    return 0 < limit <= event.limit


def stronger(one: str | None, other: str) -> str:
    """The one of two reasons for closing a domain that counts, whichever came first."""
    if one is None:
        return other
    return min(one, other, key=_PRECEDENCE.index)


def redirect_error(chain: list[int], is_loop: bool, ends_too_far: bool = False) -> str | None:
    """The fault in a chain of recorded redirects (the page ids passed, first to last); None: there is none.

    `ends_too_far`: its last page is not visited, because too many redirects lead there.
    """
    if is_loop:
        return "redirect-loop: its redirects lead back to a page they passed"
    return TOO_MANY_REDIRECTS if ends_too_far or len(chain) - 1 > MAX_REDIRECTS else None
