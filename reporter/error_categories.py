"""PURE. The rows of the error summary: which errors are counted together, and their names for people."""

from __future__ import annotations

from collections.abc import Mapping

from crawler.model.states import PageState, slug_of

# Name for machines → words for people, in the order of the report.
ERROR_WORDS: dict[str, str] = {
    "dead-links": "Dead Links (404)",
    "gone": "Gone (410)",
    "rate-limited": "Rate Limited (429)",
    "connection-refused": "Connection Refused",
    "timeout": "Timeout",
    "dns": "Name Not Found (DNS)",
    "tls": "No Trusted TLS",
    "connection-lost": "Connection Lost",
    "address-blocked": "Address Not Allowed",
    "robots-denied": "Robots Denied",
    "robots-unreachable": "Robots Unreachable",
    "crawl-delay": "Crawl-Delay Too Long",
    "breaker-open": "Left Alone After Failures (Circuit Breaker)",
    "cleared": "Taken Off the Frontier",
    "redirects": "Redirect Loops and Chains",
    "server-errors": "Server Errors (5xx)",
    "client-errors": "Refused by the Server (4xx)",
    "content-mismatch": "Not HTML",
    "too-large": "Too Large",
    "too-costly": "Too Slow or Costly to Read",
    "bad-answers": "Unreadable Answers",
    "traps": "Crawler Traps",
    "caps": "Left Out by a Cap",
    "never-answered": "Not Visited (No Page There Could Be Crawled)",
    "local-shortage": "Shortage on This Machine",
    "other": "Other",
}
ALWAYS_SHOWN = ("dead-links", "rate-limited", "connection-refused", "timeout", "robots-denied", "other")

_BY_SLUG = {
    "connection-refused": "connection-refused",
    "timeout": "timeout",
    "dns": "dns",
    "dns-temporary": "dns",
    "tls": "tls",
    "connection-reset": "connection-lost",
    "connection-failed": "connection-lost",
    "early-close": "connection-lost",
    "address-blocked": "address-blocked",
    "robots-denied": "robots-denied",
    "robots-unreachable": "robots-unreachable",
    "crawl-delay-too-long": "crawl-delay",
    "breaker-open": "breaker-open",
    "cleared": "cleared",
    "redirect-loop": "redirects",
    "redirect-limit": "redirects",
    "bad-redirect": "redirects",
    "bad-response": "bad-answers",
    "bad-encoding": "bad-answers",
    "content-mismatch": "content-mismatch",
    "too-large": "too-large",
    "too-slow": "too-costly",
    "too-costly": "too-costly",
    "local-shortage": "local-shortage",
    "rate-limited": "rate-limited",
    "cap-reached": "caps",
}


# Slug → the reason in words, for the line of a domain, a seed or a link.
_REASONS = {
    "http-404": "answered 404",
    "http-410": "answered 410",
    "connection-refused": "connection refused",
    "timeout": "timed out",
    "dns": "name not found (DNS)",
    "dns-temporary": "name server did not answer (DNS)",
    "tls": "no trusted TLS certificate",
    "connection-reset": "connection lost",
    "connection-failed": "no connection",
    "early-close": "connection lost",
    "address-blocked": "address not allowed",
    "robots-denied": "denied by robots.txt",
    "robots-unreachable": "robots.txt could not be read",
    "robots-deferred": "robots.txt could not be read",
    "crawl-delay-too-long": "robots.txt asks for too long a pause",
    "breaker-open": "left alone after failures in a row",
    "cleared": "taken off the frontier by a person",
    "redirect-loop": "redirects in a loop",
    "redirect-limit": "too many redirects",
    "bad-redirect": "redirects to no usable URL",
    "bad-response": "unreadable answer",
    "bad-encoding": "unreadable answer",
    "content-mismatch": "not HTML",
    "too-large": "too large",
    "rate-limited": "answered 429",
    "request-limit": "request budget used up",
    "out-of-scope": "out of scope",
    "cap-reached": "left out by a [[cap]]",
}
_STATE_REASONS = {
    PageState.DISCOVERED: "only nofollow links",
    PageState.QUEUED: "waiting",
    PageState.FETCHING: "waiting",
    PageState.BLACKLISTED: "blacklisted",
    PageState.STUBBED: "stubbed",
    PageState.DEPTH_EXCEEDED: "beyond max-depth",
    PageState.REQUEST_LIMIT_HIT: "request budget used up",
    PageState.RATE_LIMITED: "answered 429",
    PageState.DEAD_LINK: "answered 404",
    PageState.CONTENT_MISMATCH: "not HTML",
}


def reason_words(state: str, error: str | None) -> str:
    """The reason why a page in this state, with this error message (or its slug), was not crawled."""
    slug = slug_of(error) or ""
    if slug in _REASONS:
        return _REASONS[slug]
    if slug.startswith("http-"):
        return f"answered {slug.removeprefix('http-')}"
    if slug.startswith("trap"):
        return "left out by [traps]"
    return _STATE_REASONS.get(PageState(state)) or slug or str(state).replace("_", " ")


def reasons_line(reasons: Mapping[str, int]) -> str:
    """`connection refused ×4, answered 404`: the most frequent reason first."""
    ranked = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(words + (f" ×{count:,}" if count > 1 else "") for words, count in ranked)


def category_of(state: str, error: str | None) -> str:
    """The row of the error summary that counts a page of this state with this error message (or its slug)."""
    slug = slug_of(error)
    if state == PageState.DEAD_LINK:
        return "gone" if slug == "http-410" else "dead-links"
    if state == PageState.RATE_LIMITED:
        return "rate-limited"
    if slug is not None:
        if slug in _BY_SLUG:
            return _BY_SLUG[slug]
        for start, name in (("trap", "traps"), ("http-5", "server-errors"), ("http-4", "client-errors")):
            if slug.startswith(start):
                return name
    return "content-mismatch" if state == PageState.CONTENT_MISMATCH else "other"
