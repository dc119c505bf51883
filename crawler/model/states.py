"""PURE. The states of a page, and the transitions between them."""

from __future__ import annotations

from enum import StrEnum


class PageState(StrEnum):
    DISCOVERED = "discovered"
    QUEUED = "queued"
    FETCHING = "fetching"
    PROCESSED = "processed"
    BLACKLISTED = "blacklisted"
    STUBBED = "stubbed"
    DEAD_LINK = "dead_link"
    UNREACHABLE = "unreachable"
    RATE_LIMITED = "rate_limited"
    FAILED = "failed"
    DEPTH_EXCEEDED = "depth_exceeded"
    REQUEST_LIMIT_HIT = "request_limit_hit"
    CONTENT_MISMATCH = "content_mismatch"


class ForbiddenTransition(Exception):
    """A state change that the transition table does not allow."""

    def __init__(self, before: PageState, after: PageState, url: str = "") -> None:
        super().__init__(f"a page may not go from {before} to {after}" + (f": {url}" if url else ""))
        self.before, self.after, self.url = before, after, url


_S = PageState
# The states in which a visit can end.
VISITED = frozenset(
    {
        _S.PROCESSED,
        _S.DEAD_LINK,
        _S.UNREACHABLE,
        _S.RATE_LIMITED,
        _S.FAILED,
        _S.REQUEST_LIMIT_HIT,
        _S.CONTENT_MISMATCH,
    }
)
ERRORS = frozenset({_S.DEAD_LINK, _S.UNREACHABLE, _S.RATE_LIMITED, _S.FAILED, _S.CONTENT_MISMATCH})
LISTED = frozenset({_S.BLACKLISTED, _S.STUBBED})
# A finished crawl holds none of these.
WAITING = frozenset({_S.QUEUED, _S.FETCHING})

_WITHIN_A_RUN: dict[PageState, frozenset[PageState]] = {
    # A result may be read before the page that links here, so a discovered page can reach its final state at once.
    _S.DISCOVERED: frozenset({_S.QUEUED, _S.DEPTH_EXCEEDED}) | LISTED | VISITED,
    # A shorter path is found later.
    _S.DEPTH_EXCEEDED: frozenset({_S.QUEUED}) | VISITED,
    _S.QUEUED: frozenset({_S.FETCHING, _S.DEPTH_EXCEEDED}) | VISITED,
    _S.FETCHING: VISITED | frozenset({_S.QUEUED}),
    # The result of its visit arrives after the event that closed the rest of its domain, or a person resets the domain.
    _S.RATE_LIMITED: VISITED | frozenset({_S.QUEUED}),
    _S.REQUEST_LIMIT_HIT: VISITED,
    # … or a link leads to a page that only too many redirects in a row had led to.
    _S.FAILED: VISITED | frozenset({_S.QUEUED}),
    # The ingest sees later that its redirect is part of a loop or of too long a chain.
    _S.PROCESSED: frozenset({_S.FAILED}),
    _S.BLACKLISTED: frozenset(),
    _S.STUBBED: frozenset(),
    _S.DEAD_LINK: frozenset(),
    _S.UNREACHABLE: frozenset(),
    _S.CONTENT_MISMATCH: frozenset(),
}


def check_transition(before: PageState, after: PageState, *, new_run: bool = False, url: str = "") -> None:
    """Raise ForbiddenTransition unless a page may go from `before` to `after`.

    A new run starts from every page again, so any state may become what a newly found page may become.
    """
    if before is after:
        return
    allowed = _WITHIN_A_RUN[_S.DISCOVERED] if new_run else _WITHIN_A_RUN[before]
    if after not in allowed and not (new_run and after is _S.DISCOVERED):
        raise ForbiddenTransition(before, after, url)


def slug_of(error_message: str | None) -> str | None:
    """The stable first word of an error message (`timeout`, `http-503`), which reports group by."""
    if not error_message:
        return None
    return error_message.split(":", 1)[0].split(" ", 1)[0]
