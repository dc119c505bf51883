"""Completion in the shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crawler.cli.calling import sumi


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown_for_every_shell(shell: str, tmp_path: Path) -> None:
    result = sumi("--show-completion", shell, cwd=tmp_path, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert result.returncode == 0
    assert "sumi-ripple" in result.stdout or "SUMI_RIPPLE" in result.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("sumi-ripple stat", {"status", "stats"}),
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
