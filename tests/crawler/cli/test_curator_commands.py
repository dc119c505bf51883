"""candidates: a curator's commands on a crawl of the demo, and on wrong input."""

from __future__ import annotations

import subprocess
from pathlib import Path

import orjson
import pytest

from tests.crawler.cli.calling import called

Crawled = tuple[Path, subprocess.CompletedProcess[str]]


def test_candidates_ranks_the_domains_of_the_demo(
    crawled: Crawled, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(crawled[0] / "workspace" / "demo")
    assert called("candidates", "demo.toml", "--limit", "2") == 0
    text = capsys.readouterr().out
    assert text.startswith("  1. moss-notes.test: 2 quality domains, 3 links, depth 1\n     title        Moss Notes\n")
    assert called("candidates", "sumi-ripple.db", "--json") == 0
    rows = orjson.loads(capsys.readouterr().out)["candidates"]
    assert [row["domain"] for row in rows][:2] == ["moss-notes.test", "unvisited-cove.test"]
    assert called("candidates", "demo.toml", "--csv") == 0
    assert capsys.readouterr().out.startswith("rank,domain,unicode,class,")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("my.toml", "--json", "--csv"), "only one of"),
        (("nosuch.db",), "no database at"),
        (("nosuch.toml",), "no config file"),
        (("my.toml", "--limit", "0"), "--limit"),
    ],
)
def test_bad_input_of_candidates_ends_with_code_2(
    here: Path, config_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert called("candidates", *arguments) == 2
    assert words in capsys.readouterr().err


def test_candidates_before_the_first_crawl_says_that_nothing_was_crawled(
    here: Path, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("candidates", "my.toml") == 1
    assert "nothing has been crawled yet" in capsys.readouterr().err
