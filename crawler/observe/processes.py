"""What can be seen of a workspace from outside: heartbeats, locks, flags, spools. Asks nobody, disturbs nobody.

`look` gathers it, and both the live view and `sumi-ripple status` show it. Everything is cheap: small files, one
`stat` a spool segment, and a few seeks in the database, which is never counted through.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from crawler.database.progress import spool_positions
from crawler.workspace.door import STAGES, Workspace
from crawler.workspace.log import Cursor
from crawler.workspace.runs import Run, read_run

SHAPE = 1  # version of `as_json`
STALE = 10.0  # seconds without a heartbeat after which a live process counts as stuck


@dataclass(frozen=True, slots=True)
class StageGlance:
    """One process of a stage. `is_running` comes from its lock, the rest from its last heartbeat."""

    name: str
    stage: str
    is_running: bool
    doing: str
    pid: int | None
    started: str | None
    age: float | None  # seconds since the last heartbeat
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def is_stuck(self) -> bool:
        return self.is_running and (self.age is None or self.age > STALE)


@dataclass(frozen=True, slots=True)
class Backlog:
    """What lies between the stages. None where it cannot be told."""

    jobs_bytes: int  # released, not yet worked off by the fetchers
    job_domains: int
    results_bytes: int | None  # written by the fetchers, not yet taken in by the ingest


@dataclass(frozen=True, slots=True)
class Glance:
    """A workspace at one moment."""

    at: str
    workspace: str
    run: Run | None
    flags: tuple[str, ...]
    stages: tuple[StageGlance, ...]

    def facts_of(self, stage: str) -> dict[str, Any]:
        """The facts of a stage that is one process."""
        return next((found.facts for found in self.stages if found.stage == stage), {})

    def total(self, stage: str, fact: str) -> int:
        """A figure summed up over a stage's running processes."""
        return sum(
            int(found.facts.get(fact) or 0) for found in self.stages if found.stage == stage and found.is_running
        )

    def next_due(self) -> tuple[str, float] | None:
        """The domain that a fetcher will ask next, and in how many seconds."""
        due = [
            (float(found.facts["next_due"]["seconds"]), str(found.facts["next_due"]["domain"]))
            for found in self.stages
            if found.is_running and isinstance(found.facts.get("next_due"), dict)
        ]
        return (min(due)[1], min(due)[0]) if due else None


def look(workspace: Workspace, now: datetime | None = None, *, with_locks: bool = True) -> Glance:
    """See what is there now. Without `with_locks`, whoever has a fresh heartbeat counts as running."""
    now = now or datetime.now(UTC)
    beats = _heartbeats(workspace)
    names = {*STAGES[::2], *beats}
    names |= {name for name in workspace.roles() if name.startswith("fetcher-")}
    names.discard("fetcher")
    stages = [_stage(workspace, name, beats.get(name, {}), now, with_locks) for name in names]
    return Glance(
        now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        workspace.name,
        read_run(workspace),
        tuple(workspace.flags()),
        tuple(sorted(stages, key=lambda stage: (_order(stage.stage), stage.name))),
    )


def _order(stage: str) -> int:
    return STAGES.index(stage) if stage in STAGES else len(STAGES)


def _stage(workspace: Workspace, name: str, beat: dict[str, Any], now: datetime, with_locks: bool) -> StageGlance:
    stage = "fetcher" if name.startswith("fetcher-") else name
    age = _seconds_since(beat.get("at"), now)
    is_running = (
        workspace.is_role_taken(name)
        if with_locks
        else age is not None and age < STALE and beat.get("doing") != "stopped"
    )
    facts = beat.get("facts")
    return StageGlance(
        name,
        stage,
        is_running,
        str(beat.get("doing", "not started")) if is_running else "not running",
        beat.get("pid") if is_running else None,
        beat.get("started"),
        age,
        facts if isinstance(facts, dict) else {},
    )


def _heartbeats(workspace: Workspace) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for content in workspace.heartbeats().values():
        try:
            beat = orjson.loads(content)
        except ValueError:
            continue
        if isinstance(beat, dict) and isinstance(beat.get("name"), str):
            found[beat["name"]] = beat
    return found


def _seconds_since(moment: Any, now: datetime) -> float | None:
    try:
        return max(0.0, (now - datetime.fromisoformat(moment)).total_seconds())
    except (TypeError, ValueError):
        return None


# -- what takes a look at spools and database ----------------------------------------------------------------


def backlog(workspace: Workspace, database: Path | None) -> Backlog:
    """How much waits between the stages."""
    jobs = workspace.waiting_job_bytes()
    positions = spool_positions(database) if database else None
    unread = None
    if positions is not None:
        results = workspace.results
        unread = sum(results.reader(name, positions.get(name, Cursor())).unread_bytes() for name in results.writers())
    return Backlog(sum(jobs.values()), len(jobs), unread)
