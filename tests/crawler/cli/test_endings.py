"""The end of a crawl as a person meets it: nothing reached, a crawl that was moved, places that cannot be used."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import orjson
import pytest

from crawler.config import places
from tests.crawler.cli.calling import called, sumi

REFUSED = """
[crawler]
retries = 0
robots-retries = 0
[network.resolve]
"*" = "127.0.0.1:9"
[[quality]]
domain = "a.test"
[[quality]]
domain = "b.test"
[resilience]
probe-every = "1s"
"""


def test_a_crawl_that_reached_nothing_says_so_first_exits_1_and_keeps_the_last_good_summary(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(REFUSED)
    (tmp_path / "crawl-summary.md").write_text("the last good one")
    done = sumi("my.toml", cwd=tmp_path)
    assert done.returncode == 1
    lines = [line for line in done.stdout.splitlines() if "·" not in line and not line.startswith("Crawling")]
    assert lines[:3] == [
        "0 pages crawled: all 2 seeds failed: connection refused ×2.",
        "  https://a.test/  connection refused",
        "  https://b.test/  connection refused",
    ]
    assert (tmp_path / "crawl-summary.md").read_text() == "the last good one"
    own = (tmp_path / "workspace" / "summaries" / "run-1.md").read_text()
    assert "**0 pages crawled: all 2 seeds failed: connection refused ×2.**" in own
    assert "explain https://a.test/ my.toml" in done.stdout, "a command with real arguments"
    assert sumi("stats", "my.toml", "--by", "seed", cwd=tmp_path).stdout.endswith("2 of 2 seeds failed\n")
    quiet = sumi("my.toml", "-q", cwd=tmp_path)
    assert (quiet.returncode, quiet.stdout) == (1, "")
    assert "[ERROR] 0 pages crawled" in quiet.stderr
    assert (tmp_path / "workspace" / "summaries" / "run-2.md").exists(), "every run keeps its own"


def test_the_last_words_name_figures_duration_files_and_commands(
    crawled: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, done = crawled
    assert re.search(r"\d+ pages crawled \(\d+ of them rejected\), \d+ failed, 0 waiting, \d+ known; ", done.stdout)
    commands = [line.partition("sumi-ripple ")[2] for line in done.stdout.partition("Next:")[2].splitlines() if line]
    assert 3 <= len(commands) <= 4
    for command in commands[:3]:
        assert sumi(*command.split(), cwd=folder).returncode == 0, command


def test_a_crawl_folder_that_was_moved_as_a_whole_just_works(
    crawled: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    shutil.copytree(crawled[0], tmp_path / "moved")
    moved = tmp_path / "moved"
    status = orjson.loads(sumi("status", "--json", cwd=moved).stdout)
    assert status["workspace"] == str(moved / "workspace" / "demo")
    assert status["backlog"]["results_bytes"] == 0, "it is the moved database that was asked"
    for words in (("audit",), ("explain", "https://tea-almanac.test/"), ("replay", "--into", "again.db")):
        done = sumi(*words, cwd=moved)
        assert done.returncode == 0, done.stderr
    (moved / "workspace" / "demo" / "sumi-ripple.db").unlink()
    lost = sumi("stats", "workspace/demo/demo.toml", cwd=moved)
    assert lost.returncode == 1 and "moved or deleted" in lost.stderr and "sumi-ripple replay" in lost.stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("export", "--run", "99"), "the runs there are: 1"),
        (("export", "--domain", "tea-almanack.test"), "tea-almanac.test"),
        (("replay", "--run", "99", "--into", "x.db"), "the runs there are: 1"),
        (("replay", "--until", "2001-01-01T00:00:00Z", "--into", "x.db"), "the first one is of 20"),
    ],
)
def test_an_empty_answer_says_so_and_names_what_there_is(
    words: tuple[str, ...],
    hint: str,
    demo_folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert called(words[0], "demo.toml", *words[1:]) == 1
    assert hint in capsys.readouterr().err
    assert not (demo_folder / "x.db").exists()


def test_a_ca_file_without_a_certificate_is_named_at_the_dry_run(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "ca.pem").write_text("no certificate")
    (here / "my.toml").write_text('[network]\nca-bundle = "ca.pem"\n[[quality]]\ndomain = "a.test"\n')
    assert called("my.toml", "--dry-run") == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and str(here / "ca.pem") in error and "BEGIN CERTIFICATE" in error


def test_a_full_disk_and_a_place_that_is_no_folder_are_named_at_the_dry_run(
    here: Path, config_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "file").touch()
    assert called("my.toml", "--dry-run", "--workspace", "file/below") == 1
    assert "file is not a folder" in capsys.readouterr().err
    found = os.statvfs(here)
    monkeypatch.setattr(places, "LEAST_FREE", found.f_blocks * found.f_frsize + 1)
    assert called("my.toml", "--dry-run") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "is full" in error and "workspace" in error and "--workspace" in error


def test_the_dry_run_estimates_requests_and_time(
    here: Path, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("my.toml", "--dry-run") == 0
    text = capsys.readouterr().out
    assert "quality list: 3 to 500 requests, 2 s to 8 min" in text
    assert "each discovered domain: up to 50 requests, 49 s" in text


def test_a_stage_by_hand_says_what_it_does_waits_for_and_how_it_ended(here: Path, config_path: Path) -> None:
    done = sumi("ingest", "my.toml", "--drain", cwd=here)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        f"The ingest applies results to the map in {here / 'workspace'}, until its run is over; Ctrl-C saves and ends",
        "The ingest has ended; no run has started yet",
    ]
    assert sumi("ingest", "my.toml", "--drain", "-q", cwd=here).stderr == ""
