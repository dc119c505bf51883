"""The supervisor over real processes: small stages that live, die, crash, refuse and linger."""

from __future__ import annotations

import logging
import multiprocessing
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from crawler.config import last_used as snapshot
from crawler.model.settings import Config, CrawlerSettings, OutputSettings, QualityEntry
from crawler.observe.live import QuietView
from crawler.observe.logs import configure
from crawler.observe.processes import Glance
from crawler.pace.decisions import Open
from crawler.supervise import supervisor
from crawler.supervise.fresh import move_aside
from crawler.supervise.supervisor import (
    Outcome,
    StageSpec,
    Supervisor,
    remove_stop_flags,
    require_no_stages,
    take_supervision,
)
from crawler.workspace.door import WorkspaceError
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.gate_file import GateFile
from crawler.workspace.files.spool import Writer, segment_path
from ingest.sqlite.store import Store
from tests.crawler.supervise import stages
from tests.crawler.supervise.stages import notes


class Watching(QuietView):
    """A view that does something once the stages have noted certain words, and keeps what is said."""

    every = 0.02

    def __init__(self, root: Path, *steps: tuple[tuple[str, ...], Callable[[], None]]) -> None:
        self._root = root
        self._steps = list(steps)
        self.said: list[str] = []

    def show(self, glance: Glance, now: float) -> None:
        while self._steps and set(self._steps[0][0]) <= set(notes(self._root)):
            self._steps.pop(0)[1]()

    def say(self, line: str) -> None:
        self.said.append(line)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    FileWorkspace(tmp_path / "workspace").prepare()
    return tmp_path / "workspace"


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    yield
    logger = logging.getLogger("sumi")
    logger.handlers.clear()
    logger.propagate = True


def make(root: Path, specs: list[StageSpec], view: Watching) -> Supervisor:
    config = Config(workspace=root, output=OutputSettings(root.parent / "map.db", root.parent / "summary.md"))
    configure(logging.INFO, view.say)
    return Supervisor(config, FileWorkspace(root), specs, view, log_level=logging.INFO, first_pause=0.01)


def sound(root: Path, name: str, stage: str) -> StageSpec:
    return StageSpec(name, stage, stages.work_until_told, (root, name))


@pytest.mark.parametrize("own", [None, "glibc.malloc.tcache_count=7"])
def test_fetchers_keep_memory_at_hand_unless_the_user_says_otherwise(
    root: Path, monkeypatch: pytest.MonkeyPatch, own: str | None
) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    if own:
        monkeypatch.setenv("GLIBC_TUNABLES", own)
    names = ("fetcher", "ingest")
    outcome = make(
        root,
        [
            *(StageSpec(name, name, stages.tell_tunables, (root, name)) for name in names),
            StageSpec("scheduler", "scheduler", stages.complete_the_run, (root, ("fetcher started", "ingest started"))),
        ],
        Watching(root),
    ).run()
    assert outcome is Outcome.COMPLETED
    told = own or "glibc.malloc.tcache_count=4000"
    assert {f"fetcher has {told}", f"ingest has {own or 'nothing'}"} <= set(notes(root))
    assert os.environ.get("GLIBC_TUNABLES") == own


def test_a_completed_run_ends_all_stages_and_the_ingest_last(root: Path) -> None:
    after = ("fetcher started", "ingest started")
    view = Watching(root)
    outcome = make(
        root,
        [
            sound(root, "ingest", "ingest"),
            StageSpec("scheduler", "scheduler", stages.complete_the_run, (root, after)),
            sound(root, "fetcher", "fetcher"),
        ],
        view,
    ).run()
    assert outcome is Outcome.COMPLETED
    assert notes(root)[-3:] == ["scheduler completed", "fetcher ended", "ingest ended"]


def test_the_first_interrupt_lets_everyone_finish_and_the_ingest_last(root: Path) -> None:
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
    specs = [StageSpec("fetcher", "fetcher", stages.ignore_everything, (root, "fetcher"))]
    assert make(root, specs, view).run() is Outcome.INTERRUPTED
    assert "fetcher ended" not in notes(root)


def test_a_stage_that_does_not_end_is_killed_after_a_while(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "PATIENCE", 0.1)
    view = Watching(root, (("fetcher started",), lambda: os.kill(os.getpid(), signal.SIGINT)))
    specs = [StageSpec("fetcher", "fetcher", stages.ignore_everything, (root, "fetcher"))]
    assert make(root, specs, view).run() is Outcome.INTERRUPTED
    assert any("does not end" in line for line in view.said)


