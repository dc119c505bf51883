"""The difference between two maps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from crawler.model.settings import Config
from ingest.writing.engine import Difference
from ingest.writing.store import Store
from tests.ingest.terrains import config, ingest_all, read_plainly, results_of
from tests.ingest.test_loop import web


@pytest.mark.parametrize("name", ["old.db", "a#b.db", "a?b.db", "a%20b.db"])
def test_two_maps_of_one_terrain_differ_in_what_the_rules_changed(tmp_path: Path, name: str) -> None:
    results = results_of(web(), read_plainly(web(), 2))
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    old = ingest_all(config(tmp_path / "old", 2), results).rename(tmp_path / name)
    rules = config(tmp_path / "new", 1)
    ingest_all(rules, results)
    found = compare(rules, old)
    assert found.only_before > 0 == found.only_now
    assert any(now == "depth_exceeded" for _, now, _ in found.states)
    assert not found.classes
    assert any("depth_exceeded" in line for line in found.lines())
    listed = replace(config(tmp_path / "old", 2), blacklist=("two.test",))
    assert ("discovered", "blacklisted", 1) in compare_as(listed, results, old, tmp_path).classes


def test_a_map_does_not_differ_from_itself(rules: Config, tmp_path: Path) -> None:
    path = ingest_all(rules, results_of(web(), read_plainly(web(), 2)))
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    found = compare(rules, copy)
    assert (found.only_before, found.only_now, found.states, found.depths, found.classes) == (0, 0, (), 0, ())


def compare(rules: Config, old: Path) -> Difference:
    store = Store(rules.output.database_path, rules)
    try:
        return store.compare(old)
    finally:
        store.close()


def compare_as(rules: Config, results: list, old: Path, folder: Path) -> Difference:
    fresh = replace(rules, output=replace(rules.output, database_path=folder / "listed.db"))
    ingest_all(fresh, results)
    return compare(fresh, old)
