"""The supervisor: starts the stages as processes, watches them, restarts those that die, and stops them in order.

The stages talk to each other through the workspace and never to the supervisor; it only reads their log lines and
exit codes, and decides by `exit_rules`. A stage that ends with code 1 has logged why, and a restart would not help:
everything stops. After any other death the stage is restarted with a growing pause. A crawl gives up after several
deaths of a stage without progress in between.

A stop goes down the pipeline: scheduler and fetchers first, then the ingest, which applies the results that they left.
After a Ctrl-C each has a deadline (`exit_rules.kill_at`), and what is killed then is done again by the next start.

SIGHUP reads the config again (`reloading`), unless the terminal is gone: then it is a Ctrl-C. Where settings changed,
stages start in the order of `changeover`.
"""

from __future__ import annotations

import logging
import multiprocessing.connection
import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from types import FrameType

from crawler.hooks.delivery import HookSender
from crawler.model.settings import Config
from crawler.observe.live_view import View
from crawler.observe.processes import observe
from crawler.observe.status import Status
from crawler.pace.gate_record import KILL_REASONS
from crawler.resilience.stalls import MOST_STALLS
from crawler.supervise.alert_watch import AlertWatch
from crawler.supervise.changeover import LOOK_EVERY, Changeover
from crawler.supervise.exit_rules import (
    FIRST_PAUSE,
    INTERRUPT_DEADLINE,
    MOST_DEATHS,
    NO_DEATHS,
    STUCK_PATIENCE,
    Deaths,
    Outcome,
    Phase,
    Situation,
    Verdict,
    after_death,
    judge_exit,
    kill_at,
    next_phase,
)
from crawler.supervise.outage_watch import OutageWatch
from crawler.supervise.progress import has_unapplied_results, stage_progress
from crawler.supervise.rate_watch import RateWatch
from crawler.supervise.reloading import ConfigReader, LoadAgain
from crawler.supervise.stage_process import StageChild, StageSpec, exit_words, start_stage
from crawler.supervise.stall_watch import StallWatch
from crawler.supervise.suspension import are_requests_paused, resume_stages, suspend_stages
from crawler.supervise.watchdog import Watchdog
from crawler.workspace.control import has_terminal, is_terminal_gone
from crawler.workspace.door import StoppedWhileAway, Workspace
from crawler.workspace.runs import RunStatus, read_run, read_run_text

log = logging.getLogger("sumi.supervisor")

_SUSPEND_PATIENCE = 10.0  # seconds for the requests in flight, after Ctrl-Z
_NETWORK_EVERY = 0.25  # seconds between looks at the fetchers' questions; log lines wake the supervisor far more often
_SETTLED_AFTER = 2.0  # seconds after the start: by then every domain has its first window
_STAGES_EVERY = 2.0  # seconds between looks for stages that stand still or have grown
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_AGAIN = " A second Ctrl-C ends at once."


@dataclass(slots=True)
class _Stage:
    """One stage under supervision, alive or not."""

    spec: StageSpec
    child: StageChild | None = None
    started_at: float = 0.0
    start_at: float = 0.0  # not earlier
    deaths: Deaths = NO_DEATHS
    is_over: bool = False  # not to be started again
    is_parked: bool = False  # stopped by its flag file
    asked_at: float | None = None  # when it was asked to end
    is_given_up: bool = False  # it did not, and was killed
    is_killed: bool = False  # by the watchdog, or to be replaced: no fault of its own
    is_replaced: bool = False  # it was asked to end, and is to be started again under another config
    is_surplus: bool = False  # the config wants fewer of its kind

    def waits_for_start(self) -> bool:
        return self.child is None and not self.is_over and not self.is_parked


