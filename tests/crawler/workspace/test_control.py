"""The control of a stage: what a SIGHUP means, with a terminal and without one."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from crawler.workspace.control import REPLACED, StageControl
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.reloads import ReloadWatch, order_reload
from tests.places import ROOT

STAGE = """
import sys
from pathlib import Path
from crawler.workspace.control import StageControl
from crawler.workspace.files.file_workspace import FileWorkspace
workspace = FileWorkspace(Path(sys.argv[1]))
workspace.prepare()
control = StageControl(workspace, "scheduler")
control.install_signals()
Path(sys.argv[2]).write_text("ready")
while not control.should_stop():
    control.wait(0.05)
Path(sys.argv[2]).write_text(str(control.exit_code))
"""


def _end_of_terminal(root: Path, note: Path) -> str:
    pid, terminal = pty.fork()
    if pid == 0:  # the session's leader, whose terminal is about to go
        os.chdir(ROOT)
        os.execv(sys.executable, [sys.executable, "-c", STAGE, str(root), str(note)])
    while not note.exists() or not note.read_text():
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    os.close(terminal)
    os.waitpid(pid, 0)
    return note.read_text()


def test_a_stage_whose_terminal_is_gone_saves_and_ends(tmp_path: Path) -> None:
    assert _end_of_terminal(tmp_path / "workspace", tmp_path / "note") == "130"


def test_sighup_without_a_terminal_means_that_the_config_is_to_be_read_again(tmp_path: Path) -> None:
    note = tmp_path / "note"
    words = [sys.executable, "-c", STAGE, str(tmp_path / "workspace"), str(note)]
    with subprocess.Popen(words, cwd=ROOT, start_new_session=True) as stage:
        while not note.exists() or not note.read_text():
            assert stage.poll() is None
        stage.send_signal(1)
    assert note.read_text() == str(REPLACED)


def test_a_sighup_that_comes_while_orders_are_looked_for_is_heeded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = FileWorkspace(tmp_path / "workspace")
    workspace.prepare()
    with monkeypatch.context() as before, closing(StageControl(workspace, "scheduler")) as control:
        before.setattr(ReloadWatch, "is_ordered", lambda watch: bool(control.ask_to_be_replaced()))
        assert control.should_stop() and control.exit_code == REPLACED


def test_an_order_is_heeded_once_and_not_by_a_stage_that_has_read_the_config_since(tmp_path: Path) -> None:
    workspace = FileWorkspace(tmp_path / "workspace")
    workspace.prepare()
    by_hand, supervised = (
        StageControl(workspace, "scheduler"),
        StageControl(workspace, "ingest", is_supervised=True),
    )
    assert not by_hand.should_stop()
    order_reload(workspace)
    after = StageControl(workspace, "scheduler", "scheduler-2")
    by_hand._flags_read_at = supervised._flags_read_at = 0.0
    assert by_hand.should_stop() and by_hand.exit_code == REPLACED
    assert not supervised.should_stop() and not after.should_stop()
    for control in (by_hand, supervised, after):
        control.close()
