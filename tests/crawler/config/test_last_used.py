"""The settings that a workspace was last crawled with: kept, compared, and held against another map's spools."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import orjson
import pytest

from crawler.config.last_used import (
    changed_settings,
    describe_settings,
    last_used_database,
    read_last_used,
    require_own_workspace,
    write_last_used,
)
from crawler.model.settings import Config, CrawlerSettings, OutputSettings, QualityEntry
from crawler.workspace.door import WorkspaceError
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Writer, segment_path
from ingest.writing.store import Store


def test_changed_settings_are_named(config: Config) -> None:
    other = Config(
        crawler=CrawlerSettings(max_depth=1, minimum_time_on_page=60_000),
        quality=(*config.quality, QualityEntry("b.test", ("https://b.test/x",))),
        blacklist=("ads.test",),
        output=config.output,
        workspace=config.workspace,
    )
    assert changed_settings(describe_settings(config), describe_settings(config)) == []
    assert changed_settings(describe_settings(config), describe_settings(other)) == [
        "blacklist: + ads.test",
        "crawler.max-depth: 3 → 1",
        "quality: + b.test from https://b.test/x",
    ]


def test_settings_survive_the_round_trip(config: Config, root: Path) -> None:
    assert read_last_used(FileWorkspace(root)) is None
    write_last_used(config)
    assert read_last_used(FileWorkspace(root)) == orjson.loads(orjson.dumps(describe_settings(config)))
    assert last_used_database(FileWorkspace(root)) == config.output.database_path


def test_the_spools_of_one_map_are_not_applied_to_another(config: Config, root: Path, tmp_path: Path) -> None:
    write_last_used(config)
    other = Config(output=OutputSettings(tmp_path / "other.db", tmp_path / "s.md"), workspace=root)
    require_own_workspace(other)  # nothing has been crawled yet
    Writer(FileWorkspace(root).layout.results_of("fetcher-01")).append(b'{"a":1}')
    require_own_workspace(config)
    with pytest.raises(WorkspaceError, match="its own --workspace"):
        require_own_workspace(other)
    other.output.database_path.touch()
    with pytest.raises(WorkspaceError, match="its own --workspace"):
        require_own_workspace(other)


def test_a_map_may_be_moved_but_needs_the_spools_that_it_was_built_from(
    config: Config, root: Path, tmp_path: Path
) -> None:
    write_last_used(config)
    writer = Writer(FileWorkspace(root).layout.results_of("fetcher-01"))
    end = writer.append(b'{"a":1}')
    moved = Config(output=OutputSettings(tmp_path / "moved.db", tmp_path / "s.md"), workspace=root)
    elsewhere = Config(output=moved.output, workspace=tmp_path / "elsewhere")

    def read_up_to(segment: int, offset: int) -> None:
        with closing(Store(moved.output.database_path, moved)) as store:
            store.db.execute("INSERT OR REPLACE INTO spool_positions VALUES ('fetcher-01', ?, ?)", (segment, offset))

    read_up_to(end.segment, end.offset)
    require_own_workspace(moved)
    writer.append(b'{"b":2}')
    require_own_workspace(moved)  # there is more to read: that is how an interrupted crawl looks
    with pytest.raises(WorkspaceError, match=r"not built from the spools in .*elsewhere"):
        require_own_workspace(elsewhere)
    read_up_to(end.segment, end.offset + 3)
    with pytest.raises(WorkspaceError, match="not built from the spools"):
        require_own_workspace(moved)  # as far as a longer spool goes, but no line ends there


def test_a_position_after_a_line_that_a_killed_writer_left_torn_belongs_to_these_spools(
    config: Config, root: Path
) -> None:
    folder = FileWorkspace(root).layout.results_of("fetcher-01")
    with closing(Writer(folder)) as writer:
        first = writer.append(b'{"a":1}')
    with segment_path(folder, first.segment).open("ab") as file:
        file.write(b'{"torn')
    with closing(Writer(folder)) as writer:
        writer.append(b'{"b":2}')
    with closing(Store(config.output.database_path, config)) as store:
        position = (first.segment, first.offset + 6)
        store.db.execute("INSERT INTO spool_positions VALUES ('fetcher-01', ?, ?)", position)
        require_own_workspace(config)
        position = (first.segment, first.offset - 1)  # where reading stops if only the newline is damaged
        store.db.execute("REPLACE INTO spool_positions VALUES ('fetcher-01', ?, ?)", position)
        require_own_workspace(config)
