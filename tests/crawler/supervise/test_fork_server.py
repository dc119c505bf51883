"""The fork server: its signals, and what it takes to start it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.waiting import is_readable


def _told(code: str) -> str:
    """In a process of its own: here a fork server may be running already."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout


def test_the_fork_server_has_the_signals_of_a_terminal_blocked() -> None:
    status = _told(
        "from multiprocessing import forkserver; from crawler.supervise.fork_server import start_fork_server;"
        "start_fork_server(); pid = forkserver._forkserver._forkserver_pid;"
        "print(open(f'/proc/{pid}/status').read())"
    )
    blocked = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk")), 16)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        assert blocked >> (number - 1) & 1, number


def test_a_crawl_starts_it_before_anything_else_of_the_project_is_loaded() -> None:
    """The command line takes as long to load as the stages' modules, which are imported meanwhile."""
    loaded = _told(
        "import sys; from crawler.cli.early_start import begin_early; begin_early(['my.toml', '-q']);"
        "from multiprocessing import forkserver; assert forkserver._forkserver._forkserver_pid;"
        "print(*(name for name in sys.modules if name.partition('.')[0] in ('crawler', 'ingest', 'reporter', 'typer')))"
    )
    assert set(loaded.split()) == {
        *("crawler", "crawler.cli", "crawler.cli.early_start", "crawler.supervise", "crawler.supervise.fork_server"),
    }


def test_what_the_fork_server_imports_is_there() -> None:
    """It passes over names that it does not find: each stage would import its modules again, and nobody would know."""
    code = (
        "import sys; from importlib import import_module; from crawler.supervise import fork_server as server;"
        "[import_module(name) for name in server._MODULES]; print(len(server._MODULES))"
    )
    assert int(_told(code)) > 0


def test_where_temporary_files_lie_deep_the_socket_has_a_path_that_is_short_enough(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 80)
    deep.mkdir()
    code = (
        "from multiprocessing import forkserver; from crawler.supervise.fork_server import start_fork_server;"
        "start_fork_server(); print(forkserver._forkserver._forkserver_address); import tempfile;"
        "print(tempfile.gettempdir())"
    )
    environment = {**os.environ, "TMPDIR": str(deep)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert not done.returncode, done.stderr
    address, usual = done.stdout.split()
    assert (len(address) <= 107, Path(usual)) == (True, deep), "other temporary files lie where they did"
    assert not Path(address).parent.exists()


def test_a_killed_supervisor_leaves_no_folder_among_the_temporary_files(short_folder: Path) -> None:
    """The fork server ends by itself then, and removes it: here it has not even imported its modules yet."""
    code = (
        "import sys; from crawler.supervise.fork_server import start_fork_server; start_fork_server();"
        "print(flush=True); sys.stdin.read()"
    )
    supervisor = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(short_folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with supervisor:
        assert supervisor.stdout is not None
        supervisor.stdout.readline()
        assert list(short_folder.glob("*/listener-*"))
        supervisor.kill()
        assert is_readable(supervisor.stdout, 30)  # its end: the fork server had it, too
    assert not list(short_folder.iterdir())
