"""The command line as people use it, right and wrong: words, exit codes, one line for what went wrong."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import typer
from typer.testing import CliRunner

from crawler.cli.app import app, run
from crawler.cli.options import with_default
from crawler.workspace.control import StageControl
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.runs import Run, RunStatus, read_run, write_run
from tests.places import ROOT

COMMANDS = ("crawl", "demo", "init", "schedule", "fetch", "ingest", "report", "replay", "digest", "stats", "explain")
COMMANDS += ("export", "audit", "status", "pause", "resume", "stop")


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


@pytest.fixture
def config_path(tmp_path: Path) -> Path:
    path = tmp_path / "my.toml"
    path.write_text(
        """
[user-agent]
contact-url = "https://a.test/about"
contact-email = "me@a.test"
[[quality]]
domain = "a.test"
seeds = ["https://www.a.test/start/?utm_source=x"]
[[blacklist]]
domain = "ads.test"
"""
    )
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def called(*arguments: str | Path) -> int:
    """The command in this process; its exit code."""
    return run([str(argument) for argument in arguments])


# -- the default command ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["my.toml"], ["crawl", "my.toml"]),
        (["my.toml", "-v"], ["crawl", "my.toml", "-v"]),
        (["-v", "my.toml"], ["crawl", "-v", "my.toml"]),
        (["--workers", "3", "my.toml"], ["crawl", "--workers", "3", "my.toml"]),
        (["--dry-run"], ["crawl", "--dry-run"]),
        (["folder/config"], ["crawl", "folder/config"]),
        (["crawl", "my.toml"], ["crawl", "my.toml"]),
        (["status"], ["status"]),
        (["craw", "my.toml"], ["craw", "my.toml"]),
        (["--help"], ["--help"]),
        (["--show-completion", "bash"], ["--show-completion", "bash"]),
        ([], []),
    ],
)
def test_crawl_is_the_default_command(given: list[str], meant: list[str]) -> None:
    assert with_default(given, dict.fromkeys(COMMANDS)) == meant


def test_a_config_that_has_the_name_of_nothing_else_may_lack_an_ending(here: Path) -> None:
    (here / "terrain").write_text("")
    assert with_default(["terrain"], dict.fromkeys(COMMANDS)) == ["crawl", "terrain"]


# -- help -----------------------------------------------------------------------------------------------------


def test_help_names_every_command_and_shows_examples() -> None:
    result = CliRunner().invoke(app, ["--help"], prog_name="sumi-ripple")
    assert result.exit_code == 0
    for command in COMMANDS:
        assert f"  {command} " in result.output
    assert "Examples:" in result.output and "Exit codes: 0 done, 1 failed, 2 bad usage" in result.output
    assert "..." not in result.output.replace("CONFIG ...", ""), "no command's line is cut short"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"], prog_name="sumi-ripple")
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: sumi-ripple {command}")
    assert all(len(line) <= 100 for line in result.output.splitlines())


def test_crawl_has_every_flag_of_the_specification() -> None:
    text = CliRunner().invoke(app, ["crawl", "--help"]).output
    for flag in (
        "-v",
        "-q",
        "--resume",
        "--fresh",
        "--dry-run",
        "--stats",
        "--export-summary",
        "--workers",
        "--workspace",
    ):
        assert flag in text, flag


def test_no_arguments_show_the_help_and_are_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert called() == 2
    assert "Usage: sumi-ripple" in "".join(capsys.readouterr())


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_version(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(flag) == 0
    assert capsys.readouterr().out.startswith("sumi-ripple 1.")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown_for_every_shell(shell: str, tmp_path: Path) -> None:
    result = sumi("--show-completion", shell, cwd=tmp_path, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert result.returncode == 0
    assert "sumi-ripple" in result.stdout or "SUMI_RIPPLE" in result.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("sumi-ripple st", {"status", "stats", "stop"}),
        ("sumi-ripple crawl m", {"my.toml", "maps/"}),
        ("sumi-ripple pause f", {"fetcher"}),
        ("sumi-ripple crawl --dry", {"--dry-run"}),
    ],
)
def test_completion_offers_commands_configs_stages_and_flags(words: str, offered: set[str], tmp_path: Path) -> None:
    for name in ("my.toml", "my.txt", "other.toml"):
        (tmp_path / name).touch()
    (tmp_path / "maps").mkdir()
    environment = {
        "_SUMI_RIPPLE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    result = sumi(cwd=tmp_path, **environment)
    assert set(result.stdout.split()) == offered


# -- mistakes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["craw", "my.toml"], "Did you mean 'crawl'"),
        (["crawl"], "Missing argument 'CONFIG'"),
        (["my.toml", "--nonsense"], "No such option: --nonsense"),
        (["my.toml", "--workers", "0"], "'--workers'"),
        (["my.toml", "--workers", "many"], "'--workers'"),
        (["my.toml", "--fresh", "--resume"], "--resume and --fresh contradict each other"),
        (["my.toml", "-v", "-q"], "-v and -q contradict each other"),
        (["my.toml", "--stats", "--dry-run"], "only one of"),
        (["nowhere.toml"], "nowhere.toml"),
        (["digest", "nowhere.db"], "there is no database at nowhere.db"),
        (["status"], "there is no workspace at"),
        (["pause", "nobody"], "neither a config nor a stage"),
        (["pause", "ingest", "fetcher"], "one config and one stage"),
        (["stats", "my.toml", "--by", "colour"], "domain, state, depth, error"),
        (["export", "my.toml", "map.docx"], "gexf, graphml, csv, jsonl"),
        (["replay", "my.toml", "--into", "x.db", "--until", "yesterday"], "is not a time"),
        (["explain", "my.toml"], "give one URL"),
        (["explain", "https://a.test/"], "which config?"),
        (["explain", "gopher://a.test/", "my.toml"], "'gopher://a.test/'; write it out in full, like https://"),
        (["replay", "my.toml", "--into", "my.toml"], "my.toml exists already"),
        (["digest", "notes.txt"], "notes.txt is neither a database"),
        (["export", "notes.txt"], "notes.txt is neither a database"),
        (["status", "my.toml", "fetcher"], "leave fetcher out"),
        (["pause", "my.toml"], "workspace yet: nothing has been crawled there"),
        (["export", "my.toml", "--domain", "*.*"], "'*.*' is no domain that can be exported"),
        (["init", "my.toml"], "exists already"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(
    arguments: list[str], words: str, here: Path, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "notes.txt").write_text("Not a map, and no config.\n")
    assert called(*arguments) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert "Traceback" not in captured.err and captured.out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["my.toml", "--stats"], "no database"),
        (["my.toml", "--export-summary"], "no database"),
        (["stats", "my.toml"], "no database"),
        (["export", "my.toml", "map.gexf"], "no database"),
        (["replay", "my.toml", "--into", "x.db"], "no result spools"),
        (["audit", "my.toml"], "no result spools"),
    ],
)
def test_what_cannot_be_done_yet_is_one_sentence_and_exit_code_1(
    arguments: list[str], words: str, here: Path, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(*arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("sumi-ripple: ") and words in error and error.count("\n") == 1


def test_every_mistake_of_a_config_is_named_at_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "bad.toml").write_text(
        '[crawler]\nmax-depth = -1\nmax-dept = 2\n[[quality]]\ndomain = "a.test"\nseeds = []\n'
    )
    assert called("bad.toml") == 2
    error = capsys.readouterr().err
    assert "crawler.max-depth" in error and "max-dept" in error and "quality[0].seeds" in error
    assert not (here / "workspace").exists(), "nothing was touched"


def test_a_database_that_is_none_is_one_sentence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "broken.db").write_bytes(b"SQLite format 3\0" + b"garbage" * 100)
    assert called("digest", "broken.db") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "database" in error


def test_a_folder_that_cannot_be_a_workspace_is_one_sentence(
    here: Path, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "file").touch()
    assert called("my.toml", "--workspace", "file") == 2
    assert "--workspace" in capsys.readouterr().err


def test_output_that_nobody_reads_is_no_error(tmp_path: Path, config_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "crawler", "my.toml", "--dry-run"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    finally:
        os.close(write)
    assert done.stderr == ""


# -- init and dry run -------------------------------------------------------------------------------------------


def test_init_writes_a_config_that_can_be_used(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("init", "new.toml") == 0
    assert "Wrote new.toml" in capsys.readouterr().out
    assert called("new.toml", "--dry-run") == 0


def test_a_dry_run_shows_what_would_happen_and_touches_nothing(
    here: Path, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(here.iterdir())
    assert called("my.toml", "--dry-run") == 0
    text = capsys.readouterr().out
    assert "https://a.test/start" in text, "the seed after normalisation"
    assert "SumiRipple/1.0 (+https://a.test/about; me@a.test)" in text
    assert "ads.test" in text and "Nothing was asked of any site" in text
    assert sorted(here.iterdir()) == before


def test_a_dry_run_warns_of_what_will_hurt(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "odd.toml").write_text(
        '[[quality]]\ndomain = "a.test"\nseeds = ["https://a.test/"]\n[[blacklist]]\ndomain = "*.a.test"\n'
    )
    assert called("odd.toml", "--dry-run") == 0
    text = capsys.readouterr().out
    assert "Warnings" in text and "will not be visited" in text and "contact-url" in text


# -- flags ------------------------------------------------------------------------------------------------------


@pytest.fixture
def workspace(here: Path) -> FileWorkspace:
    made = FileWorkspace(here / "workspace")
    made.prepare()
    return made


def test_pause_and_resume_are_the_flag_files(workspace: FileWorkspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("pause") == 0
    assert workspace.layout.flag("pause").exists()
    assert called("pause", "fetcher") == 0
    assert workspace.layout.flag("pause", "fetcher").exists()
    assert called("resume", "fetcher") == 0
    assert not workspace.layout.flag("pause", "fetcher").exists() and workspace.layout.flag("pause").exists()
    assert "still paused" in capsys.readouterr().out
    assert called("resume") == 0
    assert not workspace.layout.flag("pause").exists()
    assert called("resume") == 0
    assert "Nothing was paused" in capsys.readouterr().out


def test_a_flag_goes_to_the_workspace_of_the_config(here: Path, config_path: Path) -> None:
    config_path.write_text('workspace = "elsewhere"\n' + config_path.read_text())
    FileWorkspace(here / "elsewhere").prepare()
    assert called("pause", "my.toml", "ingest") == 0
    assert (here / "elsewhere" / "pause.ingest").exists()


def test_stop_with_nothing_running_leaves_no_flag_behind(
    workspace: FileWorkspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("stop") == 0
    assert "Nothing is running" in capsys.readouterr().out
    assert not workspace.layout.flag("stop").exists()


def test_stop_flags_and_wakes_who_is_running(workspace: FileWorkspace, capsys: pytest.CaptureFixture[str]) -> None:
    role = workspace.take_role("ingest")
    control = StageControl(workspace, "ingest")
    try:
        assert called("stop", "ingest") == 0
        assert workspace.layout.flag("stop", "ingest").exists()
        assert control.wait(30), "its bell was rung"
        assert control.should_stop()
        assert "Told ingest to finish" in capsys.readouterr().out
    finally:
        control.close()
        role.release()


def test_the_only_crawl_under_way_here_is_the_one_that_is_meant(workspace: FileWorkspace, here: Path) -> None:
    demo = FileWorkspace(here / "workspace" / "demo")
    demo.prepare()
    role = demo.take_role("supervisor")
    assert called("pause") == 0
    role.release()
    assert demo.layout.flag("pause").exists() and not workspace.layout.flag("pause").exists()


def test_where_only_the_demo_was_ever_crawled_it_is_meant(
    workspace: FileWorkspace, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = FileWorkspace(here / "workspace" / "demo")
    demo.prepare()
    write_run(demo, Run(1, RunStatus.COMPLETED))
    assert called("status") == 0
    assert capsys.readouterr().out.startswith("run #1 completed")
    write_run(workspace, Run(7, RunStatus.COMPLETED))
    assert called("status") == 0
    assert capsys.readouterr().out.startswith("run #7 completed")


def test_a_flag_that_cannot_be_removed_is_one_sentence(
    workspace: FileWorkspace, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace.layout.flag("pause").mkdir()
    assert called("resume") == 1
    assert capsys.readouterr().err.startswith(
        f"sumi-ripple: cannot remove the flag file {workspace.layout.flag('pause')}: "
    )


def test_a_pause_says_how_to_go_on_in_the_same_place(
    workspace: FileWorkspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("pause", "fetcher", "--workspace", "workspace") == 0
    said = capsys.readouterr().out
    assert said.endswith("go on with: sumi-ripple resume fetcher --workspace workspace\n")
    assert called(*said.rpartition("sumi-ripple ")[2].split()) == 0
    assert not workspace.layout.flag("pause", "fetcher").exists()


def test_status_of_an_idle_workspace(workspace: FileWorkspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("status") == 0
    text = capsys.readouterr().out
    assert text.startswith("no run yet, nothing is at work") and "scheduler     not running" in text
    assert called("status", "--json") == 0
    assert orjson.loads(capsys.readouterr().out)["run"] is None


# -- stages by hand ----------------------------------------------------------------------------------------------


def test_a_second_stage_in_the_same_role_is_refused(
    workspace: FileWorkspace, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for role, command in (("scheduler", "schedule"), ("ingest", "ingest")):
        lock = workspace.take_role(role)
        assert called(command, "my.toml") == 1
        assert f"another {role} is already at work" in capsys.readouterr().err
        lock.release()


def test_a_second_crawl_is_refused(
    workspace: FileWorkspace, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = workspace.take_role("supervisor")
    assert called("my.toml") == 1
    lock.release()
    assert "a crawl is already under way" in capsys.readouterr().err


def test_a_crawl_beside_stages_by_hand_is_refused(
    workspace: FileWorkspace, config_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from crawler.supervise import supervisor

    monkeypatch.setattr(supervisor.require_no_stages, "__defaults__", (0.0,))
    lock = workspace.take_role("fetcher-01")
    assert called("my.toml") == 1
    lock.release()
    assert "started by hand: fetcher-01" in capsys.readouterr().err


def test_report_can_wait_for_the_end_of_the_run(
    workspace: FileWorkspace, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a database there is nothing to report, so the wait's end shows in the complaint."""
    write_run(workspace, Run(1, RunStatus.RUNNING))
    timer = threading.Timer(0.1, lambda: write_run(workspace, Run(1, RunStatus.COMPLETED)))
    timer.start()
    assert called("report", "my.toml", "--wait") == 1
    assert read_run(workspace) == Run(1, RunStatus.COMPLETED)
    timer.join()
    assert "no database" in capsys.readouterr().err


