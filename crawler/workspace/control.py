"""Control of a running stage: pause and stop flags, signals, its bell, its heartbeat.

A stage may call `should_stop()` and `is_paused()` as often as it likes; the flags are read a few times a second at
most. Signal handlers only set a flag.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import orjson

from crawler.resilience.stalls import Progress, Work, after
from crawler.workspace.clock import now_text
from crawler.workspace.door import Held, RoleTaken, Workspace
from crawler.workspace.reloads import ReloadWatch

REPLACED = 75  # exit code of a stage that ended only to be started again, under the config as it is now

_READ_FLAGS_EVERY = 0.25  # seconds
_BEAT_EVERY = 1.0  # seconds
_STAND_BY = 1.0  # seconds between two tries to take a role

log = logging.getLogger("sumi.workspace")


def wait_for_role(workspace: Workspace, role: str) -> Held | None:
    """Become the one `role`; while another process is, wait as its stand-by. None: a stop was asked for meanwhile."""
    is_told = False
    workspace.endure(lambda: False)  # a Ctrl-C is a KeyboardInterrupt here
    while not workspace.is_flagged("stop", role):
        try:
            return workspace.take_role(role)
        except RoleTaken:
            if not is_told:
                log.warning("Another %s is at work; this one waits, and takes over when that one ends or dies", role)
                is_told = True
            time.sleep(_STAND_BY)
    return None


class StageControl:
    """The control of one stage process. `stage` names its flags, `name` this process (`fetcher-02`).

    `is_supervised`: a supervisor passes orders to read the config on, as SIGHUP. Else this process heeds them itself.
    """

    def __init__(
        self, workspace: Workspace, stage: str, name: str | None = None, *, is_supervised: bool = False
    ) -> None:
        self.workspace = workspace
        self.stage = stage
        self.name = name or stage
        self.signals = 0
        workspace.endure(lambda: self.signals > 0)
        self.bell = workspace.bell(self.name)
        self.is_replaced = False  # it is to end, and to be started again
        self._orders = None if is_supervised else ReloadWatch(workspace)
        self._had_terminal = has_terminal()
        self._flags_read_at = 0.0
        self._paused = False
        self._stopped = False
        self._beat_at = 0.0
        self._started = now_text()
        self.facts: Callable[[], dict[str, Any]] = dict
        self.work: Callable[[], Work] = Work  # what was done, and whether something is due
        self._progress = Progress()

    def install_signals(self) -> None:
        """First SIGINT or SIGTERM: finish the work in flight. Second: exit at once. SIGUSR1: print the status.

        SIGHUP: end with the code `REPLACED` after the batch under way; but if the terminal is gone, as SIGTERM.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_stop_signal)
        signal.signal(signal.SIGHUP, self._on_hangup)
        signal.signal(signal.SIGUSR1, self._on_status_signal)

    def ask_to_end(self) -> None:
        """From another thread: as the first SIGTERM."""
        self.signals = max(self.signals, 1)
        self.workspace.ring(self.name)

    def ask_to_be_replaced(self) -> None:
        """From another thread: as SIGHUP."""
        self.is_replaced = True
        self.workspace.ring(self.name)

    def should_stop(self) -> bool:
        """Is this process to finish, save and end? `is_replaced`: only to be started again."""
        self._read_flags()
        return self._stopped or self.signals > 0 or self.is_replaced

    @property
    def exit_code(self) -> int:
        """The exit code of a stage that has done what it was told to do."""
        return 130 if self.signals else REPLACED if self.is_replaced and not self._stopped else 0

    def is_paused(self) -> bool:
        self._read_flags()
        return self._paused

    def wait(self, seconds: float) -> bool:
        """Sleep until the bell rings, a signal comes or the time is up; True if the bell rang."""
        return self.bell.wait(seconds)

    def wait_while_paused(self) -> None:
        """Return once this stage is not paused, or is to stop."""
        while self.is_paused() and not self.should_stop():
            self.beat("paused")
            self.wait(0.5)

    def beat(self, doing: str = "running", *, force: bool = False) -> None:
        """Write the heartbeat, once a second at most."""
        now = time.monotonic()
        if not force and now - self._beat_at < _BEAT_EVERY:
            return
        self._beat_at = now
        self._progress = after(self._progress, self.work(), time.monotonic_ns())
        self.workspace.beat(self.name, orjson.dumps(self.status(doing)))

    def status(self, doing: str = "running") -> dict[str, Any]:
        return {
            "v": 1,
            "stage": self.stage,
            "name": self.name,
            "pid": os.getpid(),
            "started": self._started,
            "at": now_text(),
            "doing": doing,
            "beat_ns": time.monotonic_ns(),
            "due_since_ns": self._progress.since_ns if self._progress.work.is_due else None,
            "facts": self.facts(),
        }

    def ring(self, name: str) -> None:
        """Wake another stage."""
        self.workspace.ring(name)

    def close(self) -> None:
        self.beat("stopped", force=True)
        self.bell.close()

    def _read_flags(self) -> None:
        now = time.monotonic()
        if now - self._flags_read_at < _READ_FLAGS_EVERY and self._flags_read_at:
            return
        self._flags_read_at = now
        self._paused = self.workspace.is_flagged("pause", self.stage)
        self._stopped = self.workspace.is_flagged("stop", self.stage)
        if self._orders is not None and self._orders.is_ordered():  # never set back: a signal may have come meanwhile
            self.is_replaced = True

    def _on_stop_signal(self, number: int, frame: FrameType | None) -> None:
        self.signals += 1
        if self.signals > 1:
            os._exit(130 if number == signal.SIGINT else 143)
        self.workspace.ring(self.name)

    def _on_hangup(self, number: int, frame: FrameType | None) -> None:
        if is_terminal_gone(self._had_terminal):
            self._on_stop_signal(number, frame)
        else:
            self.ask_to_be_replaced()

    def _on_status_signal(self, number: int, frame: FrameType | None) -> None:
        sys.stderr.write(orjson.dumps(self.status(), option=orjson.OPT_INDENT_2).decode() + "\n")
        sys.stderr.flush()


def has_terminal() -> bool:
    """Has this process a controlling terminal?"""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def is_terminal_gone(had_terminal: bool) -> bool:
    """What a SIGHUP means: True for the end of the terminal, which the kernel takes away before it sends the signal."""
    return had_terminal and not has_terminal()
