"""The supervisor over real processes: small stages that live, die, crash, refuse and linger."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.model.errors import UsageError
from crawler.model.settings import Config, OutputSettings, ResilienceSettings
from crawler.observe.live_view import QuietView
from crawler.observe.logs import configure
from crawler.observe.processes import Snapshot
from crawler.resilience.stalls import MOST_STALLS
from crawler.supervise import exit_rules, supervisor
from crawler.supervise.exit_rules import EXIT_CODES, MOST_DEATHS, Outcome
from crawler.supervise.stage_process import StageSpec
from crawler.supervise.stall_watch import StallWatch
from crawler.supervise.supervisor import Supervisor
from crawler.supervise.watchdog import Usage
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.reloads import order_reload, reload_answer
from crawler.workspace.runs import Run, RunStatus, write_run
from tests.crawler.supervise import small_stages
from tests.crawler.supervise.small_stages import notes


class Watching(QuietView):
    """A view that does something once the stages have noted certain words, and keeps what is said."""

    every = 0.02

    def __init__(self, root: Path, *steps: tuple[tuple[str, ...], Callable[[], None]]) -> None:
        self._root = root
        self._steps = list(steps)
        self.said: list[str] = []

    def show(self, snapshot: Snapshot, now: float) -> None:
        while self._steps and set(self._steps[0][0]) <= set(notes(self._root)):
            self._steps.pop(0)[1]()

    def say(self, line: str) -> None:
        self.said.append(line)


def make(root: Path, specs: list[StageSpec], view: Watching, *, owns_run: bool = True) -> Supervisor:
    config = Config(workspace=root, output=OutputSettings(root.parent / "map.db", root.parent / "summary.md"))
    configure(logging.INFO, view.say)
    return Supervisor(
        config, FileWorkspace(root), specs, view, log_level=logging.INFO, first_pause=0.01, owns_run=owns_run
    )


def sound(root: Path, name: str, stage: str) -> StageSpec:
    return StageSpec(name, stage, small_stages.work_until_told, (root, name))


def test_a_completed_run_ends_all_stages_and_the_ingest_last(root: Path) -> None:
    after = ("fetcher started", "ingest started")
    view = Watching(root)
    made = make(
        root,
        [
            sound(root, "ingest", "ingest"),
            StageSpec("scheduler", "scheduler", small_stages.complete_the_run, (root, after)),
            sound(root, "fetcher", "fetcher"),
        ],
        view,
    )
    ended_before: list[bool] = []
    made.on_completed = lambda: ended_before.append("ingest ended" in notes(root))
    assert made.run() is Outcome.COMPLETED
    assert notes(root)[-3:] == ["scheduler completed", "fetcher ended", "ingest ended"]
    assert ended_before == [False], "the summary does not wait for the stages"


def test_the_first_interrupt_lets_every_stage_finish_and_the_ingest_last(root: Path) -> None:
    started = ("scheduler started", "fetcher started", "ingest started")
    view = Watching(root, (started, lambda: os.kill(os.getpid(), signal.SIGINT)))
    specs = [sound(root, name, name) for name in ("ingest", "scheduler", "fetcher")]
    assert make(root, specs, view).run() is Outcome.INTERRUPTED
    assert sorted(notes(root)[3:5]) == ["fetcher ended", "scheduler ended"]
    assert notes(root)[5:] == ["ingest ended"], "it was told once, and the terminal's Ctrl-C did not reach it"


def test_the_second_interrupt_ends_everything_at_once(root: Path) -> None:
    view = Watching(
        root,
        (("fetcher started",), lambda: os.kill(os.getpid(), signal.SIGTERM)),
        (("fetcher started",), lambda: os.kill(os.getpid(), signal.SIGTERM)),
    )
    specs = [StageSpec("fetcher", "fetcher", small_stages.ignore_everything, (root, "fetcher"))]
    assert make(root, specs, view).run() is Outcome.INTERRUPTED
    assert "fetcher ended" not in notes(root)


def test_after_an_interrupt_no_stage_is_waited_for_beyond_its_deadline(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every stage lingers, the ingest too, and `PATIENCE` is longer than this test may take."""
    monkeypatch.setattr(exit_rules, "PATIENCE", 3600.0)
    monkeypatch.setattr(exit_rules, "WIRE_DEADLINE", 0.1)
    monkeypatch.setattr(exit_rules, "INTERRUPT_DEADLINE", 0.2)
    names = ("ingest", "scheduler", "fetcher")
    started = tuple(f"{name} started" for name in names)
    view = Watching(root, (started, lambda: os.kill(os.getpid(), signal.SIGINT)))
    specs = [StageSpec(name, name, small_stages.ignore_everything, (root, name)) for name in names]
    assert make(root, specs, view).run() is Outcome.INTERRUPTED
    given_up = [line.split("The ")[1].split()[0] for line in view.said if "does not end" in line]
    assert sorted(given_up[:2]) == ["fetcher", "scheduler"]
    assert given_up[2:] == ["ingest"]


