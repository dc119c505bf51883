"""report, replay, digest, stats, explain, export and audit."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import orjson
import pytest

from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.runs import Run, RunStatus, read_run, write_run
from tests.crawler.cli.calling import called


def test_a_database_that_is_none_is_one_sentence(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "broken.db").write_bytes(b"SQLite format 3\0" + b"garbage" * 100)
    assert called("digest", "broken.db") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "database" in error


def test_report_can_wait_for_the_end_of_the_run(
    workspace: FileWorkspace, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a database there is nothing to report, so the end of the wait shows in the error."""
    write_run(workspace, Run(1, RunStatus.RUNNING))
    timer = threading.Timer(0.1, lambda: write_run(workspace, Run(1, RunStatus.COMPLETED)))
    timer.start()
    assert called("report", "my.toml", "--wait") == 1
    assert read_run(workspace) == Run(1, RunStatus.COMPLETED)
    timer.join()
    assert "no database" in capsys.readouterr().err


def test_the_map_of_a_crawl_can_be_read(
    demo_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = ("--workspace", str(demo_folder))
    assert called("demo.toml", "--stats") == 0
    assert "Pages crawled" in capsys.readouterr().out
    assert called("stats", "sumi-ripple.db", "--json") == 0
    assert orjson.loads(capsys.readouterr().out)["v"] == 1
    assert called("demo.toml", "--export-summary") == 0
    assert "Summary written to" in capsys.readouterr().out
    assert called("explain", "https://tea-almanac.test/", *flags) == 0
    assert "class         quality" in capsys.readouterr().out
    assert called("explain", "moss-notes.test", "demo.toml", *flags) == 0
    assert "linked from   2 quality domains, 3 links" in capsys.readouterr().out
    assert called("explain", "www.moss-notes.test", "demo.toml", "--json", *flags) == 0
    assert orjson.loads(capsys.readouterr().out)["domain"] == "moss-notes.test"
    assert called("export", "demo.toml", "map.gexf") == 0
    assert "map.gexf" in capsys.readouterr().out
    near = ("export", "demo.toml", "near.csv", "--level", "domain", "--no-self-loops", "--around")
    assert called(*near, "far-island.test", "--steps", "1") == 0
    assert "Wrote 2 domains and 1 link to near.nodes.csv and near.edges.csv" in capsys.readouterr().out
    assert called(*near, "far-iland.test") == 1
    assert "the map has no domain far-iland.test; similar: far-island.test" in capsys.readouterr().err
    assert called("map", "demo.toml", "map.html", "--domains", "5") == 0
    assert "Wrote map.html: showing 5 of " in capsys.readouterr().out
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
