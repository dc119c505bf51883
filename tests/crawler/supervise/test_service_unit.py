"""The unit that runs a crawl as a service: the page about operations shows it as it is, and systemd can read it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from crawler.supervise.exit_rules import CRASHED
from tests.places import ROOT

UNITS = ROOT / "deploy" / "systemd"
CRAWL = UNITS / "sumi-ripple.service"


def test_the_page_about_operations_shows_the_unit_as_it_is() -> None:
    assert f"```ini\n{CRAWL.read_text()}```" in (ROOT / "docs" / "operations.md").read_text()


def test_the_unit_starts_again_after_the_code_that_asks_for_it_and_after_no_other() -> None:
    settings = dict(re.findall(r"^(\w+)=(.*)$", CRAWL.read_text(), re.MULTILINE))
    assert settings["Restart"] == "on-failure"
    prevented = {int(code) for code in settings["RestartPreventExitStatus"].split()}
    assert prevented == {1, 2, 130} and CRASHED not in prevented


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_no_fault_in_the_units(tmp_path: Path) -> None:
    names = sorted(path.name for path in UNITS.iterdir())
    for name in names:  # the program is elsewhere on this machine, and so is its user
        text = re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", (UNITS / name).read_text(), flags=re.MULTILINE)
        (tmp_path / name).write_text(text.replace("User=sumi-ripple", "User=root"))
    verify = ["systemd-analyze", "verify", *names]
    done = subprocess.run(verify, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    told = [line for line in done.stderr.splitlines() if "sumi-ripple" in line]
    assert told == [] and done.returncode == 0, done.stderr
