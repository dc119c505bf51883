"""Domains whose circuit breaker is open: their jobs are released and wait.

They take no place among the active domains. When nothing else is left to do, a cooldown of up to `breaker-last-wait` is
waited for; other domains are closed, by a recorded decision, so that a run does not stand still for an hour.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from crawler.model.records import Closure, DomainEvent
from crawler.model.settings import Config
from crawler.schedule.decision_log import DecisionLog
from crawler.schedule.domain_queues import ActiveDomain, DomainQueues
from crawler.workspace.clock import now_text, read_clock
from crawler.workspace.door import GateError, Workspace

log = logging.getLogger("sumi.scheduler")

_LOOK_EVERY = 2.0  # seconds between looks at the breakers of all active domains


class CoolingDomains:
    """Looks at breakers in the gates. What it decides is recorded before it takes effect."""

    def __init__(self, config: Config, workspace: Workspace, decisions: DecisionLog) -> None:
        self._last_wait_ms = config.resilience.breaker_last_wait * 1000
        self._workspace = workspace
        self._decisions = decisions
        self._looked_at = 0.0
        self._closed: set[str] = set()  # recorded by this process; the map has not applied all of it yet

    def look(self, queues: DomainQueues, quiet: Iterable[ActiveDomain]) -> None:
        """Note which domains are cooling. One that is not quiet is at work."""
        queues.cooling = {domain.name for domain in quiet if self._cooldown_ms(domain.name) is not None}

    def are_all_that_is_left(self, queues: DomainQueues) -> bool:
        """Has every domain that is left a cooldown too long to wait for? Asked now and then only."""
        now = time.monotonic()
        if queues.has_waiting or now - self._looked_at < _LOOK_EVERY:
            return False
        self._looked_at = now
        cooldowns = (self._cooldown_ms(name) for name in queues.active if name not in self._closed)
        return all(ms is not None and ms > self._last_wait_ms for ms in cooldowns)

    def close_domains(self, queues: DomainQueues, run: int) -> None:
        """Close all active domains for this run."""
        for name in queues.active.keys() - self._closed:
            words = "its circuit breaker is open, and nothing else is left to do"
            closure = Closure("breaker-open", self._record_sent(name))
            self._decisions.record(DomainEvent(run, name, now_text(), "closed", detail=words, closes=closure))
            self._closed.add(name)
            log.warning("%s: closed for this run: %s", name, words)

    def forget(self, name: str) -> None:
        """A person had the domain reset."""
        self._closed.discard(name)

    def _cooldown_ms(self, name: str) -> int | None:
        """The cooldown of a domain whose breaker is open now; None: it is not."""
        try:
            gate = self._workspace.gate(name, read_clock)
        except GateError:
            return None
        try:
            breaker = gate.read().breaker
            return breaker.cooldown_ms if breaker.is_open and breaker.due_ns > time.monotonic_ns() else None
        finally:
            gate.close()

    def _record_sent(self, name: str) -> int:
        gate = self._workspace.gate(name, read_clock)
        try:
            return gate.read().sent
        finally:
            gate.close()
