"""The config is read again while a crawl is under way: replay gives the same map."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.database.digest import digest
from crawler.demo.server import Served, serve_terrain
from crawler.demo.terrain import demo_terrain
from tests.pipeline.crawling import eventually, pages_done, prepared, rows, run, started

pytestmark = pytest.mark.xdist_group("disturbed-crawl")

ADDED = '\n[[blacklist]]\ndomain = "tired-ferry.test"\n'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_terrain(demo_terrain(), tmp_path_factory.mktemp("server"), log=True) as server:
        yield server


def _changed(config: Path) -> None:
    text = config.read_text()
    assert "max-depth = " in text
    start = text.index("max-depth = ")
    end = text.index("\n", start)
    config.write_text(text[:start] + "max-depth = 1" + text[end:] + ADDED)


def test_a_reload_takes_effect_under_way_is_recorded_and_replays_to_the_same_map(
    served: Served, tmp_path: Path
) -> None:
    config = prepared(tmp_path, served, max_domain_requests=2000)
    with started("crawl", config, "--workspace", "workspace", cwd=tmp_path) as crawl:
        eventually(lambda: pages_done(tmp_path) >= 5, "a few pages are crawled")
        pause = tmp_path / "workspace/pause.fetcher"
        pause.touch()  # the crawl waits for the commands, however slow they are
        sound = config.read_text()
        config.write_text(sound.replace("max-depth = ", "max-depht = "))
        assert "max-depht" in run("reload", config, "--workspace", "workspace", cwd=tmp_path, ok=2).stderr
        os.kill(crawl.pid, signal.SIGHUP)  # reads the same bad file: nothing changes
        config.write_text(sound)
        said = run("reload", config, "--workspace", "workspace", cwd=tmp_path).stdout
        assert "nothing in it has changed" in said
        _changed(config)
        said = run("reload", config, "--workspace", "workspace", cwd=tmp_path).stdout
        assert "crawler.max-depth: " in said and "blacklist: + tired-ferry.test" in said
        pause.unlink()
        output, _ = crawl.communicate(timeout=90)
    assert crawl.returncode == 0, output
    assert "crawler.max-depth: " in output and "blacklist: + tired-ferry.test" in output
    assert rows(tmp_path, "SELECT id, status FROM runs") == [(1, "completed")]
    assert "max-depth: " in run("runs", config, cwd=tmp_path).stdout
    run("replay", config, "--workspace", "workspace", "--into", "again.db", cwd=tmp_path)
    assert digest(tmp_path / "again.db") == digest(tmp_path / "sumi-ripple.db")
    assert rows(tmp_path, "SELECT DISTINCT state FROM pages WHERE url LIKE 'https://tired-ferry.test%'") == [
        ("blacklisted",)
    ]
    run("audit", config, "--workspace", "workspace", cwd=tmp_path)
