"""The command line as a whole: help, wrong usage, errors in one sentence, and the commands that the docs name."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from crawler.cli.app import app
from crawler.cli.help_format import with_default
from tests.crawler.cli.calling import COMMANDS, called
from tests.places import ROOT


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


def test_no_arguments_show_the_help_and_are_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert called() == 2
    assert "Usage: sumi-ripple" in "".join(capsys.readouterr())


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_version(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(flag) == 0
    assert capsys.readouterr().out.startswith("sumi-ripple 1.")


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
        (["pause", "nobody"], "neither a config file nor a stage"),
        (["pause", "ingest", "fetcher"], "at most one config and one stage"),
        (["stats", "my.toml", "--by", "colour"], "domain, state, depth, error"),
        (["export", "my.toml", "map.docx"], "gexf, graphml, csv, jsonl"),
        (["map", "my.toml", "my.db"], "my.db is not the name of a page; give one that ends in .html"),
        (["map", "my.toml", "map.html", "--domains", "5001"], "give a number from 1 to 5000"),
        (["map", "my.toml", "map.html", "--domains", "0"], "give a number from 1 to 5000"),
        (["map", "my.toml"], "Missing argument 'FILE'"),
        (["map", "notes.txt", "map.html"], "notes.txt is neither a database"),
        (["replay", "my.toml", "--into", "x.db", "--until", "yesterday"], "is not a time"),
        (["explain", "my.toml"], "give one URL"),
        (["explain", "https://a.test/"], "which config?"),
        (["explain", "gopher://a.test/", "my.toml"], "'gopher://a.test/'; write the whole URL, like https://"),
        (["replay", "my.toml", "--into", "my.toml"], "my.toml exists already"),
        (["digest", "notes.txt"], "notes.txt is neither a database"),
        (["export", "notes.txt"], "notes.txt is neither a database"),
        (["status", "my.toml", "fetcher"], "omit fetcher"),
        (["pause", "my.toml"], "workspace yet; nothing has been crawled there"),
        (["export", "my.toml", "--domain", "*.*"], "'*.*' is no domain that can be exported"),
        (["export", "my.toml", "--steps", "2"], "give it with --around DOMAIN"),
        (["export", "my.toml", "--around", "*.a.test"], "give one domain, without *."),
        (["export", "my.toml", "--around", "a.test", "--steps", "-1"], "'--steps'"),
        (["export", "my.toml", "--format", "parquet"], "parquet makes two files"),
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
        (["map", "my.toml", "map.html"], "no database"),
        (["replay", "my.toml", "--into", "x.db"], "no result spools"),
        (["audit", "my.toml"], "no result spools"),
    ],
)
def test_a_command_that_needs_an_earlier_crawl_fails_with_one_sentence_and_exit_code_1(
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


def commands_in(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    in_blocks = re.findall(r"^(?:\.venv/bin/)?sumi-ripple ([^#\n]*)", text, re.M)
    return in_blocks + re.findall(r"`sumi-ripple ([^` ]+ [^`]+)`", text)  # a word alone names a command


@pytest.mark.parametrize("page", ["README.md", "docs/outputs.md"])
def test_every_command_on_the_page_can_be_given_as_it_is_there(page: str) -> None:
    group = typer.main.get_command(app)
    given = [with_default(shlex.split(line), dict.fromkeys(COMMANDS)) for line in commands_in(page)]
    assert len(given) > 4
    for name, *arguments in given:
        group.commands[name].make_context(name, arguments)  # type: ignore[attr-defined]
