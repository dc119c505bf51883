"""Domains whose circuit breaker is open: they take no place, and do not keep a run from its end."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from crawler.model.records import Closure, DomainEvent, Feed
from crawler.model.settings import Config
from crawler.pace.breaker import Breaker, BreakerState
from crawler.schedule import cooling
from crawler.workspace.clock import read_clock
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.crawler.schedule.scheduling import Map, Stage, jobs, start


@pytest.fixture(autouse=True)
def at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cooling, "_LOOK_EVERY", 0.0)


def open_breaker(workspace: FileWorkspace, domain: str, cooldown_ms: int) -> None:
    """As a fetcher leaves it in the domain's gate."""
    gate = workspace.gate(domain, read_clock)
    breaker = Breaker(BreakerState.OPEN, 5, 0, 1, 1, cooldown_ms, time.monotonic_ns())
    gate.update(1, lambda record: type(record)(run=1, sent=11, ended=read_clock(), breaker=breaker))
    gate.close()


def decisions(map_: Map) -> list[DomainEvent]:
    return [record for record in map_.take_in() if isinstance(record, DomainEvent)]


def steps(stage: Stage, count: int = 5) -> None:
    for _ in range(count):
        stage.step(6.0)


def test_pages_behind_a_long_cooldown_are_given_up_when_nothing_else_is_left(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/1")
    map_.add("https://b.test/1")
    stage = start(config, map_)
    open_breaker(workspace, "a.test", 3_600_000)
    steps(stage)
    assert decisions(map_) == [], "b.test is at work"
    map_.visit("https://b.test/1")
    steps(stage)
    (found,) = decisions(map_)
    assert (found.domain, found.event, found.closes) == ("a.test", "closed", Closure("breaker-open", 11))
    steps(stage)
    assert decisions(map_) == [], "it is decided once"


def test_a_short_cooldown_is_waited_for(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/1")
    stage = start(config, map_)
    open_breaker(workspace, "a.test", 60_000)
    steps(stage)
    assert decisions(map_) == []


def test_with_no_last_wait_none_is_waited_for(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/1")
    stage = start(replace(config, resilience=replace(config.resilience, breaker_last_wait=0)), map_)
    open_breaker(workspace, "a.test", 1000)
    steps(stage)
    assert [event.domain for event in decisions(map_)] == ["a.test"]


def test_a_cooling_domain_takes_no_place(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    config = replace(config, crawler=replace(config.crawler, max_active_domains=1))
    map_.add("https://a.test/1")
    stage = start(config, map_)
    open_breaker(workspace, "a.test", 3_600_000)
    map_.add("https://b.test/1")
    map_.feed(Feed(1, work=(("b.test", 1),)))
    stage.step(1.0)
    assert jobs(workspace, "a.test") and not workspace.layout.jobs_of("b.test").exists()
    steps(stage, 3)
    assert jobs(workspace, "b.test") == ["https://b.test/1"]
    assert stage.scheduler.facts()["cooling_domains"] == 1
