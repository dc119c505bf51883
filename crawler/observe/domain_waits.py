"""Domains with released jobs, and what each of them waits for, as the gates and flags show it.

reason: `delay` (minimum-time-on-page), `crawl-delay` (robots.txt asks for it), `pause` (a Retry-After, or a retry),
`robots` (robots.txt could not be read; no page is asked for before it is),
`breaker` (its circuit breaker is open), `turn` (it may be asked; every slot is taken), `on-the-wire` (a request is
out), `outage` (the crawler's own network), `paused` (a flag file), or the reason of a closure (`rate-limited`,
`request-limit`, …).
"""

from __future__ import annotations

from typing import NamedTuple

from crawler.model.settings import Config
from crawler.observe.processes import read_heartbeats
from crawler.pace.gate_record import GateRecord
from crawler.resilience import network_state
from crawler.workspace.clock import boot_id, read_clock
from crawler.workspace.door import GateError, Workspace

ON_THE_WIRE = "on-the-wire"
_WORDS = {
    "delay": "the pause between two requests (minimum-time-on-page)",
    "crawl-delay": "the pause that its robots.txt asks for (Crawl-delay)",
    "pause": "a pause before the next try",
    "robots": "its robots.txt, which could not be read yet",
    "breaker": "its circuit breaker is open: it failed several times in a row",
    "turn": "its turn: as many requests are out as may be at one time",
    ON_THE_WIRE: "a request is under way",
    "outage": "the crawler's own network, which is out or being checked",
    "paused": "the crawl is paused",
    "rate-limited": "it answered 429 and is left alone for this run",
    "request-limit": "its budget of requests is used up",
    "cleared": "a person had the frontier cleared",
    "breaker-open": "its circuit breaker was open when nothing else was left to do",
}


class DomainWait(NamedTuple):
    """`seconds` until it may be asked; None: nobody knows, or it is asked now."""

    domain: str
    reason: str
    words: str
    seconds: float | None


def domain_waits(workspace: Workspace, config: Config) -> list[DomainWait]:
    """Every domain with jobs that are not done, in no order. Costs a file read for each."""
    if workspace.is_flagged("pause") or workspace.is_flagged("pause", "fetcher"):
        all_wait = "paused"
    elif _is_network_in_doubt(workspace):
        all_wait = "outage"
    else:
        all_wait = ""
    found: list[DomainWait] = []
    for domain in workspace.domains_with_jobs():
        record = _record(workspace, domain)
        if record is None:
            continue
        reason, seconds = reason_of(record, config, read_clock().mono_ns)
        if all_wait and reason != ON_THE_WIRE:
            reason, seconds = all_wait, None
        found.append(DomainWait(domain, reason, reason_words(reason), seconds))
    return found


def _is_network_in_doubt(workspace: Workspace) -> bool:
    """Is it out, or do the fetchers hold their requests until somebody knows?"""
    if network_state.read(workspace.document(network_state.DOCUMENT), boot_id()).is_waiting:
        return True
    beats = read_heartbeats(workspace)
    return any(name.startswith("fetcher-") and beat.get("doing") == network_state.HOLDS for name, beat in beats.items())


def reason_words(reason: str) -> str:
    """A reason for people. (That of a closure may be `crawl-delay` too.)"""
    return _WORDS.get(reason, reason.replace("-", " "))


def reason_of(record: GateRecord, config: Config, now_ns: int) -> tuple[str, float | None]:
    """The reason by a domain's gate, and the seconds until its next request."""
    if record.is_in_flight:
        return ON_THE_WIRE, None
    if record.closes is not None:
        return record.closes.reason, None
    if record.breaker.is_open:
        return "breaker", max(0.0, min(record.breaker.due_ns - now_ns, record.breaker.cooldown_ms * 1_000_000) / 1e9)
    if record.ended is None or record.ended.boot != boot_id():
        return "turn", None
    since_ms = max(0, now_ns - record.ended.mono_ns) / 1e6  # below 0: an engine's clock was set back
    least = config.crawler.minimum_time_on_page
    waits = {"pause": record.pause_ms, "crawl-delay": record.crawl_delay_ms, "delay": least}
    reason = max(waits, key=lambda name: (waits[name], name == "delay"))
    left = (waits[reason] - since_ms) / 1000
    if reason == "pause" and record.retry_counts.robots_tries:
        reason = "robots"
    return (reason, left) if left > 0 else ("turn", None)


def _record(workspace: Workspace, domain: str) -> GateRecord | None:
    try:
        gate = workspace.gate(domain, read_clock)
    except (GateError, OSError):
        return None
    try:
        return gate.read()
    except OSError:
        return None
    finally:
        gate.close()
