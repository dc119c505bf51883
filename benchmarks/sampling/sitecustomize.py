"""Imported by every Python process that has this folder on its path; see the package's docstring."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Collection
from types import FrameType

_EVERY = 0.004  # s between two looks
_LOOK = 0.0003  # s that a look takes: CPU used in it is charged to the function that a thread is in at its end
_SWITCH = 0.001  # s after which a thread gives way to this one
_WRITE_EVERY = 0.25  # s between two notes; stages end without a farewell, so the last note is what counts


class Sampler(threading.Thread):
    """Charges CPU time to functions. A step is the innermost function of the project that a thread is in."""

    def __init__(self, notes: str, root: str) -> None:
        super().__init__(daemon=True, name="sampler")
        self._path = os.path.join(notes, f"{os.getpid()}.json")  # noqa: PTH118
        self._root = root + os.sep
        self._steps: dict[str, float] = {}

    def run(self) -> None:
        sys.setswitchinterval(_SWITCH)
        written = time.monotonic()
        while True:
            time.sleep(_EVERY)
            before = self._clocks()
            time.sleep(_LOOK)
            self._charge(before)
            if time.monotonic() - written > _WRITE_EVERY:
                self._write()
                written = time.monotonic()

    def _clocks(self) -> dict[int, float]:
        """CPU time of every thread but this one."""
        clocks = {}
        own = threading.get_ident()
        for thread in list(threading._active):  # type: ignore[attr-defined]
            if thread != own:
                try:
                    clocks[thread] = time.clock_gettime(time.pthread_getcpuclockid(thread))
                except OSError:  # it has just ended
                    continue
        return clocks

    def _charge(self, before: dict[int, float]) -> None:
        # Frames are let go of at once: one that ends while it is held here would be freed in the wrong thread, with
        # the parse tree and the greenlets that it refers to.
        steps = self._where(before)
        for thread, now in self._clocks().items():
            used = now - before.get(thread, now)
            if used > 0 and thread in steps:
                self._steps[steps[thread]] = self._steps.get(steps[thread], 0.0) + used

    def _where(self, threads: Collection[int]) -> dict[int, str]:
        """The step that each thread is in."""
        collects = gc.isenabled()
        gc.disable()  # a collection inside _current_frames can wait for a lock that it holds (CPython 3.11)
        try:
            return {thread: self._step(frame) for thread, frame in sys._current_frames().items() if thread in threads}
        finally:
            if collects:
                gc.enable()

    def _step(self, frame: FrameType) -> str:
        innermost: FrameType | None = frame
        while innermost is not None:
            file = innermost.f_code.co_filename
            if file.startswith(self._root) and f"{os.sep}.venv{os.sep}" not in file:
                place = file[len(self._root) :].removesuffix(".py").replace(os.sep, ".")
                return f"{place}:{innermost.f_code.co_qualname}"
            innermost = innermost.f_back
        return "(imports and libraries)"

    def _write(self) -> None:
        temporary = self._path + ".new"
        with open(temporary, "w") as file:  # noqa: PTH123
            json.dump({"cpu": time.process_time() - time.thread_time(), "steps": self._steps}, file)
        os.replace(temporary, self._path)  # noqa: PTH105


def _start() -> None:
    Sampler(os.environ["SUMI_BENCH_SAMPLES"], os.environ["SUMI_BENCH_ROOT"]).start()


if "SUMI_BENCH_SAMPLES" in os.environ:
    _start()
    os.register_at_fork(after_in_child=_start)