@dataclass(repr=False)  # `signal.signal` makes the text of every handler, and so of the whole config
class Supervisor:
    """Keeps stages alive. `run` returns when all of them have ended.

    `owns_run`: these are all stages of a crawl, which ends with its run or by a stop flag. Otherwise the stages end by
    themselves, with a run that is supervised elsewhere or by a stop flag; only those that die are restarted.
    `on_settled` is called once, when the stages have worked for a while: there is time then, for what can wait.
    `on_completed` is called once the run is completed, in the map too, while the stages end.
    `load_again` reads the config's file once more, and `specs_of` makes the stages of a config; without them a SIGHUP
    is a Ctrl-C.
    """

    config: Config
    workspace: Workspace
    specs: list[StageSpec]
    view: View
    log_level: int = logging.WARNING
    first_pause: float = FIRST_PAUSE
    owns_run: bool = True
    on_settled: Callable[[], None] = lambda: None
    on_completed: Callable[[], None] = lambda: None
    load_again: LoadAgain | None = None
    specs_of: Callable[[Config], list[StageSpec]] | None = None
    signals: int = 0
    _stages: list[_Stage] = field(init=False)
    _phase: Phase = field(default=Phase.RUNNING, init=False)
    _outcome: Outcome = field(default=Outcome.COMPLETED, init=False)

    def __post_init__(self) -> None:
        self._stages = [_Stage(spec) for spec in self.specs]
        self._shown_at = time.monotonic() - self.view.every + 0.3  # something to see within half a second
        self._is_status_wanted = False
        self._is_suspend_wanted = False
        self._is_watched = True
        self._interrupted_at: float | None = None  # when the first signal came
        self._reader = ConfigReader(self.load_again, self.workspace) if self.load_again and self.specs_of else None
        self._had_terminal = has_terminal()
        self._network_seen_at = self._stages_seen_at = 0.0
        self._settles_at: float | None = time.monotonic() + _SETTLED_AFTER
        self._changeover = self._begin_changeover()
        self._stalls = StallWatch(self.config.resilience, self.workspace)
        self._outages = OutageWatch(self.config, self.workspace)
        self._watchdog = Watchdog(self.config.network, self.workspace)
        self._alerts = AlertWatch(self.workspace, HookSender(self.config, self.workspace)) if self.owns_run else None
        self._rates = RateWatch(self.workspace, self.config.workspace) if self.owns_run else None
        self._run_before = read_run_text(self.workspace)

    def run(self) -> Outcome:
        """Raises StoppedWhileAway: nobody can say how the stages are, and what they have not written is lost anyway."""
        self.workspace.endure(lambda: self.signals > 0)
        previous = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        previous[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._on_hangup)
        previous[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, self._on_status_signal)
        previous[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._on_suspend_signal)
        try:
            while self._phase is not Phase.ENDED:
                self.step(time.monotonic())
            is_sound = self._outcome not in (Outcome.FAILED, Outcome.BROKEN)
            if self.signals < 2 and is_sound:
                self._apply_remaining_results()
            if is_sound:
                self._show()
            return self._outcome
        finally:
            self._kill_all()
            self._outages.close()
            if self._alerts is not None:
                with suppress(StoppedWhileAway):
                    self._alerts.finish()
            if self._rates is not None:
                self._rates.close()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def step(self, now: float) -> None:
        """One round: start, wait, read, judge, show."""
        if self.signals >= 2:
            log.warning("Ending at once; the requests in flight are made again next time")
            self._kill_all()
            self._outcome = Outcome.INTERRUPTED
            self._phase = Phase.ENDED
            return
        if self._phase is Phase.RUNNING:
            self._start_due_stages(now)
            if self.signals or (self.owns_run and self.workspace.is_flagged("stop")):
                self._interrupt()
        if self._phase is Phase.RUNNING and self._reader is not None and self._reader.is_due(now):
            self._reload(self._reader)
        if self._is_status_wanted:
            self._say_status()
        if self._is_suspend_wanted:
            self._suspend()
        self._wait(now)
        if self._rates is not None:
            self._rates.look(time.monotonic())
        if self._phase is Phase.RUNNING:
            self._watch_network()
            self._watch_stages()
            self._settle()
            if self._alerts is not None:
                self._alerts.step(time.monotonic())
        if self._interrupted_at is None:  # else their deadline is near, and a mark may take seconds
            self._kill_stuck_fetchers()
        self._judge_exits(time.monotonic())
        self._advance_phase(time.monotonic())
        if time.monotonic() - self._shown_at >= self.view.every:
            self._show()

    # -- starting ------------------------------------------------------------------------------------

    def _start_due_stages(self, now: float) -> None:
        for stage in self._stages:
            if stage.is_parked and not self.workspace.is_flagged("stop", stage.spec.stage):
                stage.is_parked = False
                stage.start_at = now
            if stage.waits_for_start() and now >= stage.start_at and self._is_its_turn(stage):
                self._start(stage, now)

    def _is_its_turn(self, stage: _Stage) -> bool:
        """May it start, as far as settings have changed (`changeover`)?"""
        if self._changeover is None or stage.spec.stage not in ("scheduler", "fetcher"):
            return True
        other = "fetcher" if stage.spec.stage == "scheduler" else "scheduler"
        if any(each.is_replaced and each.child is not None and each.spec.stage == other for each in self._stages):
            return False
        if stage.spec.stage == "scheduler":
            return True
        if self._changeover.is_over():
            self._changeover = None
        return self._changeover is None

    def _start(self, stage: _Stage, now: float) -> None:
        stage.child = start_stage(stage.spec, self.log_level, self.config.workspace)
        stage.started_at = now
        stage.asked_at = None
        stage.is_given_up = False
        stage.is_replaced = False

    # -- another config ------------------------------------------------------------------------------

    def _reload(self, reader: ConfigReader) -> None:
        """Read the config again; if it changed, let every stage end and start it again under the new one."""
        config = reader.read(self.config)
        if config is None or self.specs_of is None:
            return
        has_changed = config.config_hash != self.config.config_hash or self._changeover is not None
        self.config, self.specs = config, self.specs_of(config)
        self._changeover = self._begin_changeover() if has_changed else None
        if self._alerts is not None:
            self._alerts.use(config)
        for kind in dict.fromkeys(stage.spec.stage for stage in self._stages):
            old = [stage for stage in self._stages if stage.spec.stage == kind and not stage.is_over]
            new = [spec for spec in self.specs if spec.stage == kind]
            for stage, spec in zip(old, new, strict=False):
                stage.spec, stage.is_surplus = spec, False
                self._ask_to_be_replaced(stage)
            for stage in old[len(new) :]:
                stage.is_surplus = True
                self._ask_to_be_replaced(stage)
            self._stages += [_Stage(spec) for spec in new[len(old) :]]
        self._outages.close()
        self._stalls = StallWatch(config.resilience, self.workspace)
        self._outages = OutageWatch(config, self.workspace)
        self._watchdog = Watchdog(config.network, self.workspace)

    def _begin_changeover(self) -> Changeover | None:
        """None: there is no scheduler among these stages, and so nobody whom fetchers could wait for."""
        has_scheduler = any(spec.stage == "scheduler" for spec in self.specs)
        return Changeover(self.config, self.workspace) if has_scheduler else None

    def _ask_to_be_replaced(self, stage: _Stage) -> None:
        """Ask it to end after its batch. It is asked again if it had been before: it may be about another config."""
        if stage.child is not None:
            stage.is_killed = stage.is_replaced = True
            stage.asked_at = time.monotonic()
            stage.child.ask_to_be_replaced()
        elif stage.is_surplus:
            stage.is_over = True

    # -- watching ------------------------------------------------------------------------------------

    def _wait(self, now: float) -> None:
        """Sleep until a stage logs something or ends, or something else is due; then pass on the log lines."""
        due = [0.5, self._shown_at + self.view.every - now, *(at - now for _, at in self._kill_times())]
        if self._phase is Phase.RUNNING:
            due += [
                max(stage.start_at - now, 0.0 if self._changeover is None else LOOK_EVERY)
                for stage in self._stages
                if stage.waits_for_start()
            ]
        handles: list[Connection | int] = []
        for stage in self._stages:
            handles += stage.child.handles() if stage.child else []
        if handles:
            multiprocessing.connection.wait(handles, timeout=max(0.0, min(due)))
        else:
            time.sleep(max(0.0, min(due)))
        for stage in self._stages:
            self._pass_on_lines(stage)

    def _pass_on_lines(self, stage: _Stage) -> None:
        for line in stage.child.read_lines() if stage.child else ():
            self.say(line)

    def _watch_network(self) -> None:
        """Answer the fetchers' questions about the network; give up if it is out for too long."""
        now = time.monotonic()
        if now - self._network_seen_at < _NETWORK_EVERY:
            return
        self._network_seen_at = now
        if self._outages.step():
            log.error(
                "The network was out for longer than [resilience] give-up-after allows; giving up. Everything crawled "
                "so far is saved: run the same command again when it is back"
            )
            self._stop(Outcome.FAILED)

    def _watch_stages(self) -> None:
        """Restart stages that stand still though work is due; replace fetchers that have outgrown their memory."""
        now = time.monotonic()
        if now - self._stages_seen_at < _STAGES_EVERY:
            return
        self._stages_seen_at = now
        alive = {stage.child.pid: stage for stage in self._stages if stage.child is not None and stage.child.pid}
        started = {pid: int(stage.started_at * 1e9) for pid, stage in alive.items()}
        for pid, words in self._stalls.find_stalled(started, time.monotonic_ns()):
            self._heal(alive[pid], words)
        for pid, size in self._stalls.find_outgrown(alive):
            self._shrink(alive[pid], size)

    def _settle(self) -> None:
        if self._settles_at is not None and time.monotonic() >= self._settles_at:
            self._settles_at = None
            self.on_settled()

    def _heal(self, stage: _Stage, words: str) -> None:
        """A stage is stalled: diagnose, and restart it; its domains and results are taken over. Or end with a word."""
        name = stage.spec.name
        log.warning("Stall detected: the %s stands still: %s", name, words)
        for finding in self._outages.diagnose():
            log.warning("  %s", finding)
        if self._stalls.count(name, time.monotonic()):
            log.error(
                "The %s stood still for the %drd time; giving up. Everything crawled so far is saved", name, MOST_STALLS
            )
            self._stop(Outcome.BROKEN)
        if stage.child is not None:
            stage.is_killed = True
            stage.child.kill()

    def _shrink(self, stage: _Stage, size: int) -> None:
        """A fetcher ends between visits, and another one takes its place; without any other stage nothing goes on."""
        name, megabytes = stage.spec.name, size // (1024 * 1024)
        if stage.spec.stage == "fetcher":
            if stage.asked_at is None:
                log.info("The %s has grown to %d MiB; replacing it", name, megabytes)
                stage.is_killed = True
                self._ask_to_end([stage])
        elif stage.asked_at is None:
            log.error(
                "The %s has grown to %d MiB, more than [resilience] max-memory allows; giving up. Everything "
                "crawled so far is saved",
                name,
                megabytes,
            )
            self._stop(Outcome.BROKEN)

    def _kill_stuck_fetchers(self) -> None:
        """Kill fetchers that a page has brought to a stop. Their successors know which page it was."""
        fetchers = {
            stage.child.pid: stage
            for stage in self._stages
            if stage.spec.stage == "fetcher" and stage.child is not None and stage.child.pid is not None
        }
        for work, reason in self._watchdog.find_stuck(set(fetchers), time.monotonic_ns()):
            stage = fetchers[work.pid]
            stage.is_killed = True
            self._watchdog.kill(work, reason)
            log.warning(
                "The %s was stopped by a page of %s (%s); replacing it",
                stage.spec.name,
                work.domain,
                KILL_REASONS[reason],
            )

    def _judge_exits(self, now: float) -> None:
        for stage in self._stages:
            if stage.child is not None and stage.child.has_ended():
                self._pass_on_lines(stage)
                code = stage.child.close()
                stage.child = None
                situation = self._situation(stage)
                verdict = judge_exit(stage.spec.stage, code, situation)
                if stage.is_killed and situation.is_undisturbed and verdict is not Verdict.FAIL_ALL:
                    verdict = Verdict.RESTART  # it was replaced; how it ended does not matter
                if stage.is_surplus and situation.is_undisturbed:
                    verdict = Verdict.OVER
                self._act_on(verdict, stage, code, now)

    def _situation(self, stage: _Stage) -> Situation:
        return Situation(
            self._phase,
            self.owns_run,
            self._is_run_completed(),
            self.workspace.is_flagged("stop"),
            self.workspace.is_flagged("stop", stage.spec.stage),
        )

    def _is_run_completed(self) -> bool:
        """Has a run been completed, or has it reached a limit, since this supervisor began?"""
        run = read_run(self.workspace)
        has_changed = read_run_text(self.workspace) != self._run_before
        return has_changed and run is not None and run.is_over

    def _act_on(self, verdict: Verdict, stage: _Stage, code: int, now: float) -> None:
        if verdict is Verdict.RESTART:
            self._restart_later(stage, code, now)
            return
        if verdict is Verdict.PARK:
            stage.is_parked = True
            log.warning("The %s stopped because of a flag file; it is restarted when that is removed", stage.spec.name)
            return
        stage.is_over = True
        if verdict is Verdict.FAIL_ALL:
            self._stop(Outcome.FAILED)
        elif verdict is Verdict.RUN_COMPLETED:
            self._stop(Outcome.COMPLETED)
            run = read_run(self.workspace)
            if run is not None and run.status is RunStatus.COMPLETED:  # and has not only reached a limit
                self.on_completed()
        elif verdict is Verdict.INTERRUPT_ALL:
            self._interrupt()

    def _restart_later(self, stage: _Stage, code: int, now: float) -> None:
        """Restart a stage that died, after a pause, or give up."""
        if stage.is_killed:
            stage.is_killed = False
            stage.start_at = now
            return
        progress = stage_progress(stage.spec.stage, self.workspace, self.config.map_place)
        stage.deaths = after_death(stage.deaths, now - stage.started_at, progress, self.first_pause)
        if self.owns_run and stage.deaths.in_a_row >= MOST_DEATHS:
            stage.is_over = True
            log.error(
                "The %s %s for the %dth time in a row without progress; giving up. Everything crawled so far is saved: "
                "fix the cause, then run the same command again",
                stage.spec.name,
                exit_words(code),
                stage.deaths.in_a_row,
            )
            self._stop(Outcome.BROKEN)
            return
        stage.start_at = now + stage.deaths.pause
        log.warning("The %s %s; restarting it in %.1f s", stage.spec.name, exit_words(code), stage.deaths.pause)

    # -- stopping ------------------------------------------------------------------------------------

    def _interrupt(self) -> None:
        """Stop, and say so at once: a request in flight may take long."""
        line = "Stopping: finishing what is in flight..." + (_AGAIN if self.signals else "")
        if self.log_level == logging.WARNING:
            self.say(line)
        log.info("%s", line)
        self._stop(Outcome.INTERRUPTED)

    def _stop(self, outcome: Outcome) -> None:
        """Restart nothing from now on; scheduler and fetchers finish what is in flight."""
        if self._phase is Phase.RUNNING:
            self._outcome = outcome
            self._phase = Phase.STOPPING
            self._ask_to_end(stage for stage in self._stages if stage.spec.stage != "ingest")
        elif self._outcome is Outcome.COMPLETED:
            self._outcome = outcome

    def _ask_to_end(self, stages: Iterable[_Stage]) -> None:
        for stage in stages:
            if stage.child is not None and (stage.asked_at is None or stage.is_replaced):
                stage.is_replaced = False
                stage.asked_at = time.monotonic()
                stage.child.ask_to_end()

    def _advance_phase(self, now: float) -> None:
        alive = [stage for stage in self._stages if stage.child is not None]
        for stage, at in self._kill_times():
            if stage.child is not None and now >= at:
                log.warning("The %s does not end; killing it. Its unfinished work is done again", stage.spec.name)
                stage.child.kill()
                stage.is_given_up = True
        if all(stage.is_over for stage in self._stages):
            self._phase = Phase.ENDED
            return
        self._phase = next_phase(self._phase, [stage.spec.stage for stage in alive])
        if self._phase is Phase.DRAINING:
            self._ask_to_end(alive)

    def _kill_times(self) -> list[tuple[_Stage, float]]:
        """The stages that were asked to end, each with the moment at which it is killed."""
        return [
            (stage, kill_at(stage.spec.stage, stage.asked_at, self._interrupted_at, is_stuck=self._is_stuck(stage)))
            for stage in self._stages
            if stage.child is not None and stage.asked_at is not None and not stage.is_given_up
        ]

    def _is_stuck(self, stage: _Stage) -> bool:
        """A fetcher that is stuck in one piece of work does not hear that it should end."""
        pid = stage.child.pid if stage.child is not None else None
        return pid is not None and self._watchdog.is_busy(pid, time.monotonic_ns(), STUCK_PATIENCE / 2)

    def _apply_remaining_results(self) -> None:
        """If the ingest died before it applied all results, run one more ingest, to the end of them.

        After a Ctrl-C it has no more time than the first one had: the next start applies the rest.
        """
        spec = next((spec for spec in self.specs if spec.stage == "ingest"), None)
        if spec is None or self._is_out_of_time():
            return
        if not has_unapplied_results(self.workspace, self.config.map_place):
            return
        last = _Stage(replace(spec, arguments=(*spec.arguments, True)))
        self._stages = [last]
        self._start(last, time.monotonic())
        while last.child is not None and self.signals < 2 and not self._is_out_of_time():
            self._wait(time.monotonic())
            self._judge_exits(time.monotonic())

    def _is_out_of_time(self) -> bool:
        return self._interrupted_at is not None and time.monotonic() >= self._interrupted_at + INTERRUPT_DEADLINE

    def _kill_all(self) -> None:
        for stage in self._stages:
            if stage.child is not None:
                stage.child.kill()
        for stage in self._stages:
            if stage.child is not None:
                stage.child.close()
                stage.child = None

    # -- the user ------------------------------------------------------------------------------------

    def say(self, line: str) -> None:
        """Show a log line."""
        if self._is_watched:
            try:
                self.view.say(line)
            except OSError:
                self._finish_unwatched()

    def _show(self) -> None:
        self._shown_at = time.monotonic()
        if self._is_watched:
            try:
                self.view.show(observe(self.workspace, with_locks=False), self._shown_at)
            except OSError:
                self._finish_unwatched()

    def _finish_unwatched(self) -> None:
        """The terminal or the pipe is gone: finish and save as after a Ctrl-C."""
        self._is_watched = False
        self.signals = max(self.signals, 1)

    def _say_status(self) -> None:
        """The answer to SIGUSR1."""
        self._is_status_wanted = False
        for line, _ in Status(self.workspace, self.config.map_place).lines():
            self.say(line)

    def _suspend(self) -> None:
        """The answer to Ctrl-Z: pause the stages, which are out of the terminal's reach, then stop this process."""
        self.say("Pausing before this process stops...")
        flag = suspend_stages(self.workspace, None if self.owns_run else "fetcher")
        try:
            deadline = time.monotonic() + _SUSPEND_PATIENCE
            while time.monotonic() < deadline and self.signals == 0 and not are_requests_paused(self.workspace):
                self._wait(time.monotonic())
                self._judge_exits(time.monotonic())
            if self._is_watched:
                self.view.suspend()
            os.kill(os.getpid(), signal.SIGSTOP)  # returns with `fg` or `bg`
        finally:
            resume_stages(self.workspace, flag)
            self._is_suspend_wanted = False
        self.say("Going on.")
        self._show()

    def _on_suspend_signal(self, number: int, frame: FrameType | None) -> None:
        self._is_suspend_wanted = True

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.signals += 1
        if self._interrupted_at is None:
            self._interrupted_at = time.monotonic()

    def _on_hangup(self, number: int, frame: FrameType | None) -> None:
        if self._reader is None or is_terminal_gone(self._had_terminal):
            self._on_signal(number, frame)
        else:
            self._reader.is_wanted = True

    def _on_status_signal(self, number: int, frame: FrameType | None) -> None:
        self._is_status_wanted = True
