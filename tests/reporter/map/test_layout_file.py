"""Places kept beside the database."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.database.completed_map import copy_path, live_database
from reporter.map.layout_file import face_folder, keep_places, kept_places
from reporter.map.map_data import map_data
from reporter.map.map_page import write_map
from tests.reporter.terrain import MapBuilder


def test_kept_places_are_read_again_and_joined_with_earlier_ones(tmp_path: Path) -> None:
    database = tmp_path / "map.db"
    assert kept_places(database) == {}
    assert keep_places(database, {"a.test": (1.5, 2.0), "b.test": (0.0, 0.0)})
    assert keep_places(database, {"b.test": (7.0, 8.0)})
    assert kept_places(database) == {"b.test": (7.0, 8.0), "a.test": (1.5, 2.0)}


@pytest.mark.parametrize("bad", [b"", b"[]", b'{"v":1}', b'{"v":1,"places":{"a":1}}', b'{"v":9,"places":{}}', b"\xff"])
def test_a_broken_file_counts_as_none(tmp_path: Path, bad: bytes) -> None:
    database = tmp_path / "map.db"
    face_folder(database).mkdir()
    (face_folder(database) / "layout.json").write_bytes(bad)
    assert kept_places(database) == {}
    assert keep_places(database, {"a.test": (1.0, 2.0)}) and kept_places(database) == {"a.test": (1.0, 2.0)}


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "map.db.face").write_text("a file is in the way")
    assert not keep_places(tmp_path / "map.db", {"a.test": (1.0, 2.0)})


def test_two_maps_of_one_database_show_a_domain_in_one_place(tmp_path: Path) -> None:
    def built(path: Path, domains: int) -> Path:
        b = MapBuilder(path)
        b.page("https://q.test/")
        for number in range(domains):
            b.page(f"https://d{number}.test/")
            b.link("https://q.test/", f"https://d{number}.test/")
        return b.save()

    first = built(tmp_path / "map.db", 12)
    before = write_map(first, tmp_path / "one.html").places()
    first.unlink()
    after = write_map(built(first, 15), tmp_path / "two.html").places()
    assert {name: after[name] for name in before} == before and len(after) == 16
    assert map_data(first).places() != after, "without the kept places they move"


def test_the_map_of_an_earlier_run_uses_the_places_of_the_live_one(tmp_path: Path) -> None:
    database = tmp_path / "map.db"
    assert live_database(copy_path(database)) == database
    assert live_database(database) == database
