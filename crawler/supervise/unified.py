"""All stages of a crawl in one process, a thread each: for small machines, tests and notebooks.

The stages are the same, and talk through the same workspace: so spools, map, pace and replay are the same, and either
kind of crawl goes on where the other stopped. What only processes can do is missing: a stage that dies is not started
again (the crawl ends, and nothing is lost), and a page that keeps the parser busy for ever is not cut off.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType

from crawler.model.errors import SumiError, sentence
from crawler.model.settings import Config
from crawler.observe.live_view import View
from crawler.observe.processes import observe
from crawler.observe.status import Status
from crawler.supervise.changeover import LOOK_EVERY, Changeover
from crawler.supervise.exit_rules import CRASHED, EXPLAINED, GRACEFUL, INTERRUPTED, Outcome
from crawler.supervise.outage_watch import OutageWatch
from crawler.supervise.progress import has_unapplied_results
from crawler.supervise.reloading import ConfigReader, LoadAgain
from crawler.workspace.control import StageControl, has_terminal, is_terminal_gone
from crawler.workspace.door import StoppedWhileAway, Workspace
from crawler.workspace.runs import read_run, read_run_text

log = logging.getLogger("sumi.crawl")

_LOOK_EVERY = 0.25  # seconds
_STAGES = ("ingest", "scheduler")  # … and the fetcher, in its turn (`changeover`)
OnControl = Callable[[StageControl], None]


class _StageThread:
    """One stage in a thread. It may be asked to end before its control is there."""

    def __init__(self, name: str, config: Config, on_end: Callable[[], None], workspace: Workspace) -> None:
        self.name = name
        self.code: int | None = None
        self._config = config
        self._on_end = on_end
        self._workspace = workspace
        self._control: StageControl | None = None
        self._asked = ""
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def ask(self, what: str) -> None:
        """`end`: finish and save. `replace`: the same, to be started again."""
        with self._lock:
            if self._asked in ("", "replace") and what != self._asked:
                self._asked = what
                self._pass_on()

    def _run(self) -> None:
        try:
            self.code = _work(self.name, self._config, self._take_control)
        except StoppedWhileAway:
            self.code = INTERRUPTED
        except (SumiError, OSError) as problem:
            log.error("The %s cannot go on: %s", self.name, sentence(problem))
            self.code = EXPLAINED
        except Exception as problem:
            place = self._workspace.record_crash(self.name, traceback.format_exc())
            log.error("The %s crashed: %s: %s (details in %s)", self.name, type(problem).__name__, problem, place)
            self.code = CRASHED
        finally:
            self._on_end()

    def _take_control(self, control: StageControl) -> None:
        with self._lock:
            self._control = control
            self._pass_on()

    def _pass_on(self) -> None:
        if self._control is not None and self._asked == "end":
            self._control.ask_to_end()
        elif self._control is not None and self._asked == "replace":
            self._control.ask_to_be_replaced()


def _work(name: str, config: Config, on_control: OnControl) -> int:
    from crawler.fetch.fetcher import run_fetcher
    from crawler.schedule.scheduler import run_scheduler
    from ingest.loop import run_ingest

    if name == "scheduler":
        return run_scheduler(config, is_supervised=True, on_control=on_control)
    if name == "ingest":
        return run_ingest(config, is_supervised=True, on_control=on_control)
    return run_fetcher(config, is_supervised=True, on_control=on_control)


class UnifiedCrawl:
    """`run` returns when all stages have ended. `config` is the one that the crawl has then.

    `is_program`: this process is ours alone, so that a second Ctrl-C may end it.
    """

    def __init__(
        self,
        config: Config,
        workspace: Workspace,
        view: View,
        *,
        load_again: LoadAgain | None = None,
        is_program: bool = False,
    ) -> None:
        self.config = config
        self._workspace = workspace
        self._view = view
        self._is_program = is_program
        self._reader = ConfigReader(load_again, workspace) if load_again is not None else None
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._wake = threading.Event()
        self._stages: list[_StageThread] = []
        self._changeover: Changeover | None = None
        self._outages = OutageWatch(config, workspace)
        self._before = read_run_text(workspace)
        self._had_terminal = has_terminal()
        self._shown_at = 0.0
        self._shown_in: int | None = None  # the thread that shows lines
        self._is_status_wanted = False
        self._is_replacing = False
        self._ending: Outcome | None = None  # why the stages were asked to end

    def say(self, line: str) -> None:
        """Show a log line, in the one thread that shows anything."""
        self._lines.put(line)
        if threading.get_ident() == self._shown_in:  # it may be about to wait for the engine
            self._show_lines()
        else:
            self._wake.set()

    def interrupt(self) -> None:
        """Finish what is in flight, save, end."""
        self._ending = self._ending or Outcome.INTERRUPTED
        self._wake.set()

    def run(self) -> Outcome:
        self._workspace.endure(lambda: self._ending is not None)
        self._shown_in = threading.get_ident()
        with self._signals():
            try:
                while self._run_stages():
                    self._is_replacing = False
            except StoppedWhileAway:
                self._end_all()
                raise
            except KeyboardInterrupt:
                self.interrupt()
                self._finish()
                raise
            finally:
                self._outages.close()
                self._show_lines()
        if self._ending not in (Outcome.FAILED, Outcome.BROKEN):
            self._apply_remaining_results()
        return self._outcome()

    def _run_stages(self) -> bool:
        """Run all stages until they have ended. True: to be started again, under another config."""
        self._changeover = Changeover(self.config, self._workspace)
        self._stages = [self._start(name) for name in _STAGES]
        self._start_fetcher_in_turn()
        self._finish()
        return self._is_replacing and self._ending is None and not self._is_run_over()

    def _start(self, name: str) -> _StageThread:
        return _StageThread(name, self.config, self._wake.set, self._workspace)

    def _start_fetcher_in_turn(self) -> None:
        """Start the fetcher once the settings are in force: no stage under others is at work any more."""
        is_going_on = self._ending is None and not self._is_replacing and all(each.is_alive for each in self._stages)
        if self._changeover is not None and is_going_on and self._changeover.is_over():
            self._changeover = None
            self._stages.append(self._start("fetcher"))

    def _finish(self) -> None:
        while any(stage.is_alive for stage in self._stages):
            self._wake.wait(_LOOK_EVERY if self._changeover is None else LOOK_EVERY)
            self._wake.clear()
            self._step()
            self._start_fetcher_in_turn()

    def _end_all(self) -> None:
        """Nobody can say how the stages are: end them, all at once."""
        while any(stage.is_alive for stage in self._stages):
            for stage in self._stages:
                stage.ask("end")
            self._wake.wait(_LOOK_EVERY)
            self._wake.clear()

    def _step(self) -> None:
        self._show_lines()
        self._judge()
        if self._ending is None and not self._is_replacing:
            if self._outages.step():
                log.error("The network was out for longer than [resilience] give-up-after allows; giving up")
                self._ending = Outcome.FAILED
            if self._reader is not None and self._reader.is_due(time.monotonic()):
                self._reload(self._reader)
        if self._ending is not None:
            self._ask_to_end()
        if self._is_status_wanted:
            self._is_status_wanted = False
            for line, _ in Status(self._workspace, self.config.map_place).lines():
                self._view.say(line)
        if time.monotonic() - self._shown_at >= self._view.every:
            self._shown_at = time.monotonic()
            self._view.show(observe(self._workspace, with_locks=False), self._shown_at)

    def _judge(self) -> None:
        """A stage has ended: with its run, as it was asked to, by a flag file, or because it cannot go on."""
        for stage in self._stages:
            if stage.is_alive or stage.code is None:
                continue
            if stage.code not in GRACEFUL:
                self._ending = Outcome.BROKEN if stage.code == CRASHED else Outcome.FAILED
            elif self._ending is None and not self._is_replacing and not self._is_run_over():
                self._ending = Outcome.INTERRUPTED

    def _ask_to_end(self) -> None:
        """Scheduler and fetcher first, then the ingest, which applies the results that they left."""
        upstream = [stage for stage in self._stages if stage.name != "ingest"]
        for stage in upstream:
            stage.ask("end")
        if not any(stage.is_alive for stage in upstream):
            for stage in self._stages:
                stage.ask("end")

    def _reload(self, reader: ConfigReader) -> None:
        config = reader.read(self.config)
        if config is None:
            return
        self.config = config
        self._outages.close()
        self._outages = OutageWatch(config, self._workspace)
        self._is_replacing = True
        for stage in self._stages:
            stage.ask("replace")

    def _is_run_over(self) -> bool:
        run = read_run(self._workspace)
        return run is not None and run.is_over and read_run_text(self._workspace) != self._before

    def _outcome(self) -> Outcome:
        if self._ending in (Outcome.FAILED, Outcome.BROKEN):
            return self._ending
        return Outcome.COMPLETED if self._is_run_over() else Outcome.INTERRUPTED

    def _apply_remaining_results(self) -> None:
        """A stop flag may end the ingest before the fetcher has written its last results."""
        from ingest.loop import run_ingest

        if has_unapplied_results(self._workspace, self.config.map_place):
            run_ingest(self.config, drain=True, is_supervised=True, on_control=lambda control: None)

    def _show_lines(self) -> None:
        try:
            while True:
                self._view.say(self._lines.get_nowait())
        except Empty:
            pass
        except OSError:  # the terminal or the pipe is gone
            self.interrupt()

    # -- signals -------------------------------------------------------------------------------------

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle signals, if this is the thread that gets them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {signal.SIGINT: self._on_stop, signal.SIGTERM: self._on_stop}
        if self._is_program:
            handlers |= {signal.SIGHUP: self._on_hangup, signal.SIGUSR1: self._on_status}
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        if self._ending is None:
            self.interrupt()
        elif self._is_program:
            os._exit(INTERRUPTED)

    def _on_hangup(self, number: int, frame: FrameType | None) -> None:
        if self._reader is None or is_terminal_gone(self._had_terminal):
            self._on_stop(number, frame)
        else:
            self._reader.is_wanted = True
            self._wake.set()

    def _on_status(self, number: int, frame: FrameType | None) -> None:
        self._is_status_wanted = True
        self._wake.set()
