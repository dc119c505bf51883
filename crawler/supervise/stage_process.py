"""One stage's process, from both sides: `start_stage` and `StageChild` in the supervisor, `_stage_main` in the stage.

The stage sends its log lines to the supervisor through a pipe, and ends with an exit code of `exit_rules`.

Stages are forked from a fork server (`fork_server`), which has their modules.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from crawler.model.errors import SumiError, sentence
from crawler.observe.logs import configure
from crawler.supervise.exit_rules import CRASHED, EXPLAINED, INTERRUPTED
from crawler.supervise.fork_server import BLOCKED, signals_blocked, start_fork_server
from crawler.workspace.door import LeaseLost, StoppedWhileAway, Unreachable
from crawler.workspace.opening import open_workspace

log = logging.getLogger("sumi.supervisor")

_WATCH_EVERY = 1.0  # seconds between a stage's looks at its fork server


@dataclass(frozen=True, slots=True)
class StageSpec:
    """A process to keep alive. `work` runs in it and returns its exit code; it must be importable by name."""

    name: str
    stage: str
    work: Callable[..., int]
    arguments: tuple[object, ...] = ()
    orphan_signal: int = signal.SIGKILL  # sent to it if the supervisor dies


# -- in the supervisor ----------------------------------------------------------------------------------------


class StageChild:
    """A stage's process, as its supervisor sees it."""

    def __init__(self, process: BaseProcess, lines: Connection) -> None:
        self._process = process
        self._lines: Connection | None = lines

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def handles(self) -> list[Connection | int]:
        """Handles that become ready when the process says something or ends."""
        if self._lines is None:
            return [self._process.sentinel]
        return [self._process.sentinel, self._lines] if self._process.is_alive() else [self._lines]

    def read_lines(self) -> Iterator[str]:
        """The log lines that it has sent since the last call."""
        try:
            while self._lines is not None and self._lines.poll():
                yield self._lines.recv_bytes().decode("utf-8", "replace")
        except (EOFError, OSError):
            self._close_lines()

    def has_ended(self) -> bool:
        """Has the process ended, and has everything that it said been read?

        If the fork server is killed, it cannot tell how its stages are. The end of their log lines tells that they are
        gone, so that the next process finds their roles free.
        """
        return not self._process.is_alive() and self._lines is None

    def ask_to_end(self) -> None:
        """Send SIGTERM: finish what is in flight, save, end."""
        self._process.terminate()

    def ask_to_be_replaced(self) -> None:
        """Send SIGHUP: finish what is in flight, save, and end to be started again under another config."""
        if self._process.pid is not None and self._process.is_alive():
            os.kill(self._process.pid, signal.SIGHUP)

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> int:
        """Wait for its end and release it; returns its exit code, negative for the signal that killed it."""
        self._process.join()
        code = self._process.exitcode or 0
        self._process.close()
        self._close_lines()
        return code

    def _close_lines(self) -> None:
        if self._lines is not None:
            self._lines.close()
            self._lines = None


def start_stage(spec: StageSpec, log_level: int, workspace: Path) -> StageChild:
    """Start a stage in a new process."""
    start_fork_server()
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_stage_main, args=(spec, theirs, log_level, workspace), name=spec.name)
    with signals_blocked():
        process.start()
    theirs.close()
    return StageChild(process, ours)


def exit_words(code: int) -> str:
    """An exit in words: `was killed by SIGKILL`, `ended with code 70`."""
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


# -- in the stage's own process -------------------------------------------------------------------------------


def _stage_main(spec: StageSpec, lines: Connection, log_level: int, workspace: Path) -> None:
    """Leave the terminal's foreground, send log lines to the supervisor, work, and end with the exit code."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # discards a Ctrl-C of the terminal that came before `setsid`
    signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKED)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with_supervisor, args=(spec.orphan_signal,), daemon=True).start()
    sending = threading.Lock()

    def send(line: str) -> None:
        with sending:
            lines.send_bytes(line.encode())

    configure(log_level, send)
    os._exit(_exit_code(spec, workspace))


def _exit_code(spec: StageSpec, workspace: Path) -> int:
    try:
        return spec.work(*spec.arguments)
    except StoppedWhileAway:
        return INTERRUPTED
    except (LeaseLost, Unreachable) as problem:
        log.warning("The %s starts anew: %s", spec.name, sentence(problem))
        return CRASHED
    except (SumiError, OSError) as problem:
        log.error("The %s cannot go on: %s", spec.name, sentence(problem))
        return EXPLAINED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as problem:
        place = open_workspace(workspace).record_crash(spec.name, traceback.format_exc())
        log.error("The %s crashed: %s: %s (details in %s)", spec.name, type(problem).__name__, problem, place)
        return CRASHED


def _end_with_supervisor(orphan_signal: int) -> None:
    """Wait for the supervisor's death, then send this process the signal.

    A stage that outlives its crawl would hold its role against the next crawl. SIGKILL is safe at any moment. It is
    sent if the fork server dies alone: then the supervisor cannot learn how this process ends, and starts another.
    """
    supervisor = multiprocessing.parent_process()
    if supervisor is None:
        return
    fork_server = os.getppid()
    while not wait([supervisor.sentinel], timeout=_WATCH_EVERY):
        if os.getppid() != fork_server and not wait([supervisor.sentinel], timeout=0):
            os.kill(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), orphan_signal)
