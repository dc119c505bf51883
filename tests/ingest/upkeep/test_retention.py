"""Old result segments are deleted only where the config says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawler.database.map_errors import StoreError
from crawler.model.records import RunEvent
from crawler.model.settings import Config, CrawlerSettings, SpoolSettings
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import segments
from tests.ingest.terrains import AT
from tests.ingest.test_loop import begun, drain, results, start, write


def test_results_of_old_runs_are_dropped_only_when_the_config_says_so(rules: Config) -> None:
    workspace = FileWorkspace(rules.workspace)
    for run in (1, 2, 3):
        write(rules, "scheduler", [*begun(run), RunEvent(run, AT, "finished")])
        write(rules, "fetcher-01", results(run))
        drain(rules)
    assert len(segments(workspace.layout.results_of("fetcher-01"))) == 3
    keeping = replace(rules, spool=SpoolSettings(results=2))
    write(rules, "scheduler", [*begun(4), RunEvent(4, AT, "finished")])
    write(rules, "fetcher-01", results(4))
    drain(keeping)
    assert segments(workspace.layout.results_of("fetcher-01")) == [3, 4]
    with pytest.raises(StoreError, match="results before run #3 are gone"):
        start(replace(keeping, crawler=CrawlerSettings(max_depth=1)))
