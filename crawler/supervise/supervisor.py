"""The supervisor: starts the stages as processes, watches them, restarts the dead, and knows when it is over.

The stages talk through files and never to the supervisor; it only listens to their log lines and exit codes. A stage
that ends with code 1 has said why, and starting it again would not help: everything stops. Any other death is
made good with a growing pause, until a stage has died several times without getting anywhere.

Stopping goes down the pipeline: scheduler and fetchers first, then the ingest, which takes in what they left.
"""

from __future__ import annotations

import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import Enum, auto
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

from crawler.database.frontier import Frontier, MapAway
from crawler.model.errors import SumiError, sentence
from crawler.model.settings import Config
from crawler.observe.live import View
from crawler.observe.processes import look
from crawler.observe.status import Status
from crawler.supervise.pool import memory_at_hand
from crawler.workspace.door import STAGES, Held, RoleTaken, Workspace, WorkspaceError
from crawler.workspace.log import Cursor
from crawler.workspace.opening import open_workspace
from crawler.workspace.runs import RunStatus, read_note, read_run

log = logging.getLogger("sumi.supervisor")

FIRST_PAUSE = 0.5  # seconds before a stage that died is started again; doubled by every further death
LONGEST_PAUSE = 30.0
SOUND_AFTER = 60.0  # a stage that lived this long begins with a short pause again
MOST_DEATHS = 5  # in a row, without getting anywhere
PATIENCE = 60.0  # seconds for a stage to finish what is in flight
SAID_WHY = 1
CRASHED = 70
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN = " A second Ctrl-C leaves at once."


class Outcome(Enum):
    COMPLETED = auto()
    INTERRUPTED = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class StageSpec:
    """A process to keep alive. `work` runs in it and returns its exit code; it must be importable by name."""

    name: str
    stage: str
    work: Callable[..., int]
    arguments: tuple[object, ...] = ()


@dataclass(slots=True)
class _Stage:
    spec: StageSpec
    process: BaseProcess | None = None
    channel: Connection | None = None
    started_at: float = 0.0
    start_at: float = 0.0
    pause: float = FIRST_PAUSE
    deaths: int = 0  # in a row, without progress
    progress: object = None  # as it was at the last death
    is_over: bool = False  # not to be started again
    is_parked: bool = False  # stopped by its flag file; starts again when that is gone
    told_at: float | None = None

    @property
    def is_alive(self) -> bool:
        return self.process is not None


class _Phase(Enum):
    RUNNING = auto()
    STOPPING = auto()  # scheduler and fetchers were told, the ingest goes on
    LAST = auto()  # the ingest was told
    ENDED = auto()


