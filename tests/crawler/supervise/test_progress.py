"""A stage's progress, over real spools and a real map."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from crawler.model.settings import Config
from crawler.supervise.progress import has_unapplied_results, stage_progress
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Writer
from crawler.workspace.log import Cursor
from ingest.writing.store import Store


def set_position(config: Config, cursor: Cursor) -> None:
    with closing(Store(config.output.database_path, config)) as store:
        row = ("fetcher-01", cursor.segment, cursor.offset)
        store.db.execute("INSERT OR REPLACE INTO spool_positions VALUES (?, ?, ?)", row)


def test_a_fetcher_makes_progress_with_every_result_and_the_ingest_with_every_position(
    root: Path, config: Config
) -> None:
    workspace, database = FileWorkspace(root), config.output.database_path
    writer = Writer(workspace.layout.results_of("fetcher-01"))
    before = [stage_progress(stage, workspace, database) for stage in ("fetcher", "ingest")]
    assert before == [stage_progress(stage, workspace, database) for stage in ("fetcher", "ingest")]
    end = writer.append(b'{"a":1}')
    written = [stage_progress(stage, workspace, database) for stage in ("fetcher", "ingest")]
    assert written[0] != before[0] and written[1] == before[1]
    set_position(config, end)
    assert stage_progress("fetcher", workspace, database) == written[0]
    assert stage_progress("ingest", workspace, database) != written[1]


def test_results_are_unapplied_until_the_map_is_at_their_end(root: Path, config: Config) -> None:
    workspace, database = FileWorkspace(root), config.output.database_path
    assert not has_unapplied_results(workspace, database)
    writer = Writer(workspace.layout.results_of("fetcher-01"))
    first, last = writer.append(b'{"a":1}'), writer.append(b'{"b":2}')
    assert has_unapplied_results(workspace, database), "there is no map yet"
    set_position(config, first)
    assert has_unapplied_results(workspace, database)
    set_position(config, last)
    assert not has_unapplied_results(workspace, database)
