"""PURE. The rows of the error summary: which errors are counted together, and their names for people."""

from __future__ import annotations

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
    "redirects": "Redirect Loops and Chains",
    "server-errors": "Server Errors (5xx)",
    "client-errors": "Refused by the Server (4xx)",
    "content-mismatch": "Not HTML",
    "too-large": "Too Large",
    "bad-answers": "Unreadable Answers",
    "traps": "Crawler Traps",
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
    "redirect-loop": "redirects",
    "redirect-limit": "redirects",
    "bad-redirect": "redirects",
    "bad-response": "bad-answers",
    "bad-encoding": "bad-answers",
    "content-mismatch": "content-mismatch",
    "too-large": "too-large",
    "rate-limited": "rate-limited",
}


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
