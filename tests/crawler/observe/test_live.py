"""The live view: its words, and what a real terminal (a pseudo-terminal read by pyte) makes of it."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pyte
import pytest

from crawler.model.records import Job, dump
from crawler.observe.live import PlainView, QuietView, Rate, TerminalView, choose_view, duration, plain_line, view_lines
from crawler.observe.logs import inert
from crawler.observe.processes import Glance, backlog, look
from crawler.observe.status import Status
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Writer
from crawler.workspace.runs import Run, RunStatus, read_run, write_run
from tests.places import ROOT

NOW = datetime(2025, 1, 15, 10, 30, tzinfo=UTC)


def beat(workspace: FileWorkspace, name: str, facts: dict[str, Any], *, doing: str = "running", age: int = 0) -> None:
    stage = "fetcher" if name.startswith("fetcher") else name
    at = datetime.fromtimestamp(NOW.timestamp() - age, UTC).isoformat().replace("+00:00", "Z")
    content = {"v": 1, "stage": stage, "name": name, "pid": 7, "started": at, "at": at, "doing": doing, "facts": facts}
    workspace.layout.status_of(name).write_bytes(orjson.dumps(content))


@pytest.fixture
def workspace(tmp_path: Path) -> FileWorkspace:
    made = FileWorkspace(tmp_path / "workspace")
    made.prepare()
    write_run(made, Run(3, RunStatus.RUNNING))
    beat(made, "scheduler", {"released": 10, "active_domains": 4, "waiting_domains": 12_000})
    beat(made, "fetcher-01", {"in_flight": 3, "requests": 900, "next_due": {"domain": "b.test", "seconds": 2.5}})
    beat(made, "fetcher-02", {"in_flight": 4, "requests": 100, "next_due": {"domain": "a.test", "seconds": 0.5}})
    counts = {"pages": 1234, "known": 5678, "links": 98_765, "frontier": 4321, "errors": 1, "run": 3, "backlog": 2048}
    beat(made, "ingest", counts)
    return made


def seen(workspace: FileWorkspace) -> Glance:
    return look(workspace, NOW, with_locks=False)


# -- words ---------------------------------------------------------------------------------------------------


def test_a_plain_line_holds_all_the_facts(workspace: FileWorkspace) -> None:
    assert plain_line(seen(workspace), 12.34, 83) == (
        "run #3 · 1,234 pages done (12.3/s) · 4,321 waiting · 7 in flight · 1 error · 1:23"
    )


def test_the_view_says_how_every_stage_is(workspace: FileWorkspace) -> None:
    text = "\n".join(line for line, _ in view_lines(seen(workspace), 12.34, 83))
    assert "1,234 pages done" in text and "12.3 pages/s" in text
    assert "4,321 waiting" in text and "7 in flight" in text and "1 error" in text
    assert "scheduler  running, 4 domains active, 12,000 in line" in text
    assert "fetchers   2 running, 1,000 requests" in text
    assert "ingest     running, 2 KiB to take in" in text


def test_no_line_of_the_view_is_longer_than_sixty_columns(workspace: FileWorkspace) -> None:
    huge = {"pages": 10**12, "known": 10**12, "links": 10**14, "frontier": 10**12, "errors": 10**12, "backlog": 10**15}
    beat(workspace, "ingest", huge)
    beat(workspace, "fetcher-01", {"next_due": {"domain": "x" * 250, "seconds": 0.1}})
    beat(workspace, "fetcher-02", {})
    beat(workspace, "scheduler", {}, age=500)
    for flag in (None, "scheduler", "fetcher", "ingest"):
        workspace.layout.flag("pause", flag).touch()
        assert all(len(line) <= 60 for line, _ in view_lines(seen(workspace), 10**9, 10**9))


def test_a_stage_without_a_heartbeat_is_not_running(workspace: FileWorkspace) -> None:
    beat(workspace, "ingest", {}, age=60)
    assert ("  ingest     not running", "red") in view_lines(seen(workspace), 0, 0)


def test_stages_that_ended_with_their_run_are_no_alarm(workspace: FileWorkspace) -> None:
    beat(workspace, "ingest", {}, doing="stopped")
    write_run(workspace, Run(3, RunStatus.COMPLETED))
    assert ("  ingest     ended", "dim") in view_lines(seen(workspace), 0, 0)


def test_one_is_not_many_and_before_the_second_look_there_is_no_rate(workspace: FileWorkspace) -> None:
    beat(workspace, "scheduler", {"active_domains": 1, "waiting_domains": 0})
    text = "\n".join(line for line, _ in view_lines(seen(workspace), None, 83))
    assert "1 domain active" in text and "pages/s" not in text
    assert plain_line(seen(workspace), None, 83).startswith("run #3 · 1,234 pages done · 4,321 waiting")


def test_a_pause_is_said_with_the_way_out(workspace: FileWorkspace) -> None:
    workspace.layout.flag("pause", "fetcher").touch()
    assert plain_line(seen(workspace), 0, 0).endswith("paused by pause.fetcher (sumi-ripple resume)")
    assert view_lines(seen(workspace), 0, 0)[-1][0] == "  paused by pause.fetcher (sumi-ripple resume)"


def test_while_nothing_is_in_flight_the_next_domain_is_named(workspace: FileWorkspace) -> None:
    for name, domain, seconds in (("fetcher-01", "b.test", 2.5), ("fetcher-02", "a.test", 0.5)):
        beat(workspace, name, {"in_flight": 0, "next_due": {"domain": domain, "seconds": seconds}})
    assert view_lines(seen(workspace), 0, 0)[-1][0] == "  next: a.test in 0.5 s"


def test_before_the_first_heartbeat_there_is_something_to_show(tmp_path: Path) -> None:
    empty = look(FileWorkspace(tmp_path / "nowhere"), NOW)
    assert plain_line(empty, 0, 0).startswith("starting · 0 pages done")
    assert view_lines(empty, 0, 0)


def test_heartbeats_that_cannot_be_read_are_passed_over(workspace: FileWorkspace) -> None:
    workspace.layout.status_of("ingest").write_bytes(b'{"torn')
    workspace.layout.status_of("fetcher-01").write_bytes(b"[]")
    workspace.layout.status_of("fetcher-02").write_bytes(b'{"name": "fetcher-02", "at": 5, "facts": "none"}')
    assert plain_line(seen(workspace), 0, 0).startswith("run #3 · 0 pages done")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (42.9, "0:42"), (723, "12:03"), (11_275, "3:07:55"), (184_075, "2d 3:07:55"), (-1, "0:00")],
)
def test_durations_read_like_a_clock(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_rate_is_over_the_last_seconds_and_begins_anew_with_another_map() -> None:
    rate = Rate()
    assert rate.note(0, 100) is None, "one look tells no rate"
    assert rate.note(10, 200) == 10
    for second in range(11, 60):
        last = rate.note(second, 200)
    assert last == 0
    assert rate.note(60, 5) is None
    assert rate.note(61, 9) == 4


@pytest.mark.parametrize("text", ["\x1b[2J", "a\nb", "\x9b31m", "\x07", "\u202eevil", "\r", "\u2028"])
def test_nothing_that_a_terminal_would_obey_gets_into_a_log_line(text: str) -> None:
    assert inert(text).isprintable()
    assert inert("Crawling https://ä.test/ 漢字") == "Crawling https://ä.test/ 漢字"


# -- which view ----------------------------------------------------------------------------------------------


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
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(choose_view(is_quiet=False, verbosity=0, out=Terminal()), TerminalView)
    assert isinstance(choose_view(is_quiet=False, verbosity=1, out=Terminal()), PlainView)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(choose_view(is_quiet=False, verbosity=0, out=Terminal()), PlainView)


# -- status ---------------------------------------------------------------------------------------------------


def test_status_in_words_fits_eighty_columns(workspace: FileWorkspace) -> None:
    workspace.layout.flag("pause").touch()
    role = workspace.take_role("fetcher-01")
    lines = [text for text, _ in Status(workspace).lines()]
    role.release()
    assert all(len(line) <= 80 for line in lines)
    text = "\n".join(lines)
    assert "run #3 running" in text and "fetcher-01    running, pid 7" in text
    assert "all stages paused by the flag file pause" in text
    assert "next due: b.test in 2.5 s" in text


def test_status_as_json_has_a_version_and_the_documented_members(workspace: FileWorkspace) -> None:
    found = orjson.loads(orjson.dumps(Status(workspace).as_json()))
    assert found["v"] == 1 and found["kind"] == "status"
    assert found.keys() >= {"at", "workspace", "run", "flags", "stages", "figures", "waiting", "backlog"}
    assert found["run"] == {"number": 3, "status": "running"}
    assert {stage["name"] for stage in found["stages"]} == {"scheduler", "fetcher-01", "fetcher-02", "ingest"}
    assert all(stage["is_running"] is False for stage in found["stages"]), "nobody holds a lock"


def test_the_backlog_is_what_lies_behind_the_bookmarks(workspace: FileWorkspace) -> None:
    writer = Writer(workspace.layout.jobs_of("a.test"))
    first = writer.append(dump(Job(1, "https://a.test/", "https://a.test/", "a.test")))
    whole = writer.append(dump(Job(1, "https://a.test/x", "https://a.test/x", "a.test")))
    assert backlog(workspace, None).jobs_bytes == whole.offset
    mark = {"v": 1, "segment": first.segment, "offset": first.offset, "holder": None, "results": [0, 0]}
    (workspace.layout.jobs_of("a.test") / "bookmark.json").write_bytes(orjson.dumps(mark))
    found = backlog(workspace, None)
    assert (found.jobs_bytes, found.job_domains) == (whole.offset - first.offset, 1)
    assert found.results_bytes is None, "without a database nobody knows"


# -- a real terminal ------------------------------------------------------------------------------------------


class Terminal:
    """A program on a pseudo-terminal, and the screen that a person would see."""

    def __init__(self, arguments: list[str], cwd: Path, columns: int = 80, lines: int = 24) -> None:
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.pid, self._master = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.environ["TERM"] = "xterm-256color"
            os.environ.pop("NO_COLOR", None)
            os.execv(sys.executable, [sys.executable, *arguments])
        self.resize(columns, lines)
        settings = termios.tcgetattr(self._master)
        settings[3] &= ~termios.ECHO  # what the test types must not stand in the picture
        termios.tcsetattr(self._master, termios.TCSANOW, settings)
        self.before = termios.tcgetattr(self._master)

    def resize(self, columns: int, lines: int = 24) -> None:
        self.screen.resize(lines, columns)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def read_until(self, condition: Callable[[str], bool], seconds: float = 60) -> None:
        """Read what the program writes until the screen shows what is waited for."""
        deadline = time.monotonic() + seconds
        while not condition(self.text()):
            assert time.monotonic() < deadline and self._read(seconds), f"never seen; the screen is:\n{self.text()}"

    def wait(self) -> int:
        """Read to the end; returns the exit code."""
        while self._read(60):
            pass
        self.after = termios.tcgetattr(self._master) if self._is_open() else self.before
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _is_open(self) -> bool:
        try:
            termios.tcgetattr(self._master)
            return True
        except termios.error:
            return False

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    def is_restored(self) -> bool:
        """Is the cursor visible, the main screen shown, and are the line settings as before?"""
        hidden, shown = self.raw.rfind(b"\x1b[?25l"), self.raw.rfind(b"\x1b[?25h")
        return shown >= hidden and b"\x1b[?1049h" not in self.raw and self.after == self.before


VIEW_SCRIPT = """
import sys, time
from pathlib import Path
from crawler.observe.processes import look
from crawler.observe.live import choose_view
from crawler.workspace.files.file_workspace import FileWorkspace
workspace = FileWorkspace(Path(sys.argv[1]))
with choose_view(is_quiet=False, verbosity=0) as view:
    view.show(look(workspace, with_locks=False), time.monotonic())
    view.say("[WARNING] above the view")
    for line in sys.stdin:
        if line == "raise\\n":
            raise SystemExit(7)
        if line == "end\\n":
            break
        view.show(look(workspace, with_locks=False), time.monotonic())
