"""A disk that is read-only or full, mounted for one process alone: one sentence, at --dry-run already."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

CONFIG = """
[user-agent]
contact-url = "https://a.test/about"
contact-email = "me@a.test"
[network.resolve]
"*" = "127.0.0.1:9"
[[quality]]
domain = "a.test"
"""
_OWN_MOUNTS = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]


def mounted(folder: Path, options: str, script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in a folder on a small disk of its own, which is gone with the script."""
    folder.mkdir()
    before = f"mount -t tmpfs -o size=1m none {folder} && cd {folder} && printf '%s' \"$CONFIG\" > my.toml || exit 77\n"
    remount = f"mount -o remount,{options} {folder} || exit 77\n" if options else ""
    try:
        done = subprocess.run(
            [*_OWN_MOUNTS, "sh", "-c", before + remount + script],
            env={**os.environ, "PYTHONPATH": str(ROOT), "CONFIG": CONFIG},
            capture_output=True,
            text=True,
            timeout=60,
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare here")
    if done.returncode == 77 or done.stderr.startswith("unshare:"):
        pytest.skip("this user may not mount a disk")
    return done


@pytest.mark.parametrize(
    ("options", "words"),
    [("ro", "is on a disk that is read-only"), ("", "is full (0 MiB are free, 32 are needed)")],
    ids=["read-only", "full"],
)
def test_a_disk_that_cannot_be_written_is_one_sentence_for_the_crawl_and_for_each_stage(
    options: str, words: str, tmp_path: Path
) -> None:
    commands = ("my.toml --dry-run", "crawl my.toml", "schedule my.toml", "ingest my.toml")
    script = "\n".join(f"{sys.executable} -m crawler {words} >&2; echo $?" for words in commands)
    done = mounted(tmp_path / "disk", options, script)
    assert done.stdout.split() == ["1"] * len(commands), done.stderr
    place = tmp_path / "disk"
    lines = done.stderr.splitlines()
    assert len(lines) == len(commands), done.stderr
    for line in lines:
        assert line.startswith(f"sumi-ripple: cannot write the workspace {place / 'workspace'}: "), line
        assert words in line and line.endswith("mend that, or give another --workspace or [output] workspace-path")