def test_a_stage_that_was_killed_is_started_again(root: Path) -> None:
    view = Watching(root)
    specs = [
        StageSpec("fetcher", "fetcher", stages.die_once, (root, "fetcher")),
        StageSpec("scheduler", "scheduler", stages.complete_the_run, (root, ("fetcher started",))),
    ]
    assert make(root, specs, view).run() is Outcome.COMPLETED
    assert notes(root)[:2] == ["fetcher dies", "fetcher started"]
    assert any("was killed by SIGKILL; starting it again" in line for line in view.said)


def test_a_stage_that_keeps_dying_is_given_up_with_a_clear_word_and_growing_pauses(root: Path) -> None:
    view = Watching(root)
    specs = [
        StageSpec("ingest", "ingest", stages.die_always, (root, "ingest")),
        sound(root, "scheduler", "scheduler"),
    ]
    assert make(root, specs, view).run() is Outcome.FAILED
    assert notes(root).count("ingest dies") == supervisor.MOST_DEATHS
    pauses = [float(line.split(" in ")[1].split(" s")[0]) for line in view.said if "starting it again" in line]
    assert pauses == sorted(pauses) and len(pauses) == supervisor.MOST_DEATHS - 1
    (last,) = [line for line in view.said if line.startswith("[ERROR]")]
    assert "giving up" in last and "5th time" in last and "saved" in last
    assert notes(root)[-1] == "scheduler ended"


def test_a_stage_that_dies_but_gets_on_is_not_given_up(root: Path) -> None:
    view = Watching(root)
    times = supervisor.MOST_DEATHS + 1
    specs = [
        StageSpec("fetcher", "fetcher", stages.die_but_get_on, (root, "fetcher", times)),
        StageSpec("scheduler", "scheduler", stages.complete_the_run, (root, ("fetcher started",))),
    ]
    assert make(root, specs, view).run() is Outcome.COMPLETED
    assert notes(root).count("fetcher dies") == times


def test_a_stage_that_says_why_stops_everything_with_that_sentence(root: Path) -> None:
    view = Watching(root)
    specs = [StageSpec("ingest", "ingest", stages.say_why, (root,)), sound(root, "scheduler", "scheduler")]
    assert make(root, specs, view).run() is Outcome.FAILED
    assert [line for line in view.said if line.startswith("[ERROR]")] == [
        "[ERROR] The ingest cannot go on: the disk is full; make room"
    ]


