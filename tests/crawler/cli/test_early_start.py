"""The first steps of a command: a crawl is told from other commands before the command line is loaded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from crawler.cli.early_start import ctrl_c_ends_at_once, looks_like_a_crawl


@pytest.mark.parametrize(
    "arguments", [["crawl", "my.toml"], ["my.toml"], ["demo"], ["my.toml", "-q", "--fresh"], ["crawl", "a", "-v"]]
)
def test_a_crawl_begins_early(arguments: list[str]) -> None:
    assert looks_like_a_crawl(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        *([], ["--help"], ["-V"], ["status"], ["stats", "my.toml"], ["crawl", "--help"], ["demo", "-h"]),
        *(["my.toml", "--dry-run"], ["crawl", "my.toml", "--stats"], ["my.toml", "--export-summary"]),
        *(["my.toml", "--unified"], ["pause", "my.toml"]),
    ],
)
def test_nothing_is_started_for_what_does_not_crawl_in_processes(arguments: list[str]) -> None:
    assert not looks_like_a_crawl(arguments)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_a_closed_standard_stream_is_the_null_device_here_and_in_children(closed: tuple[int, ...]) -> None:
    """Otherwise a lock or a pipe would get its number, and errors would be written there, or end in another error."""
    told, tells = os.pipe()
    code = (
        "import os, subprocess, sys; from crawler.cli import early_start; early_start.open_standard_streams();"
        "print(sys.stdin.read(), file=sys.stderr); print(flush=True);"
        "subprocess.run([sys.executable, '-c', 'import os; [os.fstat(number) for number in range(3)]'], check=True);"
        f"os.write({tells}, str([number for number in {closed} if os.readlink(f'/proc/self/fd/{{number}}')"
        "== os.devnull]).encode())"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(tells,),
        preexec_fn=lambda: [os.close(number) for number in closed] and None,
    )
    os.close(tells)
    with os.fdopen(told) as answer:
        assert answer.read() == str(list(closed))
    assert child.wait(30) == 0


def test_a_ctrl_c_while_the_command_line_is_loaded_ends_without_a_traceback() -> None:
    """Deep in an import it comes to the same: a KeyboardInterrupt in orjson's is a segmentation fault."""
    code = (
        "import os, signal, sys; from crawler import __main__ as program; import crawler.cli.early_start as early\n"
        "early.begin_early = lambda arguments: os.kill(os.getpid(), signal.SIGINT)\n"
        "program.main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (130, b"")


def test_a_ctrl_c_that_is_ignored_stays_so() -> None:
    """So it is in the background of a shell without job control."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with ctrl_c_ends_at_once():
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
