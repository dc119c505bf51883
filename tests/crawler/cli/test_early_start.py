"""A crawl is told from other commands before the command line is loaded."""

from __future__ import annotations

import pytest

from crawler.cli.early_start import looks_like_a_crawl


@pytest.mark.parametrize(
    "arguments", [["crawl", "my.toml"], ["my.toml"], ["demo"], ["my.toml", "-q", "--fresh"], ["crawl", "a", "-v"]]
)
def test_a_crawl_begins_early(arguments: list[str]) -> None:
    assert looks_like_a_crawl(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        *([], ["--help"], ["-V"], ["status"], ["stats", "my.toml"], ["crawl", "--help"], ["demo", "-h"]),
        *(["my.toml", "--dry-run"], ["crawl", "my.toml", "--stats"], ["my.toml", "--export-summary"]),
        *(["my.toml", "--unified"], ["pause", "my.toml"]),
    ],
)
def test_nothing_is_started_for_what_does_not_crawl_in_processes(arguments: list[str]) -> None:
    assert not looks_like_a_crawl(arguments)
