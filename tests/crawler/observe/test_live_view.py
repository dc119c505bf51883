"""The live view on a real terminal (a pseudo-terminal read by pyte), and the choice of a view."""

from __future__ import annotations

import io
import os
import signal
from pathlib import Path

import pytest

from crawler.observe.live_view import PlainView, QuietView, TerminalView, choose_view
from crawler.observe.processes import observe
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.runs import Run, RunStatus, read_run
from tests.crawler.observe.beats import seen
from tests.crawler.observe.terminal import Terminal
from tests.places import ROOT


def test_quiet_shows_nothing_and_a_pipe_gets_plain_lines(
    workspace: FileWorkspace, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = io.StringIO()
    assert type(choose_view(is_quiet=True, verbosity=0, out=pipe)) is QuietView
    view = choose_view(is_quiet=False, verbosity=0, out=pipe)
    assert isinstance(view, PlainView)
    with view:
        view.show(seen(workspace), 5.0)
        view.say("[WARNING] something")
    assert pipe.getvalue().startswith("run #3 · ") and pipe.getvalue().count("\n") == 1
    assert capsys.readouterr().err == "[WARNING] something\n"


def test_a_terminal_gets_the_live_view_unless_it_is_dumb_or_the_log_is_the_view(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class FakeTerminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(choose_view(is_quiet=False, verbosity=0, out=FakeTerminal()), TerminalView)
    assert isinstance(choose_view(is_quiet=False, verbosity=1, out=FakeTerminal()), PlainView)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(choose_view(is_quiet=False, verbosity=0, out=FakeTerminal()), PlainView)


VIEW_SCRIPT = """
import sys, time
from pathlib import Path
from crawler.observe.processes import observe
from crawler.observe.live_view import choose_view
from crawler.workspace.files.file_workspace import FileWorkspace
workspace = FileWorkspace(Path(sys.argv[1]))
with choose_view(is_quiet=False, verbosity=0) as view:
    view.show(observe(workspace, with_locks=False), time.monotonic())
    view.say("[WARNING] above the view")
    for line in sys.stdin:
        if line == "raise\\n":
            raise SystemExit(7)
        if line == "end\\n":
            break
        view.show(observe(workspace, with_locks=False), time.monotonic())
print("after the view")
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "view.py"
    path.write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})\n" + VIEW_SCRIPT)
    return str(path)


def test_the_view_is_below_the_log_lines_and_is_drawn_in_place(
    workspace: FileWorkspace, script: str, tmp_path: Path
) -> None:
    terminal = Terminal([script, str(workspace.layout.root)], tmp_path)
    terminal.read_until(lambda text: "above the view" in text and "ingest" in text)
    drawn = terminal.raw.count(b"Sumi-Ripple")
    terminal.type(b"again\n" * 5)
    terminal.read_until(lambda text: terminal.raw.count(b"Sumi-Ripple") >= drawn + 5)
    assert terminal.text().count("Sumi-Ripple") == 1, "not one copy below the other"
    assert terminal.text().index("above the view") < terminal.text().index("Sumi-Ripple")
    terminal.type(b"end\n")
    assert terminal.wait() == 0
    assert terminal.text().split() == ["[WARNING]", "above", "the", "view", "after", "the", "view"], "the view has gone"
    assert terminal.is_restored()


def _is_one_view(text: str, columns: int) -> bool:
    """Is there one view on the screen, as wide as the screen, with no leftovers of another?"""
    heads = [line for line in text.splitlines() if line.startswith("Sumi-Ripple")]
    is_wide = len(heads) == 1 and len(heads[0]) == columns - 1
    return is_wide and all(text.count(word) == 1 for word in ("crawled", "known", "fetchers", "ingest"))


def test_a_terminal_that_breaks_the_old_lines_when_it_is_made_narrower_keeps_no_debris(
    workspace: FileWorkspace, script: str, tmp_path: Path
) -> None:
    terminal = Terminal([script, str(workspace.layout.root)], tmp_path)
    terminal.read_until(lambda text: "above the view" in text and _is_one_view(text, 80))
    terminal.reflow(50)
    assert not _is_one_view(terminal.text(), 50), "its rows are broken in two"
    terminal.type(b"again\n")
    terminal.read_until(lambda text: _is_one_view(text, 50))
    assert "above the view" in terminal.text(), "no more was erased than the view"
    terminal.type(b"end\n")
    assert terminal.wait() == 0


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_view_is_as_wide_as_the_terminal(
    workspace: FileWorkspace, script: str, tmp_path: Path, columns: int
) -> None:
    terminal = Terminal([script, str(workspace.layout.root)], tmp_path, columns)
    terminal.read_until(lambda text: _is_one_view(text, columns))
    terminal.type(b"end\n")
    assert terminal.wait() == 0


def test_the_view_is_right_after_the_terminal_was_made_narrower(
    workspace: FileWorkspace, script: str, tmp_path: Path
) -> None:
    terminal = Terminal([script, str(workspace.layout.root)], tmp_path)
    # Drawn at the start, by `show` and by `say`. A late draw for 80 columns would wrap on the narrower screen.
    terminal.read_until(lambda text: terminal.raw.count(b"Sumi-Ripple") >= 3 and "ingest" in text)
    for columns in (62, 80, 40):
        terminal.resize(columns)
        terminal.type(b"again\n")
        # A view for the width before may still be on its way, and be torn: it must not stay.
        terminal.read_until(lambda text, columns=columns: _is_one_view(text, columns), 20)  # type: ignore[misc]
    terminal.type(b"end\n")
    assert terminal.wait() == 0
    assert terminal.is_restored()


def test_an_error_restores_the_terminal(workspace: FileWorkspace, script: str, tmp_path: Path) -> None:
    terminal = Terminal([script, str(workspace.layout.root)], tmp_path)
    terminal.read_until(lambda text: "ingest" in text)
    terminal.type(b"raise\n")
    assert terminal.wait() == 7
    assert terminal.is_restored()


def test_ctrl_c_in_a_terminal_saves_and_restores_it(tmp_path: Path) -> None:
    repository = str(ROOT)
    run = f"import sys; sys.path.insert(0, {repository!r}); from crawler.__main__ import main; main()"
    terminal = Terminal(["-c", run, "demo", "--workers", "1"], tmp_path)
    terminal.read_until(lambda text: "in flight" in text and "fetchers   running" in text)
    assert all(len(line) <= 80 for line in terminal.text().splitlines())
    workspace = FileWorkspace(tmp_path / "workspace" / "demo")
    stages = [stage.pid for stage in observe(workspace).stages if stage.pid is not None]
    assert stages and all(os.getsid(pid) != os.getsid(terminal.pid) for pid in stages), (
        "the terminal's Ctrl-C does not reach them"
    )
    terminal.type(b"\x03")
    assert terminal.wait() == 130
    assert read_run(workspace) == Run(1, RunStatus.INTERRUPTED)
    assert "Stopping: finishing what is in flight..." in terminal.text(), "it was answered at once"
    assert "everything is saved" in terminal.text()
    assert "Traceback" not in terminal.text()
    assert terminal.is_restored()


def test_status_watch_ends_with_ctrl_c_and_restores_the_terminal(workspace: FileWorkspace, tmp_path: Path) -> None:
    repository = str(ROOT)
    run = f"import sys; sys.path.insert(0, {repository!r}); from crawler.__main__ import main; main()"
    terminal = Terminal(["-c", run, "status", "--watch", "--workspace", str(workspace.layout.root)], tmp_path)
    terminal.read_until(lambda text: "run #3" in text and "backlog" in text)
    os.kill(terminal.pid, signal.SIGINT)
    assert terminal.wait() == 130
    assert "Traceback" not in terminal.text()
    assert terminal.is_restored()