def test_a_stage_that_does_not_end_with_its_run_is_killed_after_a_while(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exit_rules, "PATIENCE", 0.1)
    view = Watching(root)
    specs = [
        StageSpec("fetcher", "fetcher", small_stages.ignore_everything, (root, "fetcher")),
        StageSpec("scheduler", "scheduler", small_stages.complete_the_run, (root, ("fetcher started",))),
    ]
    assert make(root, specs, view).run() is Outcome.COMPLETED
    assert any("does not end" in line for line in view.said)


def test_a_stage_that_was_killed_is_restarted(root: Path) -> None:
    view = Watching(root)
    specs = [
        StageSpec("fetcher", "fetcher", small_stages.die_once, (root, "fetcher")),
        StageSpec("scheduler", "scheduler", small_stages.complete_the_run, (root, ("fetcher started",))),
    ]
    assert make(root, specs, view).run() is Outcome.COMPLETED
    assert notes(root)[:2] == ["fetcher dies", "fetcher started"]
    assert any("was killed by SIGKILL; restarting it" in line for line in view.said)


def test_a_stage_that_keeps_dying_is_given_up_with_one_sentence_and_growing_pauses(root: Path) -> None:
    view = Watching(root)
    specs = [
        StageSpec("ingest", "ingest", small_stages.die_always, (root, "ingest")),
        sound(root, "scheduler", "scheduler"),
    ]
    assert make(root, specs, view).run() is Outcome.BROKEN
    assert notes(root).count("ingest dies") == MOST_DEATHS
    pauses = [float(line.split(" in ")[1].split(" s")[0]) for line in view.said if "restarting it" in line]
    assert pauses == sorted(pauses) and len(pauses) == MOST_DEATHS - 1
    (last,) = [line for line in view.said if line.startswith("[ERROR]")]
    assert "giving up" in last and "5th time" in last and "saved" in last
    assert notes(root)[-1] == "scheduler ended"


def test_a_stage_that_dies_but_makes_progress_is_not_given_up(root: Path) -> None:
    view = Watching(root)
    times = MOST_DEATHS + 1
    specs = [
        StageSpec("fetcher", "fetcher", small_stages.die_after_progress, (root, "fetcher", times)),
        StageSpec("scheduler", "scheduler", small_stages.complete_the_run, (root, ("fetcher started",))),
    ]
    assert make(root, specs, view).run() is Outcome.COMPLETED
    assert notes(root).count("fetcher dies") == times


def test_a_stage_that_explains_why_it_cannot_go_on_stops_everything_with_that_sentence(root: Path) -> None:
    view = Watching(root)
    specs = [StageSpec("ingest", "ingest", small_stages.say_why, (root,)), sound(root, "scheduler", "scheduler")]
    assert make(root, specs, view).run() is Outcome.FAILED
    assert [line for line in view.said if line.startswith("[ERROR]")] == [
        "[ERROR] The ingest cannot go on: the disk is full; make room"
    ]


