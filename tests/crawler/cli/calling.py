"""The command line, called in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from crawler.cli.app import run
from tests.places import ROOT

COMMANDS = ("crawl", "demo", "init", "schedule", "fetch", "ingest", "report", "replay", "digest", "stats", "explain")
COMMANDS += ("export", "map", "audit", "status", "pause", "resume", "stop")
COMMANDS += ("candidates", "accept", "reject", "stub", "runs", "diff", "check-url", "metrics", "hooks")
COMMANDS += ("serve", "user", "configure", "reset", "reload")
COMMANDS += ("backup", "restore", "storage", "prune", "archive", "store", "engine")


def sumi(
    *arguments: str | Path, cwd: Path, timeout: float = 120, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The real command, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "crawler", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def called(*arguments: str | Path) -> int:
    """The command in this process; its exit code."""
    return run([str(argument) for argument in arguments])


class Said(NamedTuple):
    exit_code: int
    output: str


Call = Callable[..., Said]


def calls_told(capsys: pytest.CaptureFixture[str]) -> Call:
    """Calls the command in this process; what it says, on both streams, comes with its exit code."""

    def call(*words: str | Path) -> Said:
        code = called(*words)
        out, err = capsys.readouterr()
        return Said(code, out + err)

    return call
