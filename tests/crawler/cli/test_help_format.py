"""The default command."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.cli.help_format import with_default
from tests.crawler.cli.calling import COMMANDS


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


def test_a_config_whose_name_is_no_command_may_lack_an_ending(here: Path) -> None:
    (here / "terrain").write_text("")
    assert with_default(["terrain"], dict.fromkeys(COMMANDS)) == ["crawl", "terrain"]
