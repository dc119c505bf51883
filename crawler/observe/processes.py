"""A workspace at one moment, read from outside: heartbeats, locks, flags, the run. No stage is asked or disturbed.

`observe` reads it; the live view and `sumi-ripple status` show it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from crawler.model.shown_text import plain
from crawler.resilience import network_state
from crawler.resilience.network_state import NetworkState
from crawler.workspace.clock import boot_id
from crawler.workspace.door import STAGES, Workspace
from crawler.workspace.runs import Run, RunStatus, read_run

_MOST_HOSTS = 100  # of one heartbeat
_MOST_REQUESTS = 20  # of one heartbeat
_GROUPS = ("left", "limits", "answers")  # facts that are several numbers
_NAME = re.compile("[a-z0-9-]{1,40}")
STALE = 10.0  # seconds without a heartbeat after which a live process counts as stuck


@dataclass(frozen=True, slots=True)
class StageProcess:
    """One process of a stage. `is_running` comes from its lock, the rest from its last heartbeat."""

    name: str
    stage: str
    is_running: bool
    doing: str
    pid: int | None
    started: str | None
    age: float | None  # seconds since the last heartbeat
    facts: dict[str, Any] = field(default_factory=dict)
    standing: float | None = None  # seconds without progress though work is due, at its last heartbeat

    @property
    def is_starting(self) -> bool:
        """Is it running without a heartbeat of its own? The last one told of the end of the process before it."""
        return self.is_running and self.doing == "stopped"

    @property
    def is_stuck(self) -> bool:
        return self.is_running and not self.is_starting and (self.age is None or self.age > STALE)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A workspace at one moment."""

    at: str
    workspace: str
    run: Run | None
    flags: tuple[str, ...]
    stages: tuple[StageProcess, ...]
    network: NetworkState = field(default_factory=NetworkState)

    @property
    def has_run_ended(self) -> bool:
        """Is the newest run completed or interrupted?"""
        return self.run is not None and self.run.status is not RunStatus.RUNNING

    @property
    def pause_flags(self) -> list[str]:
        return [flag for flag in self.flags if flag.startswith("pause")]

    def by_stage(self) -> dict[str, list[StageProcess]]:
        """The processes of each stage, in the pipeline's order."""
        return {stage: [found for found in self.stages if found.stage == stage] for stage in STAGES}

    def facts_of(self, stage: str) -> dict[str, Any]:
        """The facts of a stage that is one process."""
        return next((found.facts for found in self.stages if found.stage == stage), {})

    def map_facts(self) -> dict[str, Any]:
        """The ingest's facts about this run; none while its last heartbeat is of another one."""
        facts = self.facts_of("ingest")
        of_run = facts.get("run")
        return {} if self.run is not None and isinstance(of_run, int) and of_run != self.run.number else facts

    def total(self, stage: str, fact: str) -> int:
        """The sum of a fact over a stage's running processes."""
        return sum(
            int(found.facts.get(fact) or 0) for found in self.stages if found.stage == stage and found.is_running
        )

    def figures(self) -> dict[str, int]:
        """The figures of a crawl; zero where no stage has reported them yet.

        `crawled`, `failed`, `waiting`, `in_flight` and `known` are the words that people read. `pages` (visited,
        crawled or not), `frontier` and `errors` are the names of the first format.
        """
        map_ = self.map_facts()
        names = ("pages", "known", "links", "frontier", "errors", "crawled")
        figures = {name: int(map_.get(name) or 0) for name in names}
        words = {"failed": figures["errors"], "waiting": figures["frontier"]}
        return {**figures, **words, "in_flight": self.total("fetcher", "in_flight")}

    def on_the_wire(self) -> list[dict[str, Any]]:
        """Requests that were out at the last heartbeats, the oldest first: domain, method, URL, seconds."""
        told = [
            {**each, "seconds": round(each["seconds"] + (found.age or 0), 1)}
            for found in self.stages
            if found.is_running and not found.is_stuck
            for each in found.facts.get("on_the_wire", ())
        ]
        return sorted(told, key=lambda each: -each["seconds"])

    def next_due(self) -> tuple[str, float] | None:
        """The domain that is requested next, and the seconds until then."""
        due = [
            (float(found.facts["next_due"]["seconds"]), str(found.facts["next_due"]["domain"]))
            for found in self.stages
            if found.is_running and isinstance(found.facts.get("next_due"), dict)
        ]
        return (min(due)[1], min(due)[0]) if due else None