print("after the view")
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "view.py"
    path.write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})\n" + VIEW_SCRIPT)
    return str(path)


def test_the_view_stands_below_what_is_said_and_is_drawn_in_place(
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


def test_the_view_is_right_after_the_terminal_was_made_narrower(
    workspace: FileWorkspace, script: str, tmp_path: Path
) -> None:
    terminal = Terminal([script, str(workspace.layout.root)], tmp_path)
    terminal.read_until(lambda text: "ingest" in text)
    for columns in (62, 80, 40):
        drawn = terminal.raw.count(b"Sumi-Ripple")
        terminal.resize(columns)
        terminal.type(b"again\n")
        terminal.read_until(lambda text, drawn=drawn: terminal.raw.count(b"Sumi-Ripple") > drawn)  # type: ignore[misc]
        # A view for the width before may still be on its way, and be torn: it must not stay.
        terminal.read_until(
            lambda text: (
                text.count("Sumi-Ripple") == 1 and all(text.count(word) == 1 for word in ("fetchers", "ingest"))
            )
        )
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
    stages = [stage.pid for stage in look(workspace).stages if stage.pid is not None]
    assert stages and all(os.getsid(pid) != os.getsid(terminal.pid) for pid in stages), "Ctrl-C is not theirs to hear"
    terminal.type(b"\x03")
    assert terminal.wait() == 130
    assert read_run(workspace) == Run(1, RunStatus.INTERRUPTED)
    assert "Stopping: finishing what is in flight..." in terminal.text(), "it was heard at once"
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
