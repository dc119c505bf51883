"""Raises and clears alerts while a crawl is under way: into the log, `status`, the dashboard, and hooks."""

from __future__ import annotations

import logging
from typing import Any

from crawler.hooks.delivery import HookSender
from crawler.model.settings import Config
from crawler.observe.alert_state import Alert, write_alerts
from crawler.observe.processes import Snapshot, observe
from crawler.resilience.alert_rules import AlertRules, Sample
from crawler.workspace.clock import now_text
from crawler.workspace.door import Workspace

log = logging.getLogger("sumi.supervisor")

EVERY = 10.0  # seconds


class AlertWatch:
    """`step` at every round of the supervisor, `finish` at its end."""

    def __init__(self, workspace: Workspace, hooks: HookSender) -> None:
        self._workspace = workspace
        self._hooks = hooks
        self._rules = AlertRules()
        self._raised: dict[str, Alert] = {}
        self._looked_at: float | None = None
        write_alerts(workspace, ())
        hooks.begin()  # what an earlier start could not send

    def step(self, now: float) -> None:
        if self._looked_at is not None and now - self._looked_at < EVERY:
            return
        self._looked_at = now
        self.judge(sample_of(observe(self._workspace), now))

    def judge(self, sample: Sample) -> None:
        self._rules.add(sample)
        holding = self._rules.holding()
        for name in [name for name in self._raised if name not in holding]:
            alert = self._raised.pop(name)
            log.warning("Alert cleared: %s (raised %s)", name, alert.since)
            self._tell("outage-over" if name == "network-outage" else "alert-cleared", alert)
        for name, words in holding.items():
            if name not in self._raised:
                alert = self._raised[name] = Alert(name, words, now_text())
                log.warning("Alert: %s: %s", name, words)
                self._tell("outage-begun" if name == "network-outage" else "alert-raised", alert)
            else:
                self._raised[name] = Alert(name, words, self._raised[name].since)
        write_alerts(self._workspace, self._raised.values())

    def use(self, config: Config) -> None:
        """The config was read again."""
        self._hooks.config = config

    def finish(self) -> None:
        """No crawl, no alerts."""
        write_alerts(self._workspace, ())
        self._hooks.finish()

    def _tell(self, event: str, alert: Alert) -> None:
        facts: dict[str, Any] = {"alert": alert.name, "words": alert.words, "since": alert.since}
        self._hooks.tell(event, facts)


def sample_of(snapshot: Snapshot, now: float) -> Sample:
    facts = snapshot.map_facts()
    figures = snapshot.figures()
    answers = facts.get("answers")
    return Sample(
        at=now,
        answers={name: int(count) for name, count in answers.items()} if isinstance(answers, dict) else {},
        pages=figures["pages"],
        waiting=figures["waiting"],
        backlog=int(facts.get("backlog") or 0),
        silent={
            stage.name: stage.age
            for stage in snapshot.stages
            if stage.is_running and not stage.is_starting and stage.age is not None
        },
        is_held=bool(snapshot.pause_flags) or snapshot.network.is_waiting,
        network_out=snapshot.network.since if snapshot.network.is_waiting else "",
    )
