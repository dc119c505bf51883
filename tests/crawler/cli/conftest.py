"""A config, a workspace, and a whole crawl of the demo for the commands to read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from crawler.workspace.files.file_workspace import FileWorkspace
from tests.crawler.cli.calling import sumi


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests that read the crawl of the demo run in one process: else each process makes a crawl of its own."""
    for item in items:
        if item.nodeid.startswith("tests/crawler/cli/") and "crawled" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("demo"))


@pytest.fixture
def config_path(tmp_path: Path) -> Path:
    path = tmp_path / "my.toml"
    path.write_text(
        """
[user-agent]
contact-url = "https://a.test/about"
contact-email = "me@a.test"
[[quality]]
domain = "a.test"
seeds = ["https://www.a.test/start/?utm_source=x"]
[[blacklist]]
domain = "ads.test"
"""
    )
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def workspace(here: Path) -> FileWorkspace:
    made = FileWorkspace(here / "workspace")
    made.prepare()
    return made


@pytest.fixture(scope="session")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The demo, crawled with the real command."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, sumi("demo", "--workers", "2", "-v", cwd=folder)


@pytest.fixture
def demo_folder(crawled: tuple[Path, subprocess.CompletedProcess[str]], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace of the crawled demo, as the current folder."""
    folder = crawled[0] / "workspace" / "demo"
    monkeypatch.chdir(folder)
    return folder
