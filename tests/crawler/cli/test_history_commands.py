"""runs: the commands that look back, on a crawl of the demo and on wrong input."""

from __future__ import annotations

import subprocess
from pathlib import Path

import orjson
import pytest

from tests.crawler.cli.calling import called

Crawled = tuple[Path, subprocess.CompletedProcess[str]]


def test_runs_lists_the_demo_with_the_figures_of_its_summary(
    crawled: Crawled, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(crawled[0] / "workspace" / "demo")
    assert called("runs", "demo.toml", "--json") == 0
    (run,) = orjson.loads(capsys.readouterr().out)["runs"]
    assert called("stats", "demo.toml", "--json") == 0
    figures = orjson.loads(capsys.readouterr().out)
    overall = figures["overall"]
    kept = {name: run[name] for name in ("pages", "known", "links", "errors")}
    assert list(kept.values()) == [overall[name] for name in ("pages_crawled", "urls_known", "links", "errors")]
    assert run["seconds"] == figures["run"]["seconds"] and run["status"] == "completed"
    assert called("runs", "demo.toml") == 0
    assert capsys.readouterr().out.count("\n") == 2


@pytest.mark.parametrize(("argument", "code"), [("nosuch.db", 2), ("my.toml", 1), ("nosuch.toml", 2)])
def test_runs_of_nothing_is_one_sentence(
    here: Path, config_path: Path, capsys: pytest.CaptureFixture[str], argument: str, code: int
) -> None:
    assert called("runs", argument) == code
    assert capsys.readouterr().err.count("\n") == 1