def test_a_crash_is_one_line_and_its_traceback_is_in_a_file(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    view = Watching(root)
    assert make(root, [StageSpec("ingest", "ingest", stages.crash, (root, "ingest"))], view).run() is Outcome.FAILED
    crashes = [line for line in view.said if "crashed" in line]
    assert crashes and "ZeroDivisionError: a bug" in crashes[0] and "\n" not in crashes[0]
    assert "Traceback" in (root / "status" / "ingest.crash.txt").read_text()
    assert "Traceback" not in capfd.readouterr().err


def test_the_stop_flag_ends_a_crawl_like_the_first_interrupt(root: Path) -> None:
    view = Watching(root, (("fetcher started",), lambda: FileWorkspace(root).layout.flag("stop").touch()))
    specs = [StageSpec("fetcher", "fetcher", stages.stop_by_flag, (root, "fetcher", "fetcher"))]
    assert make(root, specs, view).run() is Outcome.INTERRUPTED
    assert not any("starts again" in line for line in view.said)


def test_a_terminal_that_goes_away_lets_everyone_finish(root: Path) -> None:
    def vanish() -> None:
        raise BrokenPipeError

    view = Watching(root, (("fetcher started",), vanish))
    assert make(root, [sound(root, "fetcher", "fetcher")], view).run() is Outcome.INTERRUPTED
    assert notes(root)[-1] == "fetcher ended"


def test_sigusr1_makes_the_supervisor_say_how_everything_is(root: Path) -> None:
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


def test_a_stage_stopped_by_its_own_flag_comes_back_when_the_flag_goes(root: Path) -> None:
    flag = FileWorkspace(root).layout.flag("stop", "fetcher")
    view = Watching(root, (("fetcher started",), flag.touch))
    supervising = make(root, [StageSpec("fetcher", "fetcher", stages.stop_by_flag, (root, "fetcher", "fetcher"))], view)
    while not any("because of a flag file" in line for line in view.said):
        supervising.step(time.monotonic())
    flag.unlink()
    while notes(root).count("fetcher started") < 2:
        supervising.step(time.monotonic())
    supervising.signals = 1
    assert supervising.run() is Outcome.INTERRUPTED
    assert notes(root) == ["fetcher started", "fetcher ended"] * 2


def test_the_stages_die_with_a_supervisor_that_is_killed(root: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=stages.supervise_for_ever, args=(root,))
    process.start()
    while "ingest started" not in notes(root):
        process.join(0.02)
    (line,) = [line for line in notes(root) if line.startswith("pid ")]
    pid = int(line.split()[1])
    watch = os.pidfd_open(pid)
    process.kill()
    process.join()
    ready, _, _ = select.select([watch], [], [], 30)
    assert ready, "the stage outlived its supervisor"
    os.close(watch)
    assert "ingest ended" not in notes(root)


# -- roles and flags -----------------------------------------------------------------------------------------


def test_a_second_supervisor_is_refused_with_a_sentence(root: Path) -> None:
    workspace = FileWorkspace(root)
    role = take_supervision(workspace)
    with pytest.raises(WorkspaceError, match=r"a crawl is already under way in .*status"):
        take_supervision(workspace)
    role.release()
    take_supervision(workspace).release()


def test_stages_started_by_hand_are_named(root: Path) -> None:
    workspace = FileWorkspace(root)
    require_no_stages(workspace, patience=0)
    role = workspace.take_role("fetcher-02")
    with pytest.raises(WorkspaceError, match=r"started by hand: fetcher-02.*sumi-ripple stop"):
        require_no_stages(workspace, patience=0)
    role.release()


def test_old_stop_flags_go_and_pause_flags_stay(root: Path) -> None:
    workspace = FileWorkspace(root)
    for name in ("stop", "stop.ingest", "pause", "pause.fetcher"):
        (root / name).touch()
    assert remove_stop_flags(workspace) == ["stop", "stop.ingest"]
    assert sorted(path.name for path in root.glob("*") if path.is_file()) == ["pause", "pause.fetcher"]


# -- a fresh start -------------------------------------------------------------------------------------------


@pytest.fixture
def config(tmp_path: Path, root: Path) -> Config:
    return Config(
        crawler=CrawlerSettings(minimum_time_on_page=60_000),
        output=OutputSettings(tmp_path / "my.map.db", tmp_path / "summary.md"),
        quality=(QualityEntry("a.test", ("https://a.test/",)),),
        workspace=root,
    )


def test_a_fresh_start_moves_everything_aside_and_deletes_nothing(config: Config, root: Path, tmp_path: Path) -> None:
    workspace = FileWorkspace(root)
    config.output.database_path.write_text("map")
    (tmp_path / "my.map.db-wal").write_text("log")
    Writer(workspace.layout.results_of("fetcher-01")).append(b'{"a":1}')
    (workspace.layout.state / "run.json").write_text("{}")
    moved = move_aside(config)
    assert not config.output.database_path.exists() and not (tmp_path / "my.map.db-wal").exists()
    database, kept = map(Path, moved)
    assert database.read_text() == "map" and database.name.startswith("my.map.2")
    assert database.with_name(database.name + "-wal").read_text() == "log"
    assert list((kept / "spool" / "results" / "fetcher-01").iterdir())
    assert (kept / "state" / "run.json").exists()
    assert workspace.layout.results.is_dir() and list(workspace.layout.results.iterdir()) == []


def test_two_fresh_starts_in_one_second_do_not_meet(config: Config, root: Path) -> None:
    config.output.database_path.write_text("one")
    (first,) = [path for path in map(Path, move_aside(config)) if path.suffix == ".db"]
    config.output.database_path.write_text("two")
    (second,) = [path for path in map(Path, move_aside(config)) if path.suffix == ".db"]
    assert (first.read_text(), second.read_text()) == ("one", "two")


def test_nothing_to_move_is_fine(config: Config, root: Path) -> None:
    assert move_aside(config) == []


def test_a_fresh_start_does_not_ask_a_site_again_at_once(config: Config, root: Path) -> None:
    workspace = FileWorkspace(root)
    gate = GateFile(workspace.layout.gate_of("a.test"))
    assert isinstance(gate.try_enter(1, 60_000, 5)[0], Open)
    gate.finish()
    gate.close()
    move_aside(config)
    gate = GateFile(workspace.layout.gate_of("a.test"))
    assert not isinstance(gate.try_enter(1, 60_000, 5)[0], Open), "the clock runs on"
    assert gate.read().sent == 0, "but the budget begins anew"
    gate.close()


# -- what a workspace was crawled with -------------------------------------------------------------------------


def test_changed_settings_are_named(config: Config) -> None:
    other = Config(
        crawler=CrawlerSettings(max_depth=1, minimum_time_on_page=60_000),
        quality=(*config.quality, QualityEntry("b.test", ("https://b.test/x",))),
        blacklist=("ads.test",),
        output=config.output,
        workspace=config.workspace,
    )
    assert snapshot.changes(snapshot.take(config), snapshot.take(config)) == []
    assert snapshot.changes(snapshot.take(config), snapshot.take(other)) == [
        "blacklist: + ads.test",
        "crawler.max-depth: 3 → 1",
        "quality: + b.test from https://b.test/x",
    ]


def test_a_snapshot_survives_the_round_trip(config: Config, root: Path) -> None:
    assert snapshot.read(FileWorkspace(root)) is None
    snapshot.write(config)
    assert snapshot.read(FileWorkspace(root)) == orjson.loads(orjson.dumps(snapshot.take(config)))
    assert snapshot.database_of(FileWorkspace(root)) == config.output.database_path


def test_the_spools_of_one_map_are_not_drawn_into_another(config: Config, root: Path, tmp_path: Path) -> None:
    snapshot.write(config)
    other = Config(output=OutputSettings(tmp_path / "other.db", tmp_path / "s.md"), workspace=root)
    snapshot.require_own_workspace(other)  # nothing has been crawled yet
    Writer(FileWorkspace(root).layout.results_of("fetcher-01")).append(b'{"a":1}')
    snapshot.require_own_workspace(config)
    with pytest.raises(WorkspaceError, match="--workspace of its own"):
        snapshot.require_own_workspace(other)
    other.output.database_path.touch()
    with pytest.raises(WorkspaceError, match="--workspace of its own"):
        snapshot.require_own_workspace(other)


def test_a_map_may_be_moved_but_wants_the_spools_that_it_was_drawn_from(
    config: Config, root: Path, tmp_path: Path
) -> None:
    snapshot.write(config)
    writer = Writer(FileWorkspace(root).layout.results_of("fetcher-01"))
    place = writer.append(b'{"a":1}')
    moved = Config(output=OutputSettings(tmp_path / "moved.db", tmp_path / "s.md"), workspace=root)
    elsewhere = Config(output=moved.output, workspace=tmp_path / "elsewhere")

    def read_up_to(segment: int, offset: int) -> None:
        with closing(Store(moved.output.database_path, moved)) as store:
            store.db.execute("INSERT OR REPLACE INTO spool_positions VALUES ('fetcher-01', ?, ?)", (segment, offset))

    read_up_to(place.segment, place.offset)
    snapshot.require_own_workspace(moved)
    writer.append(b'{"b":2}')
    snapshot.require_own_workspace(moved)  # there is more to read: that is how an interrupted crawl looks
    with pytest.raises(WorkspaceError, match=r"not drawn from the spools in .*elsewhere"):
        snapshot.require_own_workspace(elsewhere)
    read_up_to(place.segment, place.offset + 3)
    with pytest.raises(WorkspaceError, match="not drawn from the spools"):
        snapshot.require_own_workspace(moved)  # as far as a longer spool goes, but no line ends there


def test_a_place_behind_a_line_that_a_killed_writer_left_torn_is_one_of_these_spools(
    config: Config, root: Path
) -> None:
    folder = FileWorkspace(root).layout.results_of("fetcher-01")
    with closing(Writer(folder)) as writer:
        first = writer.append(b'{"a":1}')
    with segment_path(folder, first.segment).open("ab") as file:
        file.write(b'{"torn')
    with closing(Writer(folder)) as writer:
        writer.append(b'{"b":2}')
    with closing(Store(config.output.database_path, config)) as store:
        place = (first.segment, first.offset + 6)
        store.db.execute("INSERT INTO spool_positions VALUES ('fetcher-01', ?, ?)", place)
        snapshot.require_own_workspace(config)
        place = (first.segment, first.offset - 1)  # where reading stops if only the newline is damaged
        store.db.execute("REPLACE INTO spool_positions VALUES ('fetcher-01', ?, ?)", place)
        snapshot.require_own_workspace(config)


if sys.platform != "linux":
    pytest.skip("watches processes by pidfd", allow_module_level=True)