@dataclass
class Supervisor:
    """Keeps the stages of one crawl alive. `run` returns when all of them have ended."""

    config: Config
    workspace: Workspace
    stages: list[StageSpec]
    view: View
    log_level: int = logging.WARNING
    first_pause: float = FIRST_PAUSE
    signals: int = 0
    _running: list[_Stage] = field(default_factory=list)
    _phase: _Phase = _Phase.RUNNING
    _outcome: Outcome = Outcome.COMPLETED

    def __post_init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._running = [_Stage(spec, pause=self.first_pause) for spec in self.stages]
        self._shown_at = time.monotonic()
        self._is_asked = False
        self._is_seen = True
        self._frontier = Frontier(self.config.output.database_path)
        self._note_before = read_note(self.workspace)

    # -- life ----------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        previous = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        previous[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, self._on_status_signal)
        try:
            while self._phase is not _Phase.ENDED:
                self.step(time.monotonic())
            if self.signals < 2 and self._outcome is not Outcome.FAILED:
                self._take_in_the_rest()
            if self._outcome is not Outcome.FAILED:
                self._show()
            return self._outcome
        finally:
            self._kill_all()
            self._frontier.close()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def step(self, now: float) -> None:
        """One look around."""
        if self.signals >= 2:
            log.warning("Leaving at once; what was in flight is done again next time")
            self._kill_all()
            self._outcome = Outcome.INTERRUPTED
            self._phase = _Phase.ENDED
            return
        if self._phase is _Phase.RUNNING:
            self._start_what_is_due(now)
            if self.signals or self.workspace.is_flagged("stop"):
                self._acknowledge("Stopping: finishing what is in flight..." + (_AGAIN if self.signals else ""))
                self._stop(Outcome.INTERRUPTED)
        if self._is_asked:
            self._answer()
        self._wait(now)
        self._bury(time.monotonic())
        self._move_on(time.monotonic())
        if time.monotonic() - self._shown_at >= self.view.every:
            self._show()

    def _show(self) -> None:
        self._shown_at = time.monotonic()
        if self._is_seen:
            try:
                self.view.show(look(self.workspace, with_locks=False), self._shown_at)
            except OSError:
                self._lose_sight()

    def say(self, line: str) -> None:
        """A log line for whoever watches."""
        if self._is_seen:
            try:
                self.view.say(line)
            except OSError:
                self._lose_sight()

    def _acknowledge(self, line: str) -> None:
        """Answer whoever just gave an order: at once, since obeying may take as long as a request does."""
        if self.log_level == logging.WARNING:
            self.say(line)
        log.info("%s", line)

    def _lose_sight(self) -> None:
        """The terminal or the pipe has gone: nobody watches, so finish and save as after a Ctrl-C."""
        self._is_seen = False
        self.signals = max(self.signals, 1)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.signals += 1

    def _on_status_signal(self, number: int, frame: FrameType | None) -> None:
        self._is_asked = True

    def _answer(self) -> None:
        """SIGUSR1: say how everything is."""
        self._is_asked = False
        for line, _ in Status(self.workspace, self.config.output.database_path).lines():
            self.say(line)

    # -- starting ------------------------------------------------------------------------------------

    def _start_what_is_due(self, now: float) -> None:
        for stage in self._running:
            if stage.is_parked and not self.workspace.is_flagged("stop", stage.spec.stage):
                stage.is_parked = False
                stage.start_at = now
            if not stage.is_alive and not stage.is_over and not stage.is_parked and now >= stage.start_at:
                self._start(stage, now)

    def _start(self, stage: _Stage, now: float) -> None:
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=_stage_main, args=(stage.spec, theirs, self.log_level, self.config.workspace), name=stage.spec.name
        )
        # A Ctrl-C at the terminal goes to everyone in the foreground; a stage that is just being born must not
        # hear it before it stands on its own.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with memory_at_hand() if stage.spec.stage == "fetcher" else nullcontext():
                process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        theirs.close()
        stage.process, stage.channel = process, ours
        stage.started_at = now
        stage.told_at = None

    # -- watching ------------------------------------------------------------------------------------

    def _wait(self, now: float) -> None:
        """Sleep until a stage says something or dies, or it is time for something else."""
        alive = [stage for stage in self._running if stage.process is not None]
        handles: list[Connection | int] = []
        for stage in alive:
            assert stage.process is not None
            handles.append(stage.process.sentinel)
            if stage.channel is not None:
                handles.append(stage.channel)
        patience = max(0.0, min(0.5, self._shown_at + self.view.every - now))
        starts = [s.start_at - now for s in self._running if not s.is_alive and not s.is_over and not s.is_parked]
        patience = max(0.0, min([patience, *starts])) if self._phase is _Phase.RUNNING else patience
        if handles:
            multiprocessing.connection.wait(handles, timeout=patience)
        else:
            time.sleep(patience)
        for stage in alive:
            self._hear(stage)

    def _hear(self, stage: _Stage) -> None:
        """Pass on a stage's log lines."""
        try:
            while stage.channel is not None and stage.channel.poll():
                self.say(stage.channel.recv_bytes().decode("utf-8", "replace"))
        except (EOFError, OSError):
            if stage.channel is not None:
                stage.channel.close()
            stage.channel = None

    def _bury(self, now: float) -> None:
        for stage in self._running:
            process = stage.process
            if process is None or process.is_alive():
                continue
            self._hear(stage)
            process.join()
            code = process.exitcode or 0
            process.close()
            stage.process = None
            if stage.channel is not None:
                stage.channel.close()
                stage.channel = None
            self._judge(stage, code, now)

    def _judge(self, stage: _Stage, code: int, now: float) -> None:
        """A stage has ended: is that as it should be?"""
        if self._phase is not _Phase.RUNNING:
            stage.is_over = True
            if code == SAID_WHY and self._outcome is Outcome.COMPLETED:
                self._outcome = Outcome.FAILED
            return
        if code == SAID_WHY:
            stage.is_over = True
            self._stop(Outcome.FAILED)
        elif code in (0, 130, 143) and self._is_completed():
            stage.is_over = True
            if stage.spec.stage == "scheduler":
                self._stop(Outcome.COMPLETED)
        elif code in (0, 130, 143) and self.workspace.is_flagged("stop"):
            stage.is_over = True  # it saw the flag before this supervisor did
        elif code in (0, 130, 143) and self.workspace.is_flagged("stop", stage.spec.stage):
            stage.is_parked = True
            log.warning("The %s stopped because of a flag file; it starts again when that is removed", stage.spec.name)
        else:
            self._mourn(stage, code, now)

    def _mourn(self, stage: _Stage, code: int, now: float) -> None:
        """A stage died: start it again, later and later, or give up."""
        progress = self._progress(stage.spec.stage)
        stage.deaths = stage.deaths + 1 if progress == stage.progress or stage.deaths == 0 else 1
        stage.progress = progress
        how = f"was killed by {_signal_name(-code)}" if code < 0 else f"ended with code {code}"
        if stage.deaths >= MOST_DEATHS:
            stage.is_over = True
            log.error(
                "The %s %s for the %dth time in a row without getting anywhere; giving up. All that was crawled is "
                "saved: mend what is wrong and give the same command again",
                stage.spec.name,
                how,
                stage.deaths,
            )
            self._stop(Outcome.FAILED)
            return
        if now - stage.started_at > SOUND_AFTER:
            stage.pause = self.first_pause
        stage.start_at = now + stage.pause
        log.warning("The %s %s; starting it again in %.1f s", stage.spec.name, how, stage.pause)
        stage.pause = min(stage.pause * 2, LONGEST_PAUSE)

    def _progress(self, stage: str) -> object:
        """Something that changes whenever this stage gets something done."""
        if stage == "ingest":
            return sorted(self._positions().items())
        results = self.workspace.results
        return [results.end(name) for name in results.writers() if name != "scheduler"]

    def _positions(self) -> dict[str, Cursor]:
        try:
            if not self._frontier.is_open or self._frontier.has_been_replaced():
                self._frontier.open()
            return self._frontier.positions()
        except MapAway:
            self._frontier.close()
            return {}

    def _is_completed(self) -> bool:
        """Has a run been completed since this supervisor began?"""
        run = read_run(self.workspace)
        is_news = read_note(self.workspace) != self._note_before
        return is_news and run is not None and run.status is RunStatus.COMPLETED

    # -- stopping ------------------------------------------------------------------------------------

    def _stop(self, outcome: Outcome) -> None:
        """No more starting; scheduler and fetchers finish what they have in hand."""
        self._outcome = outcome
        self._phase = _Phase.STOPPING
        self._tell(stage for stage in self._running if stage.spec.stage != "ingest")

    def _tell(self, stages: Iterable[_Stage]) -> None:
        for stage in stages:
            if stage.process is not None and stage.process.pid is not None and stage.told_at is None:
                stage.told_at = time.monotonic()
                os.kill(stage.process.pid, signal.SIGTERM)

    def _move_on(self, now: float) -> None:
        if self._phase is _Phase.RUNNING:
            return
        for stage in self._running:
            if stage.process is not None and stage.told_at is not None and now - stage.told_at > PATIENCE:
                log.warning("The %s does not end; killing it. What it had in hand is done again", stage.spec.name)
                stage.process.kill()
                stage.told_at = now
        alive = [stage for stage in self._running if stage.is_alive]
        if self._phase is _Phase.STOPPING and all(stage.spec.stage == "ingest" for stage in alive):
            self._phase = _Phase.LAST
            self._tell(alive)
        if not alive:
            self._phase = _Phase.ENDED

    def _take_in_the_rest(self) -> None:
        """If results are left that nobody took in (the ingest died last), one more ingest does."""
        specs = [stage.spec for stage in self._running if stage.spec.stage == "ingest"]
        if not specs or not self._has_unread_results():
            return
        spec = specs[0]
        last = _Stage(StageSpec(spec.name, "ingest", spec.work, (*spec.arguments, True)))
        self._running = [last]
        self._start(last, time.monotonic())
        while last.is_alive and self.signals < 2:
            self._wait(time.monotonic())
            self._bury(time.monotonic())

    def _has_unread_results(self) -> bool:
        positions = self._positions()
        results = self.workspace.results
        for name in results.writers():
            reader = results.reader(name, positions.get(name, Cursor()))
            try:
                if reader.read(1):
                    return True
            finally:
                reader.close()
        return False

    def _kill_all(self) -> None:
        for stage in self._running:
            if stage.process is not None:
                stage.process.kill()
        for stage in self._running:
            if stage.process is not None:
                stage.process.join()
                stage.process = None


