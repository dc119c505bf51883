"""candidates, accept, reject and stub: a curator's commands on a crawl of the demo, and on wrong input."""

from __future__ import annotations

import shutil
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


def test_a_decision_shows_what_the_map_would_become_and_is_undone(
    crawled: Crawled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "demo"
    shutil.copytree(crawled[0] / "workspace" / "demo", folder, ignore=shutil.ignore_patterns("bells"))
    monkeypatch.chdir(folder)
    before = (folder / "demo.toml").read_bytes()
    flags = ("--workspace", folder)
    assert called("accept", "moss-notes.test", "demo.toml", "--note", "two point there", "--tag", "moss", *flags) == 0
    text = capsys.readouterr().out
    assert "Put moss-notes.test into [[quality]]" in text
    assert "  domains that went from discovered to quality: 1\n" in text
    assert called("report", "demo.toml", *flags) == 0
    summary = (folder / "crawl-summary.md").read_text()
    assert "| quality | moss-notes.test | two point there | moss |" in summary
    assert called("stub", "ad-lantern.test", "demo.toml", "--no-preview", *flags) == 0
    text = capsys.readouterr().out
    assert "and out of [[blacklist]]" in text and "map would become" not in text
    assert called("reject", "--undo", "demo.toml", *flags) == 0
    assert called("reject", "--undo", "demo.toml", *flags) == 0
    assert "pages only in the old map: 0; only in the new one: 0" in capsys.readouterr().out
    assert (folder / "demo.toml").read_bytes() == before
    assert not list(folder.glob(".sumi-preview-*"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("accept",),
        ("accept", "a.test", "b.test", "my.toml"),
        ("reject", "ads.test", "my.toml"),
        ("stub", "https://", "my.toml"),
        ("stub", "b.test", "nosuch.toml"),
        ("stub", "--undo", "my.toml"),
        ("accept", "b.test", "--undo", "--note", "x", "my.toml"),
        ("accept", "b.test", "--tag", "two words", "my.toml"),
    ],
)
def test_a_wrong_decision_is_one_sentence_and_changes_nothing(
    here: Path, config_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    before = config_path.read_bytes()
    assert called(*arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("sumi-ripple: ") and error.count("\n") == 1
    assert config_path.read_bytes() == before


def test_a_decision_before_the_first_crawl_says_that_there_is_no_map(
    here: Path, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("accept", "b.test", "my.toml") == 0
    assert "Nothing has been crawled yet" in capsys.readouterr().out
    assert 'seeds = ["https://b.test/"]' in config_path.read_text()