def test_a_crash_is_one_line_and_its_traceback_is_in_a_file(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    view = Watching(root)
    assert (
        make(root, [StageSpec("ingest", "ingest", small_stages.crash, (root, "ingest"))], view).run() is Outcome.BROKEN
    )
    crashes = [line for line in view.said if "crashed" in line]
    assert crashes and "ZeroDivisionError: a bug" in crashes[0] and "\n" not in crashes[0]
    assert "Traceback" in (root / "status" / "ingest.crash.txt").read_text()
    assert "Traceback" not in capfd.readouterr().err


def test_the_stop_flag_ends_a_crawl_like_the_first_interrupt(root: Path) -> None:
    view = Watching(root, (("fetcher started",), lambda: FileWorkspace(root).layout.flag("stop").touch()))
    specs = [StageSpec("fetcher", "fetcher", small_stages.stop_by_flag, (root, "fetcher", "fetcher"))]
    assert make(root, specs, view).run() is Outcome.INTERRUPTED
    assert not any("is restarted" in line for line in view.said)


def test_a_terminal_that_goes_away_lets_every_stage_finish(root: Path) -> None:
    def vanish() -> None:
        raise BrokenPipeError

    view = Watching(root, (("fetcher started",), vanish))
    assert make(root, [sound(root, "fetcher", "fetcher")], view).run() is Outcome.INTERRUPTED
    assert notes(root)[-1] == "fetcher ended"


def test_sigusr1_makes_the_supervisor_report_the_status(root: Path) -> None:
    view = Watching(root, (("fetcher started",), lambda: os.kill(os.getpid(), signal.SIGUSR1)))
    supervising = make(root, [sound(root, "fetcher", "fetcher")], view)
    original = view.say

    def say(line: str) -> None:
        original(line)
        if "backlog" in line:
            supervising.signals = 1

    view.say = say  # type: ignore[method-assign]
    assert supervising.run() is Outcome.INTERRUPTED
    assert any(line.startswith("no run yet") for line in view.said)


def test_a_stage_stopped_by_its_own_flag_is_restarted_when_the_flag_is_removed(root: Path) -> None:
    flag = FileWorkspace(root).layout.flag("stop", "fetcher")
    view = Watching(root, (("fetcher started",), flag.touch))
    supervising = make(
        root, [StageSpec("fetcher", "fetcher", small_stages.stop_by_flag, (root, "fetcher", "fetcher"))], view
    )
    while not any("because of a flag file" in line for line in view.said):
        supervising.step(time.monotonic())
    flag.unlink()
    while notes(root).count("fetcher started") < 2:
        supervising.step(time.monotonic())
    supervising.signals = 1
    assert supervising.run() is Outcome.INTERRUPTED
    assert notes(root) == ["fetcher started", "fetcher ended"] * 2


def test_a_stop_flag_that_only_a_stage_saw_stops_the_crawl_all_the_same(root: Path) -> None:
    """The flag may be removed again before the supervisor reads the flags; it finds a stage that ended by it."""
    flag = FileWorkspace(root).layout.flag("stop")
    specs = [
        StageSpec("fetcher", "fetcher", small_stages.stop_by_flag, (root, "fetcher", "fetcher")),
        sound(root, "ingest", "ingest"),
    ]
    supervising = make(root, specs, Watching(root))
    real = supervising._wait

    def set_flag_between_the_looks(now: float) -> None:
        if {"fetcher started", "ingest started"} <= set(notes(root)):
            flag.touch()
            small_stages.wait_for(root, "fetcher ended")
        real(now)

    supervising._wait = set_flag_between_the_looks  # type: ignore[method-assign]
    judge = supervising._judge_exits

    def judge_and_remove(now: float) -> None:
        judge(now)
        flag.unlink(missing_ok=True)

    supervising._judge_exits = judge_and_remove  # type: ignore[method-assign]
    assert supervising.run() is Outcome.INTERRUPTED
    assert notes(root)[-1] == "ingest ended" and notes(root).count("fetcher started") == 1


# -- stages alone, as for `sumi-ripple fetch` ------------------------------------------------------------------


def test_stages_alone_that_end_by_themselves_are_not_restarted(root: Path) -> None:
    names = ("fetcher 1", "fetcher 2")
    specs = [StageSpec(name, "fetcher", small_stages.end_at_once, (root, name)) for name in names]
    assert make(root, specs, Watching(root), owns_run=False).run() is Outcome.COMPLETED
    assert len(notes(root)) == 2


def test_a_stage_alone_that_dies_is_restarted_however_often(root: Path) -> None:
    times = MOST_DEATHS + 1
    view = Watching(root)
    specs = [StageSpec("fetcher", "fetcher", small_stages.die_so_often, (root, "fetcher", times))]
    assert make(root, specs, view, owns_run=False).run() is Outcome.COMPLETED
    assert notes(root) == ["fetcher dies"] * times + ["fetcher ended"]
    pauses = [float(line.split(" in ")[1].split(" s")[0]) for line in view.said if "restarting it" in line]
    assert pauses == sorted(pauses) and len(pauses) == times


def test_an_interrupt_is_passed_on_to_stages_alone_once(root: Path) -> None:
    view = Watching(root, (("a started", "b started"), lambda: os.kill(os.getpid(), signal.SIGTERM)))
    specs = [sound(root, name, "fetcher") for name in ("a", "b")]
    assert make(root, specs, view, owns_run=False).run() is Outcome.INTERRUPTED
    assert sorted(notes(root)[2:]) == ["a ended", "b ended"]


def test_a_stage_alone_that_cannot_go_on_ends_the_others(root: Path) -> None:
    specs = [StageSpec("a", "fetcher", small_stages.say_why_after, (root, "b started")), sound(root, "b", "fetcher")]
    assert make(root, specs, Watching(root), owns_run=False).run() is Outcome.FAILED
    assert notes(root) == ["b started", "b ended"]


@pytest.mark.parametrize("stage", [None, "fetcher"])
def test_stages_alone_that_a_flag_stopped_are_done(root: Path, stage: str | None) -> None:
    flag = FileWorkspace(root).layout.flag("stop", stage)
    view = Watching(root, (("fetcher started",), flag.touch))
    specs = [StageSpec("fetcher", "fetcher", small_stages.stop_by_flag, (root, "fetcher", "fetcher"))]
    assert make(root, specs, view, owns_run=False).run() is Outcome.COMPLETED
    assert notes(root) == ["fetcher started", "fetcher ended"]


# -- stages that stand still, or grow -------------------------------------------------------------------------


def watchful(root: Path, specs: list[StageSpec], view: Watching, **settings: int) -> Supervisor:
    made = make(root, specs, view)
    resilience = ResilienceSettings(**settings)
    made.config = replace(made.config, resilience=resilience)
    made._stalls = StallWatch(resilience, made.workspace)
    return made


@pytest.fixture
def all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_STAGES_EVERY", 0.0)


def seen_standing(made: Supervisor, root: Path) -> Supervisor:
    """The ingest is found stalled each time that it has noted that it stands still."""
    found: list[int] = []

    def find_stalled(started_ns: Mapping[int, int], now_ns: int) -> list[tuple[int, str]]:
        pids = [stage.child.pid for stage in made._stages if stage.child and stage.spec.name == "ingest"]
        if pids[:1] and pids[0] not in found and notes(root).count("ingest stands still") == len(found) + 1:
            found.append(pids[0] or 0)
            return [(found[-1], "work is due, and none was done for 300 s")]
        return []

    made._stalls.find_stalled = find_stalled  # type: ignore[method-assign]
    return made


@pytest.mark.usefixtures("all_the_time")
def test_a_stage_that_stands_still_is_restarted(root: Path) -> None:
    view = Watching(root)
    specs = [
        StageSpec("ingest", "ingest", small_stages.stand_still, (root, "ingest")),
        StageSpec("scheduler", "scheduler", small_stages.complete_the_run, (root, ("ingest started",))),
    ]
    assert seen_standing(watchful(root, specs, view), root).run() is Outcome.COMPLETED
    (said,) = [line for line in view.said if "Stall detected" in line]
    assert "the ingest stands still: work is due, and none was done for 300 s" in said
    assert notes(root)[:2] == ["ingest stands still", "ingest started"]


@pytest.mark.usefixtures("all_the_time")
def test_a_stage_that_stands_still_again_and_again_ends_the_crawl_with_a_word(root: Path) -> None:
    view = Watching(root)
    specs = [StageSpec("ingest", "ingest", small_stages.stand_still, (root, "ingest", 99))]
    outcome = seen_standing(watchful(root, specs, view), root).run()
    assert outcome is Outcome.BROKEN and EXIT_CODES[outcome] == 70
    assert notes(root).count("ingest stands still") == MOST_STALLS
    assert any("giving up" in line and "stood still" in line for line in view.said)


@pytest.mark.usefixtures("all_the_time")
def test_a_fetcher_that_outgrew_its_memory_is_replaced_after_it_has_finished(root: Path) -> None:
    view = Watching(root)
    specs = [
        sound(root, "fetcher", "fetcher"),
        StageSpec("scheduler", "scheduler", small_stages.complete_after_two, (root, "fetcher started")),
    ]
    made = watchful(root, specs, view, max_memory=1)
    first: list[int] = []

    def usage(pid: int) -> Usage:
        child = made._stages[0].child
        if not first and child is not None and child.pid == pid and "fetcher started" in notes(root):
            first.append(pid)
        return Usage(0.0, 5 if pid in first else 0)

    made._stalls._usage = usage
    assert made.run() is Outcome.COMPLETED
    assert notes(root).count("fetcher started") == 2, notes(root)
    assert not [line for line in view.said if line.startswith("[WARNING]")], "nobody notices"


@pytest.mark.usefixtures("all_the_time")
def test_any_other_stage_that_outgrew_its_memory_ends_the_crawl_with_70(root: Path) -> None:
    view = Watching(root)
    made = watchful(root, [sound(root, "ingest", "ingest")], view, max_memory=1)
    made._stalls._usage = lambda pid: Usage(0.0, 5 if "ingest started" in notes(root) else 0)
    assert made.run() is Outcome.BROKEN
    assert notes(root) == ["ingest started", "ingest ended"], "it finished what was durable"
    assert any("max-memory" in line for line in view.said)


# -- another config ---------------------------------------------------------------------------------------------


def _reloading(
    root: Path, view: Watching, load: Callable[[], Config], specs_of: Callable[[Config], list[StageSpec]]
) -> Supervisor:
    made = make(root, [], view)
    made.config = replace(made.config, source=root / "my.toml")
    return Supervisor(
        *(made.config, FileWorkspace(root), specs_of(made.config), view),
        log_level=logging.INFO,
        load_again=load,
        specs_of=specs_of,
    )


def _stages_of(root: Path) -> Callable[[Config], list[StageSpec]]:
    """Stages whose names tell of their config: fetchers as many as it wants workers."""

    def specs_of(config: Config) -> list[StageSpec]:
        depth, count = config.crawler.max_depth, config.crawler.workers or 2
        fetchers = [sound(root, f"fetcher {number} at depth {depth}", "fetcher") for number in range(count)]
        return [sound(root, f"ingest at depth {depth}", "ingest"), *fetchers]

    return specs_of


def test_sighup_starts_every_stage_again_under_the_new_config_and_says_what_changed(root: Path) -> None:
    config = Config(workspace=root, output=OutputSettings(root.parent / "map.db", root.parent / "summary.md"))
    changed = replace(config, crawler=replace(config.crawler, max_depth=7, workers=3))
    first = tuple(f"{name} at depth 3 started" for name in ("ingest", "fetcher 0", "fetcher 1"))
    again = tuple(f"{name} at depth 7 started" for name in ("ingest", "fetcher 0", "fetcher 1", "fetcher 2"))
    view = Watching(
        root,
        (first, lambda: os.kill(os.getpid(), signal.SIGHUP)),
        (again, lambda: os.kill(os.getpid(), signal.SIGINT)),
    )
    made = _reloading(root, view, lambda: changed, _stages_of(root))
    assert made.run() is Outcome.INTERRUPTED
    assert made.config == changed
    assert any("crawler.max-depth: 3 → 7" in line for line in view.said)
    assert [line for line in notes(root) if line.endswith("at depth 7 ended")], "they were told to end, not killed"


def test_changed_settings_are_recorded_after_the_last_old_fetcher_and_before_the_first_new_one(root: Path) -> None:
    """The scheduler of the new settings dies once before it records them."""
    config = Config(workspace=root, output=OutputSettings(root.parent / "map.db", root.parent / "summary.md"))
    changed = replace(config, crawler=replace(config.crawler, max_depth=7))
    write_run(FileWorkspace(root), Run(1, RunStatus.RUNNING))

    def specs_of(config: Config) -> list[StageSpec]:
        at, is_old = f"at depth {config.crawler.max_depth}", config.crawler.max_depth == 3
        record = (root, f"scheduler {at}", config.config_hash, 0 if is_old else 1)
        slow = small_stages.end_slowly if is_old else small_stages.work_until_told
        return [
            sound(root, f"ingest {at}", "ingest"),
            StageSpec(f"scheduler {at}", "scheduler", small_stages.record_terms, record),
            StageSpec(f"fetcher 0 {at}", "fetcher", slow, (root, f"fetcher 0 {at}")),
            sound(root, f"fetcher 1 {at}", "fetcher"),
        ]

    first = tuple(f"fetcher {number} at depth 3 started" for number in range(2))
    again = tuple(f"fetcher {number} at depth 7 started" for number in range(2))
    view = Watching(
        root,
        (first, lambda: os.kill(os.getpid(), signal.SIGHUP)),
        (again, lambda: os.kill(os.getpid(), signal.SIGINT)),
    )
    assert _reloading(root, view, lambda: changed, specs_of).run() is Outcome.INTERRUPTED
    noted = notes(root)
    assert noted.index("scheduler at depth 3 records") < min(noted.index(word) for word in first)
    assert noted.index("fetcher 0 at depth 3 ended") < noted.index("scheduler at depth 7 dies")
    assert noted.index("scheduler at depth 7 records") < min(noted.index(word) for word in again)


def test_fewer_workers_after_a_reload_leave_fewer_fetchers(root: Path) -> None:
    config = Config(workspace=root, output=OutputSettings(root.parent / "map.db", root.parent / "summary.md"))
    changed = replace(config, crawler=replace(config.crawler, max_depth=7, workers=1))
    first = tuple(f"{name} at depth 3 started" for name in ("ingest", "fetcher 0", "fetcher 1"))
    again = tuple(f"{name} at depth 7 started" for name in ("ingest", "fetcher 0"))
    view = Watching(
        root,
        (first, lambda: os.kill(os.getpid(), signal.SIGHUP)),
        (again, lambda: os.kill(os.getpid(), signal.SIGINT)),
    )
    assert _reloading(root, view, lambda: changed, _stages_of(root)).run() is Outcome.INTERRUPTED
    assert sorted(line for line in notes(root) if line.endswith("at depth 7 started")) == sorted(again)


def test_a_config_that_cannot_be_used_changes_nothing_and_an_order_is_answered(root: Path) -> None:
    def refuse() -> Config:
        raise UsageError("my.toml has 1 mistake")

    tokens: list[str] = []
    first = tuple(f"{name} at depth 3 started" for name in ("ingest", "fetcher 0", "fetcher 1"))
    view = Watching(root, (first, lambda: tokens.append(order_reload(FileWorkspace(root)))))

    def end_when_answered(line: str) -> None:
        view.said.append(line)
        if "not reloaded" in line:
            os.kill(os.getpid(), signal.SIGINT)

    view.say = end_when_answered  # type: ignore[method-assign]
    made = _reloading(root, view, refuse, _stages_of(root))
    configure(logging.INFO, view.say)
    before = made.config
    assert made.run() is Outcome.INTERRUPTED
    assert made.config == before
    answer = reload_answer(FileWorkspace(root), tokens[0])
    assert answer is not None and not answer.is_taken
    assert answer.lines == ("The config was not reloaded, and nothing has changed: my.toml has 1 mistake",)
    assert sorted(line for line in notes(root) if line.endswith("started")) == sorted(first)
