"""crawl, demo and init."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from crawler.cli.app import app
from crawler.supervise import before_start
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.runs import Run, RunStatus, read_run
from tests.crawler.cli.calling import called, sumi
from tests.places import ROOT


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
    assert "ads.test" in text and "No request was sent" in text
    assert sorted(here.iterdir()) == before


def test_a_dry_run_warns_of_likely_mistakes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "odd.toml").write_text(
        '[[quality]]\ndomain = "a.test"\nseeds = ["https://a.test/"]\n[[blacklist]]\ndomain = "*.a.test"\n'
    )
    assert called("odd.toml", "--dry-run") == 0
    text = capsys.readouterr().out
    assert "Warnings" in text and "will not be visited" in text and "contact-url" in text


def test_a_second_crawl_is_refused(
    workspace: FileWorkspace, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = workspace.take_role("supervisor")
    assert called("my.toml") == 1
    lock.release()
    assert "a crawl is already running" in capsys.readouterr().err


def test_a_crawl_beside_stages_by_hand_is_refused(
    workspace: FileWorkspace, config_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(before_start.require_no_stages, "__defaults__", (0.0,))
    lock = workspace.take_role("fetcher-01")
    assert called("my.toml") == 1
    lock.release()
    assert "started by hand: fetcher-01" in capsys.readouterr().err


def test_the_demo_completes_its_run_and_names_its_files(
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


def test_a_crawl_killed_before_its_summary_only_gets_its_summary(
    demo_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mark = demo_folder / "state" / "crawl.json"
    assert orjson.loads(mark.read_bytes())["status"] == "done"
    mark.write_bytes(orjson.dumps({"v": 1, "status": "running", "before": "none"}))
    (demo_folder / "crawl-summary.md").unlink()
    done = sumi("demo.toml", "--workspace", demo_folder, cwd=demo_folder)
    assert done.returncode == 0, done.stderr
    assert "Run #1 is complete." in done.stdout, "not a second run"
    assert (demo_folder / "crawl-summary.md").exists()


def test_an_interrupted_crawl_exits_130_and_is_resumed(tmp_path: Path) -> None:
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
