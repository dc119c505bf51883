"""One stage's process, from both sides: `start_stage` and `StageChild` in the supervisor, `_stage_main` in the stage.

The stage sends its log lines to the supervisor through a pipe, and ends with an exit code of `exit_rules`.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from crawler.model.errors import SumiError, sentence
from crawler.observe.logs import configure
from crawler.supervise.exit_rules import CRASHED, EXPLAINED, INTERRUPTED
from crawler.workspace.opening import open_workspace

log = logging.getLogger("sumi.supervisor")


@dataclass(frozen=True, slots=True)
class StageSpec:
    """A process to keep alive. `work` runs in it and returns its exit code; it must be importable by name."""

    name: str
    stage: str
    work: Callable[..., int]
    arguments: tuple[object, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)  # set at its start, unless the user has set it
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
        return [self._process.sentinel] if self._lines is None else [self._process.sentinel, self._lines]

    def read_lines(self) -> Iterator[str]:
        """The log lines that it has sent since the last call."""
        try:
            while self._lines is not None and self._lines.poll():
                yield self._lines.recv_bytes().decode("utf-8", "replace")
        except (EOFError, OSError):
            self._close_lines()

    def has_ended(self) -> bool:
        return not self._process.is_alive()

    def ask_to_end(self) -> None:
        """Send SIGTERM: finish what is in flight, save, end."""
        self._process.terminate()

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
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_stage_main, args=(spec, theirs, log_level, workspace), name=spec.name)
    # Ctrl-C goes to every process in the terminal's foreground. It is blocked in the new one until that has left the
    # foreground: the supervisor alone passes it on, once.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with _environment(spec.environment):
            process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    theirs.close()
    return StageChild(process, ours)


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Set these variables for a process that is started meanwhile; those that the user has set stay as they are."""
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


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
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
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

    A stage that outlives its crawl would hold its role against the next crawl. SIGKILL is safe at any moment.
    """
    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        supervisor.join()
        os.kill(os.getpid(), orphan_signal)
