"""Whole crawls of the demo terrain as a user would start them: the command itself, in processes of its own."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from crawler.demo.demo_config import DemoLimits, write_demo_config
from crawler.demo.server import Served

PATIENCE = 90  # seconds that a crawl which takes about ten may take on a busy machine


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "crawler", *map(str, words)]


def run(*words: str | Path, cwd: Path, ok: int | None = 0) -> subprocess.CompletedProcess[str]:
    """One command to its end."""
    done = subprocess.run(
        command(*words), cwd=cwd, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
    )
    if ok is not None:
        assert done.returncode == ok, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def smaller_files(limit: int) -> Callable[[], None]:
    """For a child to call before it starts: no file it writes may grow beyond this, as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


@contextmanager
def started(*words: str | Path, cwd: Path, before: Callable[[], None] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A command in a process group of its own; whatever is left of it ends with the block."""
    process = subprocess.Popen(
        command(*words),
        cwd=cwd,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=before,
    )
    try:
        yield process
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()


def eventually(question: Callable[[], bool], what: str) -> None:
    """Wait until something holds; fail, saying what, if it never does."""
    end = time.monotonic() + PATIENCE
    while not question():
        assert time.monotonic() < end, f"this never came about: {what}"
        time.sleep(0.02)


def prepared(folder: Path, served: Served, **limits: int) -> Path:
    """A demo config in a folder of its own; workspace, database and summary will lie beside it."""
    return write_demo_config(folder, served, DemoLimits(**limits))


def rows(folder: Path, sql: str, name: str = "sumi-ripple.db") -> list[tuple]:
    db = sqlite3.connect(f"file:{folder / name}?mode=ro", uri=True)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def pages_done(folder: Path) -> int:
    """Visits in the map so far; 0 while there is no map."""
    try:
        return int(rows(folder, "SELECT count(*) FROM pages WHERE visited_run IS NOT NULL")[0][0])
    except sqlite3.Error:
        return 0