# -- the pages that people read --------------------------------------------------------------------------------


def commands_in(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    in_blocks = re.findall(r"^(?:\.venv/bin/)?sumi-ripple ([^#\n]*)", text, re.M)
    return in_blocks + re.findall(r"`sumi-ripple ([^` ]+ [^`]+)`", text)  # a word alone names a command


@pytest.mark.parametrize("page", ["README.md", "docs/outputs.md"])
def test_every_command_on_the_page_can_be_given_as_it_stands_there(page: str) -> None:
    group = typer.main.get_command(app)
    given = [with_default(shlex.split(line), dict.fromkeys(COMMANDS)) for line in commands_in(page)]
    assert len(given) > 4
    for name, *arguments in given:
        group.commands[name].make_context(name, arguments)  # type: ignore[attr-defined]


# -- a whole crawl: what the commands say of it -------------------------------------------------------------------


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, subprocess.CompletedProcess[str]]]:
    """The demo terrain, crawled with the real command."""
    folder = tmp_path_factory.mktemp("demo")
    yield folder, sumi("demo", "--workers", "2", "-v", cwd=folder)


def test_the_demo_ends_well_and_says_where_everything_is(
    crawled: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, done = crawled
    assert done.returncode == 0, done.stderr
    for line in (
        "Run #1 is complete.",
        "summary   workspace/demo/crawl-summary.md",
        "database  workspace/demo/sumi-ripple.db",
    ):
        assert line in done.stdout
    assert (folder / "workspace" / "demo" / "crawl-summary.md").exists()
    assert read_run(FileWorkspace(folder / "workspace" / "demo")) == Run(1, RunStatus.COMPLETED)


def test_the_log_has_the_lines_of_the_specification(crawled: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """Seed 000, appendix A."""
    log = crawled[1].stderr.splitlines()
    for line in (
        "[INFO] Starting Sumi-Ripple v1.0",
        "[INFO] Loaded configuration with 4 quality domains, 2 blacklisted, 2 stubbed",
        "[INFO] Starting run #1",
        "[INFO] Seeding frontier with 6 URLs",
        "[INFO] Run #1 completed successfully",
    ):
        assert line in log
    for start in (
        "[INFO] Creating new database at ",
        "[INFO] Crawling https://",
        "[INFO] Discovered ",
        "[INFO] Summary written to ",
    ):
        assert any(line.startswith(start) for line in log), start


def test_the_map_of_a_crawl_can_be_asked(
    crawled: tuple[Path, subprocess.CompletedProcess[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = crawled[0] / "workspace" / "demo"
    monkeypatch.chdir(folder)
    flags = ("--workspace", str(folder))
    assert called("demo.toml", "--stats") == 0
    assert "Pages crawled" in capsys.readouterr().out
    assert called("stats", "sumi-ripple.db", "--json") == 0
    assert orjson.loads(capsys.readouterr().out)["v"] == 1
    assert called("demo.toml", "--export-summary") == 0
    assert "Summary written to" in capsys.readouterr().out
    assert called("explain", "https://tea-almanac.test/", *flags) == 0
    assert "class         quality" in capsys.readouterr().out
    assert called("export", "demo.toml", "map.gexf") == 0
    assert "map.gexf" in capsys.readouterr().out
    assert called("audit", "demo.toml", *flags) == 0
    assert "clean" in capsys.readouterr().out
    assert called("status", "--json", *flags) == 0
    status = orjson.loads(capsys.readouterr().out)
    assert status["run"] == {"number": 1, "status": "completed"}
    assert status["backlog"]["results_bytes"] == 0
    assert {"domain": "busy-counter.test", "reason": "rate-limited"} in status["waiting"]["closed"]


def test_a_replay_has_the_digest_of_the_crawl(
    crawled: tuple[Path, subprocess.CompletedProcess[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = crawled[0] / "workspace" / "demo"
    monkeypatch.chdir(folder)
    assert called("replay", "demo.toml", "--workspace", folder, "--into", tmp_path / "again.db", "--compare") == 0
    assert "The map is in" in capsys.readouterr().out
    assert called("digest", "sumi-ripple.db") == 0
    assert called("digest", tmp_path / "again.db") == 0
    first, second = capsys.readouterr().out.split()
    assert first == second
    assert called("replay", "demo.toml", "--workspace", folder, "--into", tmp_path / "again.db") == 2
    assert "exists already" in capsys.readouterr().err


def test_a_crawl_killed_before_its_summary_is_only_brought_to_its_end(
    crawled: tuple[Path, subprocess.CompletedProcess[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = crawled[0] / "workspace" / "demo"
    monkeypatch.chdir(folder)
    mark = folder / "state" / "crawl.json"
    assert orjson.loads(mark.read_bytes())["status"] == "done"
    mark.write_bytes(orjson.dumps({"v": 1, "status": "running", "before": "none"}))
    (folder / "crawl-summary.md").unlink()
    done = sumi("demo.toml", "--workspace", folder, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Run #1 is complete." in done.stdout, "not a second run"
    assert (folder / "crawl-summary.md").exists()


def test_an_interrupted_crawl_exits_130_and_goes_on(tmp_path: Path) -> None:
    from crawler.demo.demo_config import write_demo_config
    from crawler.demo.server import serve_terrain
    from crawler.demo.terrain import demo_terrain

    with serve_terrain(demo_terrain(), tmp_path / "server") as served:
        config = write_demo_config(tmp_path, served)
        command = [sys.executable, "-m", "crawler", str(config), "--workspace", str(tmp_path / "ws"), "-v"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("[INFO] Discovered"):
                break
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 130
        assert "everything is saved" in output
        assert read_run(FileWorkspace(tmp_path / "ws")) == Run(1, RunStatus.INTERRUPTED)
        text = config.read_text()
        config.write_text(text.replace("max-depth = 2", "max-depth = 1"))
        again = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert again.returncode == 0, again.stderr
    assert "[INFO] Found interrupted run #1, resuming..." in again.stderr
    assert "[INFO] Continuing crawl..." in again.stderr
    assert "[WARNING]   crawler.max-depth: 2 → 1" in again.stderr
    with sqlite3.connect(tmp_path / "sumi-ripple.db") as db:
        assert db.execute("SELECT id, status FROM runs").fetchall() == [(1, "completed")]
