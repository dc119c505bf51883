"""Two completed runs of a small web, in between which pages died, moved and came."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.model.records import RunEvent, changed
from crawler.model.settings import Config
from tests.ingest.terrains import AT, Terrain, config, read_plainly, results_of
from tests.ingest.test_loop import begun, drain, write

QA, QB = "https://qa.test/0", "https://qb.test/0"


@pytest.fixture
def rules_with_two_runs(tmp_path: Path) -> Config:
    rules = config(tmp_path)
    first = Terrain(
        {
            QA: ("links", [QB, "https://one.test/0", "https://two.test/0", "https://qa.test/1"], False),
            QB: ("links", [QA], False),
            "https://one.test/0": ("links", [], False),
            "https://two.test/0": ("error", "failed"),
            "https://qa.test/1": ("links", [], False),
        }
    )
    second = Terrain(
        {
            **first.pages,
            QA: ("links", ["https://one.test/0", "https://two.test/0", "https://qa.test/1"], False),
            QB: ("links", [QA, "https://xn--bltterwald-r5a.test/"], False),
            "https://one.test/0": ("error", "dead_link"),
            "https://two.test/0": ("links", [], False),
            "https://qa.test/1": ("redirect", "https://qa.test/2"),
            "https://qa.test/2": ("links", [], False),
        }
    )
    for run, terrain in ((1, first), (2, second)):
        write(rules, "scheduler", begun(run))
        results = results_of(terrain, read_plainly(terrain, 2), run)
        write(rules, "fetcher-01", [changed(r, title=f"Title {run}") if r.key == QB else r for r in results])
        write(rules, "scheduler", [RunEvent(run, AT, "finished")])
    drain(rules)
    return rules
