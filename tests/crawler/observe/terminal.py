"""A pseudo-terminal, read by pyte."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pyte

from tests.waiting import is_readable


class Terminal:
    """A program on a pseudo-terminal, and the screen that a person would see."""

    def __init__(self, arguments: list[str], cwd: Path, columns: int = 80, lines: int = 24) -> None:
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.environ["TERM"] = "xterm-256color"
            os.environ.pop("NO_COLOR", None)
            os.execv(sys.executable, [sys.executable, *arguments])
        self.resize(columns, lines)
        settings = termios.tcgetattr(self._master)
        settings[3] &= ~termios.ECHO  # what the test types must not stand in the picture
        termios.tcsetattr(self._master, termios.TCSANOW, settings)
        self.before = termios.tcgetattr(self._master)

    def resize(self, columns: int, lines: int = 24) -> None:
        self.screen.resize(lines, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def reflow(self, columns: int, lines: int = 24) -> None:
        """Make it narrower as most terminals do: lines that are too long are broken, the cursor stays at the end."""
        shown = [line.rstrip() for line in self.screen.display[: self.screen.cursor.y + 1]]
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self._stream.feed("\r\n".join(shown).encode())
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def read_until(self, condition: Callable[[str], bool], seconds: float = 60) -> None:
        """Read what the program writes until the screen shows what is waited for."""
        deadline = time.monotonic() + seconds
        while not condition(self.text()):
            assert time.monotonic() < deadline and self._read(seconds), f"never seen; the screen is:\n{self.text()}"

    def wait(self) -> int:
        """Read to the end; returns the exit code."""
        while self._read(60):
            pass
        self.after = termios.tcgetattr(self._master) if self._is_open() else self.before
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _is_open(self) -> bool:
        try:
            termios.tcgetattr(self._master)
            return True
        except termios.error:
            return False

    def _read(self, seconds: float) -> bool:
        ready = is_readable(self._master, seconds)
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    def is_restored(self) -> bool:
        """Is the cursor visible, the main screen shown, and are the line settings as before?"""
        hidden, shown = self.raw.rfind(b"\x1b[?25l"), self.raw.rfind(b"\x1b[?25h")
        return shown >= hidden and b"\x1b[?1049h" not in self.raw and self.after == self.before
