"""Small stages for the supervisor's tests: each does one thing, wrong or right."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from crawler.workspace.door import WorkspaceError
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.runs import Run, RunStatus, write_run
from crawler.workspace.terms import write_terms


def note(root: Path, word: str) -> None:
    """Add a line to the log that the test reads."""
    with (root / "log.txt").open("a") as file:
        file.write(word + "\n")


def notes(root: Path) -> list[str]:
    path = root / "log.txt"
    return path.read_text().splitlines() if path.exists() else []


def wait_for(root: Path, *words: str) -> None:
    """Wait until all these words have been noted."""
    while not set(words) <= set(notes(root)):
        time.sleep(0.01)


class Late:
    """An argument that is not there, in the stage's process, before this word has been noted."""

    def __init__(self, root: Path, word: str) -> None:
        self._wait = (root, word)

    def __reduce__(self) -> tuple[object, ...]:
        return wait_for, self._wait


def work_until_told(root: Path, name: str, drain: object = None) -> int:
    """A sound stage: works until SIGTERM, then finishes."""
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    signal.signal(signal.SIGINT, lambda number, frame: note(root, f"{name} heard SIGINT"))
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup make test` hands down that it is ignored
    note(root, f"{name} started")
    while not told:
        time.sleep(0.01)
    note(root, f"{name} ended")
    return 0


def end_slowly(root: Path, name: str) -> int:
    """A sound stage that is replaced only after a while, as one with a request on the wire."""
    told: list[int] = []
    signal.signal(signal.SIGHUP, lambda number, frame: told.append(number))
    signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    note(root, f"{name} started")
    while not told:
        time.sleep(0.01)
    wait_for(root, "ingest at depth 7 started")
    note(root, f"{name} ended")
    return 75


def tell_inherited(root: Path) -> int:
    """Notes what it has of the process that it was forked from, and ends."""
    has_modules = {"crawler.fetch.fetcher", "crawler.schedule.scheduler", "ingest.loop"} <= sys.modules.keys()
    threads = [thread.name for thread in threading.enumerate() if "_end_with_supervisor" not in thread.name]
    places = [place.readlink() for place in Path("/proc/self/fd").iterdir() if place.is_symlink()]
    sockets = sum(str(place).startswith("socket:") for place in places)
    files = [str(place) for place in places if root in place.parents or place.suffix in (".db", ".py")]
    blocked = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))
    note(root, f"modules {has_modules}, threads {threads}, sockets {sockets}, files {files}, blocked {blocked}")
    return 0


def end_at_once(root: Path, name: str) -> int:
    note(root, f"{name} ended")
    return 0


def complete_the_run(root: Path, after: tuple[str, ...]) -> int:
    """A scheduler that finds the run complete, once these words have been noted."""
    wait_for(root, *after)
    write_run(FileWorkspace(root), Run(1, RunStatus.COMPLETED))
    note(root, "scheduler completed")
    return 0


def record_terms(root: Path, name: str, config_hash: str, times: int = 0) -> int:
    """A scheduler that notes which settings are in force, after it has died so many times."""
    if notes(root).count(f"{name} dies") < times:
        note(root, f"{name} dies")
        os.kill(os.getpid(), signal.SIGKILL)
    note(root, f"{name} records")
    write_terms(FileWorkspace(root), config_hash)
    return work_until_told(root, name)


def complete_after_two(root: Path, word: str) -> int:
    """A scheduler that finds the run complete, once this word has been noted twice."""
    while notes(root).count(word) < 2:
        time.sleep(0.01)
    return complete_the_run(root, ())


def die_once(root: Path, name: str) -> int:
    """Killed the first time, sound the second."""
    first = root / f"{name}.died"
    if not first.exists():
        first.touch()
        note(root, f"{name} dies")
        os.kill(os.getpid(), signal.SIGKILL)
    return work_until_told(root, name)


def die_always(root: Path, name: str) -> int:
    note(root, f"{name} dies")
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def die_after_progress(root: Path, name: str, times: int) -> int:
    """Dies so many times, each time after some progress; then it is sound."""
    done = len([line for line in notes(root) if line == f"{name} dies"])
    results = FileWorkspace(root).layout.results_of("fetcher-01")
    results.mkdir(parents=True, exist_ok=True)
    (results / f"{done + 1:012d}.jsonl").write_text("{}\n")
    if done < times:
        note(root, f"{name} dies")
        os.kill(os.getpid(), signal.SIGKILL)
    return work_until_told(root, name)


def die_so_often(root: Path, name: str, times: int) -> int:
    """Dies so many times without any progress; then it ends by itself."""
    if notes(root).count(f"{name} dies") < times:
        note(root, f"{name} dies")
        os.kill(os.getpid(), signal.SIGKILL)
    note(root, f"{name} ended")
    return 0


def say_why(root: Path) -> int:
    raise WorkspaceError("the disk is full; make room")


def say_why_after(root: Path, word: str) -> int:
    wait_for(root, word)
    return say_why(root)


def crash(root: Path, name: str) -> int:
    note(root, f"{name} dies")
    raise ZeroDivisionError("a bug")


def ignore_everything(root: Path, name: str) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    note(root, f"{name} started")
    while True:
        time.sleep(0.01)


def stop_by_flag(root: Path, name: str, stage: str) -> int:
    """Ends whenever its flag file is there, as the real stages do."""
    note(root, f"{name} started")
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    while not told and not FileWorkspace(root).is_flagged("stop", stage):
        time.sleep(0.01)
    note(root, f"{name} ended")
    return 0


def supervise_for_ever(root: Path, orphan_signal: int) -> None:
    """A supervisor in a process of its own, to be killed by the test."""
    from crawler.model.settings import Config, OutputSettings
    from crawler.observe.live_view import QuietView
    from crawler.supervise.stage_process import StageSpec
    from crawler.supervise.supervisor import Supervisor

    config = Config(workspace=root, output=OutputSettings(root / "map.db", root / "summary.md"))
    stages = [StageSpec("ingest", "ingest", note_pid_and_wait, (root,), orphan_signal=orphan_signal)]
    Supervisor(config, FileWorkspace(root), stages, QuietView()).run()


def note_pid_and_wait(root: Path) -> int:
    note(root, f"pid {os.getpid()}")
    return work_until_told(root, "ingest")


def stand_still(root: Path, name: str, times: int = 1) -> int:
    """Has work and does none of it, so many times; then it is sound."""
    if notes(root).count(f"{name} stands still") >= times:
        return work_until_told(root, name)
    note(root, f"{name} stands still")
    while True:
        time.sleep(0.01)
