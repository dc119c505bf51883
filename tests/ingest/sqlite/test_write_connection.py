"""The writable connection: errors of the engine are sentences that say what to do."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from crawler.database.map_errors import MapError, StoreError
from ingest.sqlite.write_connection import describe, open_for_writing, store_errors


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("database disk image is malformed", "rebuild it from the spools with: sumi-ripple replay"),
        ("file is not a database", "rebuild it from the spools with: sumi-ripple replay"),
        ("disk I/O error", "start again, nothing is lost"),
        ("database or disk is full", "make room and start again"),
        ("attempt to write a readonly database", "correct its permissions"),
        ("something else", "failed: something else"),
    ],
)
def test_an_error_names_the_file_and_the_way_out(text: str, advice: str) -> None:
    words = describe(sqlite3.OperationalError(text), Path("my.db"))
    assert "my.db" in words and advice in words and "\n" not in words


def test_engine_errors_in_a_block_become_store_errors_and_others_pass(tmp_path: Path) -> None:
    db = open_for_writing(tmp_path / "map.db")
    with pytest.raises(StoreError, match=r"map\.db failed: no such table"), store_errors(tmp_path / "map.db"):
        db.execute("SELECT * FROM no_such_table")
    with pytest.raises(KeyError), store_errors(tmp_path / "map.db"):
        raise KeyError
    db.close()
    assert issubclass(StoreError, MapError)


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        open_for_writing(tmp_path)


@pytest.mark.parametrize("name", ["a#b.db", "a?b.db", "a%20b.db"])
def test_the_writer_uses_the_very_name_that_it_is_given(tmp_path: Path, name: str) -> None:
    db = open_for_writing(tmp_path / name)
    db.execute("CREATE TABLE t (x)")
    db.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]