def observe(workspace: Workspace, now: datetime | None = None, *, with_locks: bool = True) -> Snapshot:
    """Read a snapshot. Without `with_locks`, every process with a recent heartbeat counts as running."""
    now = now or datetime.now(UTC)
    beats = read_heartbeats(workspace)
    names = {"scheduler", "ingest", *beats}
    names |= {name for name in workspace.roles() if name.startswith("fetcher-")}
    names.discard("fetcher")
    stages = [_stage_process(workspace, name, beats.get(name, {}), now, with_locks) for name in names]
    return Snapshot(
        now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        workspace.name,
        read_run(workspace),
        tuple(workspace.flags()),
        tuple(sorted(stages, key=lambda stage: (_order(stage.stage), stage.name))),
        network_state.read(workspace.document(network_state.DOCUMENT), boot_id()),
    )


def _order(stage: str) -> int:
    return STAGES.index(stage) if stage in STAGES else len(STAGES)


def _stage_process(
    workspace: Workspace, name: str, beat: dict[str, Any], now: datetime, with_locks: bool
) -> StageProcess:
    stage = "fetcher" if name.startswith("fetcher-") else name
    age = _seconds_since(beat.get("at"), now)
    is_running = (
        workspace.is_role_taken(name)
        if with_locks
        else age is not None and age < STALE and beat.get("doing") != "stopped"
    )
    pid = beat.get("pid")
    doing = beat.get("doing", "not started")
    return StageProcess(
        name,
        stage,
        is_running,
        plain(str(doing), 60) if is_running else "not running",
        pid if is_running and isinstance(pid, int) else None,
        plain(beat["started"], 40) if isinstance(beat.get("started"), str) else None,
        age,
        _facts(beat.get("facts")),
        seconds_standing(beat),
    )


def _facts(found: object) -> dict[str, Any]:
    """The facts that have the form of facts: numbers, groups of numbers, hosts, and the domain that is due next.

    A heartbeat is shown to people and by the supervisor itself: one that somebody forged may neither end a crawl nor
    write to a terminal. So all else is left out.
    """
    if not isinstance(found, dict):
        return {}
    facts: dict[str, Any] = _numbers(found)
    facts |= {name: _numbers(found[name]) for name in _GROUPS if isinstance(found.get(name), dict)}
    hosts = found.get("good_hosts")
    if isinstance(hosts, list):
        texts = [host for host in hosts[:_MOST_HOSTS] if isinstance(host, str)]
        facts["good_hosts"] = [host for host in texts if host == plain(host, 253)]
    out = found.get("on_the_wire")
    told = map(_request, out[:_MOST_REQUESTS] if isinstance(out, list) else ())
    facts["on_the_wire"] = [request for request in told if request is not None]
    due = found.get("next_due")
    if isinstance(due, dict) and isinstance(due.get("domain"), str) and isinstance(due.get("seconds"), int | float):
        facts["next_due"] = {"domain": plain(due["domain"], 253), "seconds": float(due["seconds"])}
    return facts


def _request(found: object) -> dict[str, Any] | None:
    """A request on the wire as a fetcher told it; None: that is none."""
    if not isinstance(found, dict) or not isinstance(found.get("seconds"), int | float):
        return None
    domain, method, url = (found.get(name) for name in ("domain", "method", "url"))
    if not isinstance(domain, str) or not isinstance(method, str) or not isinstance(url, str):
        return None
    words = {"domain": plain(domain, 253), "method": plain(method, 10), "url": plain(url, 500)}
    return {**words, "seconds": float(found["seconds"])}


def _numbers(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if isinstance(value, int | float) and abs(value) < 2**63}


def seconds_standing(beat: Mapping[str, Any]) -> float | None:
    """Seconds without progress, as the heartbeat told; None: no work was due."""
    since, at = beat.get("due_since_ns"), beat.get("beat_ns")
    return max(0, at - since) / 1e9 if isinstance(since, int) and isinstance(at, int) else None


def read_heartbeats(workspace: Workspace) -> dict[str, dict[str, Any]]:
    """The last heartbeat of every process, by its name, as far as it can be read."""
    found: dict[str, dict[str, Any]] = {}
    for name, content in workspace.heartbeats().items():
        try:
            beat = orjson.loads(content)
        except ValueError:
            continue
        if isinstance(beat, dict) and beat.get("name") == name and _NAME.fullmatch(name):
            found[name] = beat
    return found


def _seconds_since(moment: Any, now: datetime) -> float | None:
    try:
        return max(0.0, (now - datetime.fromisoformat(moment)).total_seconds())
    except (TypeError, ValueError):
        return None
