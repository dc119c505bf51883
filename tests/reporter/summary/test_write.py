"""The summary as a file: replaced whole, and refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.database.map_errors import NoDatabase, NoSuchRun, NotAMap
from reporter.summary.write import NotWritten, render, write_summary
from tests.reporter.terrain import MapBuilder, rich_map


def test_writing_makes_the_folder_and_leaves_nothing_else_behind(database: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "crawl-summary.md"
    write_summary(database, target)
    assert target.read_text() == render(database)
    assert [path.name for path in target.parent.iterdir()] == ["crawl-summary.md"]


def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path: Path, database: Path) -> None:
    with pytest.raises(NoDatabase, match="there is no database at"):
        render(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("hello " * 1000)
    with pytest.raises(NotAMap, match="not a Sumi-Ripple database"):
        render(tmp_path / "text.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(NotAMap, match="none of the tables"):
        render(tmp_path / "empty.db")
    with pytest.raises(NotAMap, match="not a file"):
        render(tmp_path)
    b = MapBuilder(tmp_path / "newer.db")
    b.db.execute("UPDATE meta SET value = '99'")
    with pytest.raises(NotAMap, match="schema version is 99"):
        render(b.save())
    b = MapBuilder(tmp_path / "older.db")
    b.db.execute("UPDATE meta SET value = '1'")
    with pytest.raises(NotAMap, match=r"schema version is 1, .* replay CONFIG"):
        render(b.save())
    b = MapBuilder(tmp_path / "norun.db")
    b.db.commit()
    with pytest.raises(NoSuchRun, match="no run has been started"):
        render(tmp_path / "norun.db")
    with pytest.raises(NoSuchRun, match="there is no run 7"):
        render(database, run=7)


def test_reading_changes_nothing_in_the_file(database: Path) -> None:
    before = database.read_bytes()
    render(database)
    assert database.read_bytes() == before


def test_a_summary_that_cannot_be_written_is_named_as_the_config_names_it(tmp_path: Path) -> None:
    database = rich_map(tmp_path / "map.db")
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "summary.md", Path("/proc/summary.md")):
        with pytest.raises(NotWritten, match=f"^cannot write the summary {path}: "):
            write_summary(database, path)
