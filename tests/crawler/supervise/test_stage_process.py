"""One stage's process: its environment, its words, and its end with the supervisor."""

from __future__ import annotations

import logging
import multiprocessing
import multiprocessing.connection
import os
import select
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.model.settings import Config
from crawler.supervise.exit_rules import CRASHED, EXPLAINED
from crawler.supervise.stage_process import StageChild, StageSpec, exit_words, start_stage
from crawler.supervise.stages import fetcher_stages
from tests.crawler.supervise import small_stages
from tests.crawler.supervise.small_stages import notes

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


@pytest.mark.parametrize("own", [None, "glibc.malloc.tcache_count=7"])
def test_fetchers_get_a_larger_tcache_unless_the_user_has_set_tunables(
    root: Path, config: Config, monkeypatch: pytest.MonkeyPatch, own: str | None
) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    if own:
        monkeypatch.setenv("GLIBC_TUNABLES", own)
    (fetcher,) = fetcher_stages(config, 1)
    ingest = StageSpec("ingest", "ingest", small_stages.tell_tunables, (root, "ingest"))
    for spec in (replace(fetcher, work=small_stages.tell_tunables, arguments=(root, "fetcher")), ingest):
        assert lines_and_code(start_stage(spec, logging.INFO, root)) == ([], 0)
    told = own or "glibc.malloc.tcache_count=4000"
    assert notes(root) == [f"fetcher has {told}", f"ingest has {own or 'nothing'}"]
    assert os.environ.get("GLIBC_TUNABLES") == own


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
    child = start_stage(StageSpec("a", "ingest", small_stages.work_until_told, (root, "a")), logging.INFO, root)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGINT)  # blocked until the new interpreter has started, which takes far longer than this
    small_stages.wait_for(root, "a started")
    child.ask_to_end()
    assert lines_and_code(child) == ([], 0)
    assert notes(root) == ["a started", "a ended"]
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
    ready, _, _ = select.select([watch], [], [], 30)
    assert ready, "the stage outlived its supervisor"
    os.close(watch)
    assert ("ingest ended" in notes(root)) is is_finished
