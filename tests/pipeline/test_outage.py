"""A crawl whose network goes away: nothing of that is in the map, and it ends as interrupted, not as complete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.database.digest import digest
from crawler.demo.server import Served, serve_terrain
from crawler.demo.terrain import demo_terrain
from crawler.observe.processes import observe
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.pipeline.crawling import eventually, pages_done, prepared, rows, run, started
from tests.torture.outages import FailingNetwork
from tests.torture.run import behind

pytestmark = pytest.mark.xdist_group("disturbed-crawl")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_terrain(demo_terrain(), tmp_path_factory.mktemp("server"), log=True) as server:
        yield server


def test_a_lost_network_is_waited_for_then_given_up_and_leaves_no_mark_on_the_map(
    served: Served, tmp_path: Path
) -> None:
    calm, hit = tmp_path / "calm", tmp_path / "hit"
    calm.mkdir()
    hit.mkdir()
    run("crawl", prepared(calm, served, max_domain_requests=2000), "--workspace", "workspace", cwd=calm)
    network = FailingNetwork(served.port, tmp_path / "no-names")
    config = prepared(hit, served, max_domain_requests=2000)
    text = behind(config.read_text(), served, network)
    config.write_text(text.replace("[resilience]\n", '[resilience]\ngive-up-after = "3s"\n'))
    with started("crawl", config, "--workspace", "workspace", cwd=hit) as process:
        eventually(lambda: pages_done(hit) > 20, "some pages")
        network.fail("refused")
        workspace = FileWorkspace(hit / "workspace")
        eventually(lambda: observe(workspace, with_locks=False).network.is_waiting, "a diagnosis")
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 1, output
    assert "network: this machine reaches none of " in output
    assert rows(hit, "SELECT status FROM runs") == [("interrupted",)]
    assert "give-up-after" in output
    network.mend()
    run("crawl", config, "--workspace", "workspace", cwd=hit)
    network.close()
    assert digest(hit / "sumi-ripple.db") == digest(calm / "sumi-ripple.db")
    assert "clean" in run("audit", config, "--workspace", "workspace", cwd=hit).stdout