# -- in the stages' own processes ---------------------------------------------------------------------------


def _stage_main(spec: StageSpec, channel: Connection, log_level: int, workspace: Path) -> None:
    """What a stage's process does: stand on its own, log to the supervisor, work, say why it cannot."""
    from crawler.observe.logs import configure

    os.setsid()  # the terminal's Ctrl-C is the supervisor's to hear, and to pass on once
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_die_with_parent, daemon=True).start()
    sending = threading.Lock()

    def give(line: str) -> None:
        with sending:
            channel.send_bytes(line.encode())

    configure(log_level, give)
    os._exit(_exit_code(spec, workspace))


def _exit_code(spec: StageSpec, workspace: Path) -> int:
    try:
        return spec.work(*spec.arguments)
    except (SumiError, OSError) as problem:
        log.error("The %s cannot go on: %s", spec.name, sentence(problem))
        return SAID_WHY
    except KeyboardInterrupt:
        return 130
    except Exception as problem:
        place = open_workspace(workspace).record_crash(spec.name, traceback.format_exc())
        log.error("The %s crashed: %s: %s (details in %s)", spec.name, type(problem).__name__, problem, place)
        return CRASHED


def _die_with_parent() -> None:
    """A stage without its supervisor would hold its role against the next crawl. Dying is safe at any moment."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)


def run_scheduler_stage(config: Config) -> int:
    from crawler.schedule.scheduler import run_scheduler

    return run_scheduler(config)


def run_fetcher_stage(config: Config, index: int, workers: int) -> int:
    from crawler.fetch.fetcher import run_fetcher
    from crawler.supervise.pool import give_way

    give_way()
    return run_fetcher(config, index, workers)


def run_ingest_stage(config: Config, drain: bool = False) -> int:
    from ingest.loop import run_ingest

    return run_ingest(config, drain=drain)


def stages_of(config: Config, workers: int) -> list[StageSpec]:
    """All stages of a crawl."""
    fetchers = [
        StageSpec(f"fetcher {index + 1} of {workers}", "fetcher", run_fetcher_stage, (config, index, workers))
        for index in range(workers)
    ]
    return [
        StageSpec("ingest", "ingest", run_ingest_stage, (config,)),
        StageSpec("scheduler", "scheduler", run_scheduler_stage, (config,)),
        *fetchers,
    ]


# -- before the start ---------------------------------------------------------------------------------------


def require_no_stages(workspace: Workspace, patience: float = 3.0) -> None:
    """Raise WorkspaceError if stages are at work here; those of a crawl that was just killed get time to vanish."""
    deadline = time.monotonic() + patience
    while True:
        found = [stage for stage in look(workspace).stages if stage.is_running]
        if not found:
            return
        if time.monotonic() > deadline:
            names = ", ".join(stage.name + (f" (pid {stage.pid})" if stage.pid else "") for stage in found)
            raise WorkspaceError(
                f"stages are already at work in {workspace.name}, started by hand: {names}; let them work, or end them "
                f"with: sumi-ripple stop --workspace {workspace.name}"
            )
        time.sleep(0.1)


def take_supervision(workspace: Workspace) -> Held:
    """Become the supervisor of a workspace. Raises WorkspaceError."""
    try:
        return workspace.take_role("supervisor")
    except RoleTaken:
        raise WorkspaceError(
            f"a crawl is already under way in {workspace.name}; look at it with: sumi-ripple status --workspace "
            f"{workspace.name}, or give this one a --workspace of its own"
        ) from None


def remove_stop_flags(workspace: Workspace) -> list[str]:
    """Stop flags are for whoever was running when they were set; returns the names of those removed."""
    return [f"stop.{stage}" if stage else "stop" for stage in (None, *STAGES) if workspace.clear_flag("stop", stage)]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
