"""Lines of the records over all runs go by `[retention] metadata`: exact, whatever cuts a prune off."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial

import pytest

from crawler.keep.prune import roll_up
from crawler.model.removal import Removal
from crawler.model.settings import Config, RetentionSettings
from crawler.workspace.door import RoleTaken
from crawler.workspace.files.appended_file import LogFolder
from crawler.workspace.opening import open_keeping, open_workspace
from ingest import old_records
from ingest.old_records import prune_records
from tests.ingest.terrains import AT
from tests.ingest.test_loop import drain
from tests.ingest.test_page_log import records, table
from tests.ingest.test_replay import LATER, two_runs

HOUR = 3600
NOW = datetime.fromisoformat(LATER).timestamp() + 12 * HOUR


@pytest.fixture
def crawled(rules: Config) -> Config:
    """Two runs, a day apart; the records of the first are too old, as seen from the noon after the second."""
    two_runs(rules)
    drain(rules)
    return replace(rules, retention=RetentionSettings(metadata=6 * HOUR))


def removal_of(config: Config) -> Removal:
    (removal,) = pruned(config)
    return removal


def pruned(config: Config) -> tuple[Removal, ...]:
    return prune_records(config, partial(roll_up, open_keeping(config.workspace)), NOW).removals


def is_as_pruned(config: Config) -> bool:
    """The records of the second run are left, and one row for the day of the first."""
    (row,) = (config.workspace / "rolled-up" / "records.csv").read_text().splitlines()[1:]
    left = sorted(str(record["url"]) for record in records(config.workspace))
    return left == sorted(each["url"] for each in table(config.workspace, 2)) and row.startswith(
        f"{AT[:10]},{len(table(config.workspace, 1))},"
    )


def test_old_lines_go_their_figures_stay_and_the_ingest_goes_on(crawled: Config) -> None:
    before = records(crawled.workspace)
    removal = removal_of(crawled)
    assert (
        removal.name.startswith(f"{len(table(crawled.workspace, 1))} lines of metadata/") and "6 hours" in removal.why
    )
    role = open_workspace(crawled.workspace).take_role("ingest")
    with pytest.raises(RoleTaken):
        removal.remove()
    role.release()
    assert records(crawled.workspace) == before
    removal.remove()
    assert is_as_pruned(crawled)
    drain(crawled)
    assert is_as_pruned(crawled), "the map knows how long the file is now"
    assert not pruned(crawled)


@pytest.mark.parametrize("moment", ["note", "finish", "take_from"])
@pytest.mark.parametrize("next_one", ["the ingest", "a prune"])
def test_a_prune_that_is_cut_off_is_completed_by_whoever_comes_next(
    crawled: Config, moment: str, next_one: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        if moment == "take_from":
            patched.setattr(LogFolder, "take_from", dies)
        else:
            patched.setattr(old_records.ReplacedLog, moment, dies)
        with pytest.raises(KeyboardInterrupt):
            removal_of(crawled).remove()
    if next_one == "the ingest":
        drain(crawled)
    if moment != "take_from" or next_one == "a prune":
        removal_of(crawled).remove()
    assert is_as_pruned(crawled)
    drain(crawled)
    assert is_as_pruned(crawled)
