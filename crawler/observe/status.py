"""`sumi-ripple status`: a workspace in words, or as JSON in a documented format."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from crawler.config.last_used import last_used_database
from crawler.database.ingest_progress import PlannedVisits, closed_domains, open_breakers, planned_visits
from crawler.model.map_place import MapPlace
from crawler.model.shown_text import counted, domain_words, plain, size_words
from crawler.observe.alert_state import read_alerts
from crawler.observe.backlog import Backlog, read_backlog
from crawler.observe.left_words import left_facts, left_long
from crawler.observe.live_text import duration
from crawler.observe.processes import Snapshot, StageProcess, observe
from crawler.observe.wrapping import fitted
from crawler.workspace.door import Workspace

FORMAT = 1  # version of `as_json`
_SOME_CLOSED = 5
_FEW_FILES = 2048  # open files: fewer may not be enough for every domain that the config allows


class Status:
    """A snapshot, and what takes longer to read: the backlog and the closed domains.

    `is_uncut`: all of those are listed; `command` is the one that shows this status.
    """

    def __init__(
        self,
        workspace: Workspace,
        database: MapPlace | None = None,
        *,
        is_uncut: bool = False,
        command: str = "sumi-ripple status",
    ) -> None:
        database = database or last_used_database(workspace)
        self.snapshot: Snapshot = observe(workspace)
        self.backlog: Backlog = read_backlog(workspace, database)
        self._most_listed = None if is_uncut else _SOME_CLOSED
        self._command = command
        self.alerts = read_alerts(workspace)
        self.closed_count = 0
        self.closed: list[tuple[str, str]] = []
        self.planned: PlannedVisits | None = None
        self.breaker_count = 0
        self.breakers: list[tuple[str, str, str]] = []  # (domain, state, reason)
        if database is not None and self.snapshot.run is not None:
            run = self.snapshot.run.number
            self.planned = planned_visits(database, run, self.snapshot.at)
            self.breaker_count, self.breakers = open_breakers(database, run, is_uncut=is_uncut)
            self.closed_count, self.closed = closed_domains(database, run, is_uncut=is_uncut)

    def as_json(self) -> dict[str, Any]:
        """Version 1 of the format: members may be added, never removed or given another meaning."""
        snapshot = self.snapshot
        due = snapshot.next_due()
        return {
            "v": FORMAT,
            "kind": "status",
            "at": snapshot.at,
            "workspace": str(snapshot.workspace),
            "run": {"number": snapshot.run.number, "status": snapshot.run.status.value} if snapshot.run else None,
            "flags": list(snapshot.flags),
            "network": {
                "is_waiting": snapshot.network.is_waiting,
                "since": snapshot.network.since or None,
                "findings": list(snapshot.network.findings),
                "withheld": snapshot.total("fetcher", "withheld"),
            },
            "stages": [_stage_json(stage) for stage in snapshot.stages],
            "figures": snapshot.figures(),
            "left": left_facts(snapshot),
            "waiting": {
                "next_due": {"domain": due[0], "seconds": due[1]} if due else None,
                "closed_domains": self.closed_count,
                "closed": [{"domain": domain, "reason": reason} for domain, reason in self.closed],
                "open_breakers": self.breaker_count,
                "breakers": [{"domain": name, "state": state, "detail": why} for name, state, why in self.breakers],
            },
            "revisits": None
            if self.planned is None
            else {"pages": self.planned.pages, "due": self.planned.due, "next_crawl_at": self.planned.next_at},
            "alerts": [asdict(alert) for alert in self.alerts],
            "backlog": {
                "jobs_bytes": self.backlog.jobs_bytes,
                "job_domains": self.backlog.job_domains,
                "results_bytes": self.backlog.results_bytes,
            },
        }

    def lines(self, width: int | None = None) -> list[tuple[str, str]]:
        """(text, style) lines, broken between words if there are only `width` columns."""
        snapshot = self.snapshot
        alive = [stage for stage in snapshot.stages if stage.is_running]
        run = f"run #{snapshot.run.number} {snapshot.run.status}" if snapshot.run else "no run yet"
        head = run + ("" if alive else ", nothing is running")
        place = str(snapshot.workspace)
        lines = [(f"{head}  {place if width is None else _end_of(place, width - len(head) - 2)}", "bold")]
        lines += [_stage_line(found) for found in snapshot.stages if found.is_running or found.stage != "fetcher"]
        if not any(stage.stage == "fetcher" for stage in alive):
            lines.append(("  fetcher       not running", "dim"))
        if any(snapshot.facts_of("ingest")):
            now = snapshot.figures()
            lines.append(
                (
                    f"  {now['crawled']:,} crawled, {now['failed']:,} failed, {now['waiting']:,} waiting, "
                    f"{now['in_flight']:,} in flight, {now['known']:,} known, {counted(now['links'], 'link')}",
                    "",
                )
            )
        if left := left_long(left_facts(snapshot)):
            lines.append((f"  {left}", ""))
        lines += self._waiting_lines()
        return [(line, style) for text, style in lines for line in fitted(text, width).split("\n")]

    def _waiting_lines(self) -> list[tuple[str, str]]:
        snapshot = self.snapshot
        lines = [(f"  alert: {alert.name}: {alert.words} (since {alert.since})", "red") for alert in self.alerts]
        for flag in snapshot.flags:
            word, _, stage = flag.partition(".")
            whom = stage or "all stages"
            remedy = "sumi-ripple resume" + (f" {stage}" if stage else "")
            what = "paused" if word == "pause" else "told to stop"
            lines.append((f"  {whom} {what} by the flag file {flag} ({remedy})", "yellow"))
        if snapshot.network.is_waiting:
            held = counted(snapshot.total("fetcher", "withheld"), "visit")
            lines.append((f"  waiting for the network since {snapshot.network.since}; {held} to be made again", "red"))
            lines += [(f"    {finding}", "red") for finding in snapshot.network.findings]
        due = snapshot.next_due()
        if due is not None and not snapshot.network.is_waiting:
            when = f"in {due[1]:.1f} s" if due[1] else "now"
            lines.append((f"  next request: {domain_words(due[0])} {when}", ""))
        if self.planned is not None:
            lines.append((f"  {_planned_words(self.planned)}", ""))
        unread = self.backlog.results_bytes
        jobs = f"{size_words(self.backlog.jobs_bytes)} of jobs in {counted(self.backlog.job_domains, 'domain')}"
        results = f"{size_words(unread)} of results to apply" if unread is not None else "no database yet"
        lines.append((f"  backlog: {jobs}, {results}", ""))
        broken = self.breakers[: self._most_listed]
        lines += [
            (f"  circuit breaker {state}: {domain_words(domain)} ({reason})", "yellow")
            for domain, state, reason in broken
        ]
        lines += self._rest(self.breaker_count - len(broken), "more circuit breaker", "yellow")
        closed = self.closed[: self._most_listed]
        lines += [(f"  closed: {domain_words(domain)} ({reason})", "dim") for domain, reason in closed]
        lines += self._rest(self.closed_count - len(closed), "more closed domain", "dim")
        return lines

    def _rest(self, number: int, what: str, style: str) -> list[tuple[str, str]]:
        """The end of a list that was cut: the command that shows all of it."""
        return [(f"  … and {counted(number, what)}: {self._command} --all", style)] if number > 0 else []


def _stage_json(stage: StageProcess) -> dict[str, Any]:
    return {
        "name": stage.name,
        "stage": stage.stage,
        "is_running": stage.is_running,
        "is_stuck": stage.is_stuck,
        "doing": stage.doing,
        "pid": stage.pid,
        "started": stage.started,
        "heartbeat_age_seconds": None if stage.age is None else round(stage.age, 3),
        "standing_seconds": None if stage.standing is None else round(stage.standing, 3),
        "facts": stage.facts,
    }


def _stage_line(stage: StageProcess) -> tuple[str, str]:
    if not stage.is_running:
        return f"  {stage.name:<13} not running", "dim"
    beat = "no heartbeat" if stage.age is None else f"heartbeat {duration(stage.age)} ago"
    words = f"  {stage.name:<13} {stage.doing}, pid {stage.pid}, {beat}"
    details = {
        "scheduler": ("released", "job", "released"),
        "fetcher": ("in_flight", "request", "in flight"),
        "ingest": ("taken", "result", "applied"),
    }.get(stage.stage)
    if details and details[0] in stage.facts:
        words += f", {counted(int(stage.facts[details[0]] or 0), details[1])} {details[2]}"
    few = stage.facts.get("open_files")
    if isinstance(few, int) and few < _FEW_FILES:
        words += f", at most {stage.facts.get('most_domains')} domains at a time ({few} open files allowed)"
    return words, "red" if stage.is_stuck else ""


def _planned_words(planned: PlannedVisits) -> str:
    due = f"next visits: {planned.due:,} of {counted(planned.pages, 'page')} due now"
    return due + (f", the next at {plain(planned.next_at)}" if planned.next_at else "")


def _end_of(text: str, width: int) -> str:
    """The end of a path, its most telling part."""
    return text if len(text) <= width else "…" + text[-max(width - 1, 8) :]
