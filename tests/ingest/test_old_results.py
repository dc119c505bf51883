"""Results go by `[retention]` only if they are named, and their daily figures stay."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from crawler.database.digest import digest
from crawler.database.ingest_progress import results_kept_from
from crawler.keep.prune import roll_up
from crawler.model.records import RunEvent
from crawler.model.settings import Config, RetentionSettings
from crawler.workspace.door import RoleTaken
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import segments
from crawler.workspace.opening import open_keeping
from ingest.old_results import prune_results
from ingest.replay import ReplayError
from ingest.run_maps import map_of_run
from tests.ingest.terrains import AT
from tests.ingest.test_loop import begun, drain, results, write


def test_results_of_old_runs_go_only_by_name_and_leave_their_daily_figures(rules: Config) -> None:
    workspace = FileWorkspace(rules.workspace)
    for run in (1, 2, 3):
        write(rules, "scheduler", [*begun(run), RunEvent(run, AT, "finished")])
        write(rules, "fetcher-01", results(run))
        drain(rules)
    keeping = replace(rules, retention=RetentionSettings(results=2))
    rolling = partial(roll_up, open_keeping(rules.workspace))
    assert not prune_results(rules, rolling, is_named=True).removals, "no limit is set"
    unnamed = prune_results(keeping, rolling, is_named=False)
    assert not unnamed.removals and "replay needs them" in unnamed.stays[0]
    (removal,) = prune_results(keeping, rolling, is_named=True).removals
    assert removal.name == "2 segments with results of runs before 2"
    assert removal.loses.startswith("of runs before 2 there will be no map")
    before = digest(rules.output.database_path)
    role = workspace.take_role("ingest")
    with pytest.raises(RoleTaken):
        removal.remove()
    role.release()
    assert segments(workspace.layout.results_of("fetcher-01")) == [1, 2, 3]
    removal.remove()
    assert segments(workspace.layout.results_of("fetcher-01")) == [2, 3]
    assert results_kept_from(rules.output.database_path) == 2 and digest(rules.output.database_path) == before
    visits = (rules.workspace / "rolled-up" / "results.csv").read_text().splitlines()
    assert visits[1].startswith(f"{AT[:10]},{len(results(1))},") and visits[1].endswith(",results/fetcher-01/1")
    with pytest.raises(ReplayError, match="are gone"):
        map_of_run(rules, 1)
