"""The changes that would make a page crawled: one or two sentences, from all that is known of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from crawler.model.settings import Config
from crawler.model.states import PageState, slug_of
from crawler.model.validity import NEEDS_RENDERING, Validity
from crawler.net.addresses import blocked_literal
from crawler.rules.lists import Classifier

if TYPE_CHECKING:
    from reporter.explain.facts import Explanation

_TRAP_KEYS = {
    "trap-url-length": "max-url-length",
    "trap-path-depth": "max-path-depth",
    "trap-path-repeats": "max-path-repeats",
    "trap-query-variants": "max-query-variants",
    "trap-similar-paths": "max-similar-paths",
    "trap-subdomains": "max-subdomains",
}
_BY_SLUG = {
    "robots-unreachable": 'Its robots.txt must become readable, or [crawler] robots-unreachable must be "allow".',
    "robots-deferred": "Its robots.txt must become readable; the domain waits for that.",
    "crawl-delay-too-long": "Its robots.txt must ask for a shorter pause, or [crawler] max-crawl-delay must be raised.",
    "breaker-open": "The domain must answer again; see `explain` of the domain. The next run tries again.",
    "cleared": "A person had the frontier cleared in this run. The next run tries again.",
    "timeout": "The server must answer within the timeouts of [network]; the next run tries again.",
    "dns": "Its host name must exist; the next run tries again.",
    "dns-temporary": "The name server must answer for its host name; the next run tries again.",
    "tls": "The server must show a trusted certificate, or [network] ca-bundle must name its authority.",
    "connection-refused": "The server must accept https connections; the next run tries again.",
    "connection-reset": "The server must not drop the connection; the next run tries again.",
    "connection-failed": "The server must be reachable; the next run tries again.",
    "address-blocked": "Its address is not public: [network] allow-private-addresses or [network.resolve] lets it in.",
    "too-large": "[network] max-body-size must be raised.",
    "too-slow": "Reading it stopped a fetcher twice; [network] processing-timeout must be raised.",
    "too-costly": "It takes more work to read than any honest page; the next run tries again.",
    "local-shortage": "This machine must have more memory or open files left; the next run tries again.",
    "redirect-loop": "The site must end its loop of redirects.",
    "redirect-limit": "The site must shorten its chain of redirects (10 are followed).",
    "bad-redirect": "The site must redirect to a URL that can be requested.",
    "content-mismatch": "Nothing: it is not an HTML page.",
    "out-of-scope": "The rule that puts it out of scope must be changed: `sumi-ripple check-url` tries a new one.",
    "cap-reached": "max-pages of the [[cap]] must be raised; the next run counts anew.",
}


def advise(config: Config, facts: Explanation) -> list[str]:
    """Sentences for people, the most useful first."""
    if facts.klass in ("blacklisted", "stubbed"):
        return _listed(config, facts)
    if not facts.is_known:
        return _unseen(config, facts)
    if facts.class_in_map != facts.klass:
        return ["Its state is decided again under this config when the crawl goes on (or with `sumi-ripple replay`)."]
    lines = _decided(config, facts)
    if facts.last_run != facts.newest_run and facts.state != PageState.PROCESSED:
        lines.append(f"And a page of run {facts.newest_run} or later must link to it again.")
    return lines


def _listed(config: Config, facts: Explanation) -> list[str]:
    """The class that it would have without the entry that lists it."""
    others = replace(
        config,
        blacklist=tuple(each for each in config.blacklist if facts.klass != "blacklisted" or each != facts.rule),
        stub=tuple(each for each in config.stub if facts.klass != "stubbed" or each != facts.rule),
    )
    then = Classifier(others).classify(facts.domain)
    also = f', which is then caught by "{then.rule}"' if then.klass in ("blacklisted", "stubbed") else ""
    first = f'To be crawled, "{facts.rule}" must leave [[{facts.rule_list}]]: the domain would be {then.klass}{also}.'
    record = "Links to it are recorded; it is never requested."
    return [record, first]


def _unseen(config: Config, facts: Explanation) -> list[str]:
    if facts.scope:
        return ["It would be recorded and not requested: it is out of scope.", _BY_SLUG["out-of-scope"]]
    if facts.trap:
        return ["It would be recorded and not requested: its URL has the shape of a trap.", _trap(config, facts.trap)]
    if facts.robots.allowed is False:
        return [_denied(facts)]
    if facts.family_closed:
        return [
            f"It would be recorded and not requested in run {facts.newest_run}:"
            " the visit limit for similar URLs is reached.",
            _trap(config, facts.family_closed),
        ]
    if facts.klass == "quality":
        condition = "A page that is followed must link to it, or it must be a seed; then it is crawled, at depth 0."
    else:
        condition = (
            f"A page at depth {config.crawler.max_depth - 1} or less must link to it (max-depth is"
            f" {config.crawler.max_depth}); its depth is not known before that."
            if config.crawler.max_depth
            else "max-depth is 0, so only quality domains are crawled."
        )
    lines = [condition]
    blocked = blocked_literal(config.network, facts.domain)
    if blocked:
        lines.append(f"Even then nothing would be sent ({blocked}): [network] allow-private-addresses lets it in.")
    elif facts.robots.outcome is None:
        lines.append("Its robots.txt would be requested first.")
    if facts.closed:
        lines.append(f"Its domain is closed for run {facts.newest_run} ({facts.closed}), so not before the next one.")
    return lines


def _decided(config: Config, facts: Explanation) -> list[str]:
    state, slug = facts.state, slug_of(facts.error) or ""
    if state == PageState.PROCESSED:
        if facts.redirect_to:
            return ["Nothing: it was visited, and it redirects. Its target is a page of its own."]
        if facts.rejection_reason:
            return [_rejected(facts)]
        return ["Nothing: it was crawled."]
    if state in (PageState.QUEUED, PageState.FETCHING):
        return ["Nothing: it waits for its turn in the frontier.", *_turn_words(config, facts)]
    if state == PageState.DEPTH_EXCEEDED:
        nearest = facts.depths[0].depth if facts.depths else config.crawler.max_depth + 1
        return [
            f"max-depth must be {nearest} or more (it is {config.crawler.max_depth}), or a nearer page must link to it."
        ]
    if state == PageState.DISCOVERED and slug in _BY_SLUG:
        return [_BY_SLUG[slug]]
    if state == PageState.DISCOVERED:
        return [_undecided(config, facts)]
    if state == PageState.DEAD_LINK:
        return ["The site must bring the page back; the next run that finds a link to it requests it again."]
    if state == PageState.RATE_LIMITED and slug == "http-429" and config.crawler.on_429 == "wait":
        return [
            "It answered 429 again after the pause that its site asked for; the next run tries again.",
            "A longer minimum-time-on-page may help.",
        ]
    if state == PageState.RATE_LIMITED:
        return [
            "Its domain answered 429 and is not visited any more in this run; the next run tries again.",
            'A longer minimum-time-on-page, or [crawler] on-429 = "wait", may help.',
        ]
    if state == PageState.REQUEST_LIMIT_HIT:
        return [f"{_budget_words(config, facts)}, or wait for a later run.", *_turn_words(config, facts)]
    if slug == "robots-denied":
        return [_denied(facts)]
    if slug.startswith("trap"):
        return [_trap(config, facts.error or "")]
    if slug in _BY_SLUG:
        return [_BY_SLUG[slug]]
    if state == PageState.CONTENT_MISMATCH:
        return [_BY_SLUG["content-mismatch"]]
    if slug.startswith("http-"):
        return ["The server must answer with the page; the next run that finds a link to it requests it again."]
    return ["The next run that finds a link to it tries again."]


def _undecided(config: Config, facts: Explanation) -> str:
    """Of a page that is known, and that no followed path leads to."""
    if facts.in_sitemap and config.discovery.elsewhere:
        return "A followed link must lead to a page of its host, within max-depth: only a sitemap names it so far."
    if facts.in_sitemap:
        return (
            "Only a sitemap names it, and it is in no quality domain: a followed link must lead here, or [discovery]"
            " elsewhere must be true and a page of its host within max-depth."
        )
    return (
        "A followed link must lead here: those known are on nofollow pages ([crawler] obey-nofollow = false), on"
        " rejected ones ([validation] follow-rejected = true), or on pages that have no depth themselves."
    )


def _budget_key(config: Config, facts: Explanation) -> str:
    has_own = (
        facts.klass != "quality"
        and not facts.is_outside_parts
        and config.crawler.discovered_domain_requests is not None
    )
    return "discovered-domain-requests" if has_own else "max-domain-requests"


def _budget_words(config: Config, facts: Explanation) -> str:
    budget = config.crawler.budget(is_quality=facts.klass == "quality" or facts.is_outside_parts)
    return f"{_budget_key(config, facts)} must be more than {budget:,}"


def _turn_words(config: Config, facts: Explanation) -> list[str]:
    return [facts.turn.words(_budget_key(config, facts))] if facts.turn else []


def _rejected(facts: Explanation) -> str:
    reason = slug_of(facts.rejection_reason) or ""
    if reason == NEEDS_RENDERING:
        return "It was visited, and shows nothing without its scripts, which are not run here."
    if facts.validation == Validity.HARD:
        return "It was visited, and answered with a barrier: the site must let the crawler in."
    return f'It was visited, and is no page. If it is one: [validation] ignore = ["{reason}"].'


def _denied(facts: Explanation) -> str:
    rule = f" (now: {facts.robots.rule})" if facts.robots.rule and facts.robots.allowed is False else ""
    return f"The site's robots.txt must allow it{rule}; nothing here overrides that."


def _trap(config: Config, error: str) -> str:
    key = _TRAP_KEYS.get(slug_of(error) or "")
    if key is None:
        return "The limits in [traps] would have to be raised."
    return f"[traps] {key} must be raised (it is {getattr(config.traps, key.replace('-', '_')):,}; 0 turns it off)."
