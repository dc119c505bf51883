"""Runs: started, resumed, interrupted, finished, whatever dies in between."""

from __future__ import annotations

import sqlite3

import pytest

from crawler.model.records import RunEvent
from crawler.model.settings import Config
from crawler.schedule.run_keeper import mark_interrupted
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.runs import Run, RunStatus, read_run
from tests.crawler.schedule.scheduling import Map, Stage, jobs, start


def test_the_scheduler_waits_until_there_is_a_map(config: Config, workspace: FileWorkspace) -> None:
    stage = Stage(config, workspace)
    assert stage.step() > 0
    assert stage.scheduler.run is None
    map_ = Map(config, workspace)
    stage.step()
    assert stage.scheduler.run == Run(1, RunStatus.RUNNING)
    assert [event.event for event in map_.take_in()] == ["started"]


def test_a_database_without_tables_is_not_a_map_yet(config: Config, workspace: FileWorkspace) -> None:
    sqlite3.connect(config.output.database_path).execute("CREATE TABLE other (x)").close()
    stage = Stage(config, workspace)
    assert stage.step() > 0
    assert stage.scheduler.run is None


def test_a_map_of_another_config_is_waited_for(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.set_meta("map_hash", "of other rules")
    map_.add("https://a.test/")
    stage = Stage(config, workspace)
    stage.step()
    assert stage.scheduler.run is None
    map_.set_meta("map_hash", config.map_hash)
    stage.step()
    assert stage.scheduler.run is not None


def test_a_run_event_carries_the_hashes_and_is_noted(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    Stage(config, workspace).step()
    (event,) = map_.take_in()
    assert isinstance(event, RunEvent)
    assert (event.run, event.event) == (1, "started")
    assert (event.config_hash, event.map_hash) == (config.config_hash, config.map_hash)
    assert read_run(workspace) == Run(1, RunStatus.RUNNING)


def test_nothing_is_released_before_the_run_event_is_taken_in(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/")
    stage = Stage(config, workspace)
    for _ in range(3):
        stage.step(1)
    assert jobs(workspace) == []
    map_.take_in()
    stage.step(1)
    assert jobs(workspace) == ["https://a.test/"]


def test_an_empty_frontier_before_the_seeds_are_in_does_not_end_the_run(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    stage = Stage(config, workspace)
    stage.step()
    stage.step(10)
    assert [event.event for event in map_.take_in()] == ["started"]


def test_the_first_seeds_are_released_before_all_are_in_and_do_not_end_the_run(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    """The map says that the run has begun, and nothing of the decision that began it: more seeds are to come."""
    stage = Stage(config, workspace)
    stage.step()
    map_.begin_run(1)
    map_.add("https://a.test/")
    stage.settle_down()
    assert jobs(workspace) == ["https://a.test/"]
    map_.visit("https://a.test/")
    stage.settle_down()
    stage.step(10)
    assert [event.event for event in map_.take_in()] == ["started"]
    map_.add_and_tell("https://b.test/")
    stage.settle_down()
    assert "https://b.test/" in jobs(workspace)


def test_a_resumed_run_waits_for_its_own_event(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    """The map has known the run for long; decisions before the event may still be on their way."""
    map_.add("https://a.test/")
    start(config, map_).kill()
    map_.add("https://b.test/")
    stage = Stage(config, workspace)
    stage.step()
    stage.step(1)
    assert jobs(workspace) == ["https://a.test/"]
    map_.take_in()
    stage.step(1)
    assert jobs(workspace) == ["https://a.test/", "https://b.test/"]


def test_a_run_ends_when_the_frontier_is_empty_and_the_map_says_so(
    config: Config, map_: Map, workspace: FileWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    map_.add("https://a.test/")
    map_.add("https://b.test/")
    stage = start(config, map_)
    map_.visit("https://a.test/")
    stage.settle_down()
    assert jobs(workspace) == ["https://b.test/"], "jobs are removed when all pages of their window are done"
    there: list[list[str]] = []
    finish = stage.scheduler._runs.finish
    monkeypatch.setattr(stage.scheduler._runs, "finish", lambda: (there.append(jobs(workspace)), finish()))
    map_.visit("https://b.test/")
    stage.settle_down()
    assert there == [["https://b.test/"]], "the record of the end does not wait for the last ones' removal"
    assert jobs(workspace) == [], "they are removed while the map takes in that record"
    stage.step(1)
    assert not stage.scheduler.is_over, "not before the map says so"
    assert read_run(workspace) == Run(1, RunStatus.RUNNING)
    assert [event.event for event in map_.take_in()] == ["finished"]
    stage.step(1)
    assert stage.scheduler.is_over
    assert read_run(workspace) == Run(1, RunStatus.COMPLETED)
    assert list(workspace.layout.jobs.iterdir()) == []
    stage.scheduler.shutdown(is_told_to_stop=True)
    assert map_.take_in() == [], "a completed run is not interrupted"


def test_a_stop_interrupts_the_run_and_the_next_start_resumes_it(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    stage.scheduler.shutdown(is_told_to_stop=True)
    assert read_run(workspace) == Run(1, RunStatus.INTERRUPTED)
    assert [event.event for event in map_.take_in()] == ["interrupted"]
    Stage(config, workspace).step()
    (event,) = map_.take_in()
    assert (event.run, event.event) == (1, "resumed")  # type: ignore[union-attr]


def test_a_killed_scheduler_resumes_its_run(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    start(config, map_).kill()
    Stage(config, workspace).step()
    assert [event.event for event in map_.take_in()] == ["resumed"]


def test_after_a_completed_run_comes_the_next_number(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    stage = start(config, map_)
    stage.settle_down()
    map_.take_in()
    stage.step()
    assert stage.scheduler.is_over
    Stage(config, workspace).step()
    (event,) = map_.take_in()
    assert (event.run, event.event) == (2, "started")  # type: ignore[union-attr]


def test_a_crash_between_the_run_event_and_its_note_does_not_start_a_second_run(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    Stage(config, workspace).step()
    workspace.layout.run_file.unlink()  # the note was not written, and the map has not taken in the event either
    Stage(config, workspace).step()
    assert [(event.run, event.event) for event in map_.take_in()] == [(1, "started"), (1, "resumed")]


def test_a_run_whose_end_nobody_saw_is_brought_to_its_end_instead_of_walked_again(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    stage = start(config, map_)
    stage.settle_down()  # writes `finished`, and is killed before the map has taken that in
    second = Stage(config, workspace)
    second.step()
    assert not second.scheduler.is_over
    assert [event.event for event in map_.take_in()] == ["finished"]
    second.step(1)
    assert second.scheduler.is_over
    assert read_run(workspace) == Run(1, RunStatus.COMPLETED)
    assert map_.take_in() == []


def test_a_run_that_its_scheduler_left_to_be_replaced_is_marked_once_all_stages_have_ended(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    """A Ctrl-C in the middle of a reload: no scheduler is at work any more, and none will be."""
    assert not mark_interrupted(config, workspace), "there is no run yet"
    stage = Stage(config, workspace)
    stage.step()
    stage.scheduler.shutdown(is_told_to_stop=False)
    assert mark_interrupted(config, workspace)
    assert read_run(workspace) == Run(1, RunStatus.INTERRUPTED)
    assert [event.event for event in map_.take_in()] == ["started", "interrupted"]
    assert not mark_interrupted(config, workspace)
