"""`sumi-ripple status`: a workspace in words, or as JSON of a documented shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crawler.config.last_used import database_of
from crawler.database.progress import closed_domains
from crawler.observe.live import duration, figures
from crawler.observe.processes import SHAPE, Backlog, Glance, StageGlance, backlog, look
from crawler.workspace.door import Workspace

_WIDTH = 78
_SOME_CLOSED = 5


class Status:
    """A glance, and what takes a closer look: the spools and the closed domains."""

    def __init__(self, workspace: Workspace, database: Path | None = None) -> None:
        database = database or database_of(workspace)
        self.glance: Glance = look(workspace)
        self.backlog: Backlog = backlog(workspace, database)
        self.closed_count = 0
        self.closed: list[tuple[str, str]] = []
        if database is not None and self.glance.run is not None:
            self.closed_count, self.closed = closed_domains(database, self.glance.run.number)

    def as_json(self) -> dict[str, Any]:
        """Version 1 of the shape: members may be added to it, never taken away or given another meaning."""
        glance = self.glance
        due = glance.next_due()
        return {
            "v": SHAPE,
            "kind": "status",
            "at": glance.at,
            "workspace": str(glance.workspace),
            "run": {"number": glance.run.number, "status": glance.run.status.value} if glance.run else None,
            "flags": list(glance.flags),
            "stages": [_stage_json(stage) for stage in glance.stages],
            "figures": figures(glance),
            "waiting": {
                "next_due": {"domain": due[0], "seconds": due[1]} if due else None,
                "closed_domains": self.closed_count,
                "closed": [{"domain": domain, "reason": reason} for domain, reason in self.closed],
            },
            "backlog": {
                "jobs_bytes": self.backlog.jobs_bytes,
                "job_domains": self.backlog.job_domains,
                "results_bytes": self.backlog.results_bytes,
            },
        }

    def lines(self) -> list[tuple[str, str]]:
        """(text, style) lines that fit a screen of 80 columns."""
        glance = self.glance
        alive = [stage for stage in glance.stages if stage.is_running]
        run = f"run #{glance.run.number} {glance.run.status}" if glance.run else "no run yet"
        head = run + ("" if alive else ", nothing is at work")
        lines = [(f"{head}  {_end_of(str(glance.workspace), _WIDTH - len(head) - 2)}", "bold")]
        lines += [_stage_line(found) for found in glance.stages if found.is_running or found.stage != "fetcher"]
        if not any(stage.stage == "fetcher" for stage in alive):
            lines.append(("  fetcher       not running", "dim"))
        if any(glance.facts_of("ingest")):
            now = figures(glance)
            lines.append(
                (
                    f"  {now['pages']:,} pages done, {now['frontier']:,} waiting, {now['links']:,} links, "
                    f"{now['errors']:,} errors",
                    "",
                )
            )
        lines += self._waiting_lines()
        return [(_cut(text), style) for text, style in lines]

    def _waiting_lines(self) -> list[tuple[str, str]]:
        glance = self.glance
        lines: list[tuple[str, str]] = []
        for flag in glance.flags:
            word, _, stage = flag.partition(".")
            whom = stage or "all stages"
            remedy = "sumi-ripple resume" + (f" {stage}" if stage else "")
            what = "paused" if word == "pause" else "told to stop"
            lines.append((f"  {whom} {what} by the flag file {flag} ({remedy})", "yellow"))
        due = glance.next_due()
        if due is not None:
            when = f"in {due[1]:.1f} s" if due[1] else "now"
            lines.append((f"  next due: {due[0]} {when}", ""))
        unread = self.backlog.results_bytes
        jobs = f"{_size(self.backlog.jobs_bytes)} of jobs in {self.backlog.job_domains:,} domains"
        lines.append((f"  backlog: fetchers {jobs}, ingest {_size(unread) if unread is not None else 'unknown'}", ""))
        for domain, reason in self.closed[:_SOME_CLOSED]:
            lines.append((f"  closed: {domain} ({reason})", "dim"))
        if self.closed_count > _SOME_CLOSED:
            lines.append((f"  … and {self.closed_count - _SOME_CLOSED:,} more closed domains", "dim"))
        return lines


def _stage_json(stage: StageGlance) -> dict[str, Any]:
    return {
        "name": stage.name,
        "stage": stage.stage,
        "is_running": stage.is_running,
        "is_stuck": stage.is_stuck,
        "doing": stage.doing,
        "pid": stage.pid,
        "started": stage.started,
        "heartbeat_age_seconds": None if stage.age is None else round(stage.age, 3),
        "facts": stage.facts,
    }


def _stage_line(stage: StageGlance) -> tuple[str, str]:
    if not stage.is_running:
        return f"  {stage.name:<13} not running", "dim"
    beat = "no heartbeat" if stage.age is None else f"heartbeat {duration(stage.age)} ago"
    words = f"  {stage.name:<13} {stage.doing}, pid {stage.pid}, {beat}"
    details = {
        "scheduler": ("released", "released"),
        "fetcher": ("in_flight", "in flight"),
        "ingest": ("taken", "results taken in"),
    }.get(stage.stage)
    if details and details[0] in stage.facts:
        words += f", {int(stage.facts[details[0]] or 0):,} {details[1]}"
    return words, "red" if stage.is_stuck else ""


def _size(number: int) -> str:
    size = float(number)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}"
        size /= 1024
    return f"{size:,.1f} GiB"


def _end_of(text: str, width: int) -> str:
    """A path is best known by its end."""
    return text if len(text) <= width else "…" + text[-(width - 1) :]


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
