"""One stage's process: its inheritance, its words, and its end with the supervisor."""

from __future__ import annotations

import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
from pathlib import Path

import pytest

from crawler.supervise.exit_rules import CRASHED, EXPLAINED
from crawler.supervise.stage_process import StageChild, StageSpec, exit_words, start_stage
from tests.crawler.supervise import small_stages
from tests.crawler.supervise.small_stages import notes
from tests.waiting import is_readable

if sys.platform != "linux":
    pytest.skip("watches processes by pidfd", allow_module_level=True)


def lines_and_code(child: StageChild) -> tuple[list[str], int]:
    """The log lines of a stage that ends by itself, and its exit code."""
    lines: list[str] = []
    while not child.has_ended():
        multiprocessing.connection.wait(child.handles(), timeout=30)
        lines += child.read_lines()
    lines += child.read_lines()
    return lines, child.close()


def test_a_stage_begins_with_its_modules_and_nothing_else(root: Path) -> None:
    """It inherits no thread, no socket, no database and no blocked signal of the process that it was forked from."""
    for _ in range(2):  # the second finds nothing of the first
        spec = StageSpec("a", "ingest", small_stages.tell_inherited, (root,))
        assert lines_and_code(start_stage(spec, logging.INFO, root)) == ([], 0)
    assert notes(root) == ["modules True, threads ['MainThread'], sockets 0, files [], blocked []"] * 2


def test_a_stage_ends_at_once_if_its_fork_server_is_killed_and_the_next_is_started_by_another(root: Path) -> None:
    child = start_stage(StageSpec("a", "ingest", small_stages.note_pid_and_wait, (root,)), logging.INFO, root)
    small_stages.wait_for(root, "ingest started")
    assert child.pid is not None
    stage = os.pidfd_open(child.pid)
    os.kill(_parent_of(child.pid), signal.SIGKILL)
    assert lines_and_code(child) == ([], 255)
    ready = is_readable(stage, 30)  # not before its log lines ended, and hardly later
    os.close(stage)
    assert ready
    assert "ingest ended" not in notes(root)
    spec = StageSpec("b", "ingest", small_stages.end_at_once, (root, "b"))
    assert lines_and_code(start_stage(spec, logging.INFO, root)) == ([], 0)


def _parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_stage_that_cannot_go_on_logs_why_and_ends_with_code_1(root: Path) -> None:
    spec = StageSpec("ingest", "ingest", small_stages.say_why, (root,))
    assert lines_and_code(start_stage(spec, logging.INFO, root)) == (
        ["[ERROR] The ingest cannot go on: the disk is full; make room"],
        EXPLAINED,
    )


def test_a_stage_that_crashes_logs_one_line_keeps_its_traceback_and_ends_with_code_70(root: Path) -> None:
    spec = StageSpec("ingest", "ingest", small_stages.crash, (root, "ingest"))
    lines, code = lines_and_code(start_stage(spec, logging.INFO, root))
    kept = root / "status" / "ingest.crash.txt"
    assert lines == [f"[ERROR] The ingest crashed: ZeroDivisionError: a bug (details in {kept})"]
    assert code == CRASHED
    assert "Traceback" in kept.read_text()


def test_a_stage_that_was_killed_has_the_signal_as_its_exit_code(root: Path) -> None:
    spec = StageSpec("ingest", "ingest", small_stages.die_always, (root, "ingest"))
    assert lines_and_code(start_stage(spec, logging.INFO, root)) == ([], -signal.SIGKILL)


def test_a_stage_that_is_asked_to_end_finishes(root: Path) -> None:
    child = start_stage(StageSpec("a", "ingest", small_stages.work_until_told, (root, "a")), logging.INFO, root)
    small_stages.wait_for(root, "a started")
    child.ask_to_end()
    assert lines_and_code(child) == ([], 0)
    assert notes(root) == ["a started", "a ended"]


def test_a_ctrl_c_that_reaches_a_stage_before_it_has_left_the_terminal_is_discarded(
    root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = (root, "a", small_stages.Late(root, "go"))
    child = start_stage(StageSpec("a", "ingest", small_stages.work_until_told, arguments), logging.INFO, root)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGINT)
    small_stages.note(root, "go")  # before this its arguments are not complete, and it cannot have left the terminal
    small_stages.wait_for(root, "a started")
    child.ask_to_end()
    assert lines_and_code(child) == ([], 0)
    assert notes(root) == ["go", "a started", "a ended"]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("code", "words"),
    [(70, "ended with code 70"), (-9, "was killed by SIGKILL"), (-250, "was killed by signal 250")],
)
def test_an_exit_in_words(code: int, words: str) -> None:
    assert exit_words(code) == words


@pytest.mark.parametrize(("orphan_signal", "is_finished"), [(signal.SIGKILL, False), (signal.SIGTERM, True)])
def test_a_stage_ends_when_its_supervisor_is_killed(root: Path, orphan_signal: int, is_finished: bool) -> None:
    """At once in a crawl; after it has saved where the rest of the pipeline goes on."""
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=small_stages.supervise_for_ever, args=(root, orphan_signal))
    process.start()
    while "ingest started" not in notes(root):
        process.join(0.02)
    (line,) = [line for line in notes(root) if line.startswith("pid ")]
    watch = os.pidfd_open(int(line.split()[1]))
    process.kill()
    process.join()
    ready = is_readable(watch, 30)
    assert ready, "the stage outlived its supervisor"
    os.close(watch)
    assert ("ingest ended" in notes(root)) is is_finished
