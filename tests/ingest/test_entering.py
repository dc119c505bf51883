"""What saves work in a later run changes nothing: pages enter it without their rows, links are not resolved again."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.model.records import Result, RunEvent
from ingest.entering import PageEntries
from ingest.links import LinkFinder
from tests.ingest.terrains import (
    AT,
    config,
    ingest_all,
    read_after,
    read_database,
    read_plainly,
    results_of,
    ruled_terrains,
)

_SETTINGS = settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
_NOT_COMPARED = {"meta": None, "pages": "links_print", "frontier": "added_at"}  # a column, or all: clocks, numbers


@contextmanager
def nothing_is_saved() -> Iterator[None]:
    """Every page enters a run by its row, and all links are resolved."""
    prints = count(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PageEntries, "enter", lambda self, numbers: numbers)
        patch.setattr(LinkFinder, "print_of", lambda self, base, hrefs: next(prints))
        yield


def everything(path: Path) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    with sqlite3.connect(path) as db:
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            left_out = _NOT_COMPARED.get(table, "")
            if left_out is not None:
                names = ", ".join(name for name in columns if name != left_out)
                found[table] = sorted(map(repr, db.execute(f"SELECT {names} FROM {table}")))
    db.close()
    return found


def numbers_of_pages(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT id, url FROM pages ORDER BY id").fetchall()


@_SETTINGS
@given(st.data())
def test_a_second_run_over_a_partly_changed_terrain_gives_the_plain_reading_and_the_same_rows(
    data: st.DataObject,
) -> None:
    first, other = data.draw(ruled_terrains()), data.draw(ruled_terrains())
    unchanged = data.draw(st.sets(st.sampled_from(sorted(first.pages))))
    other.pages |= {key: first.pages[key] for key in unchanged}
    second = replace(other, denied=first.denied, part=first.part, caps=other.caps if first.caps else {})  # one config
    max_depth = data.draw(st.integers(0, 2))
    one, two = read_plainly(first, max_depth), read_plainly(second, max_depth)
    results: list[Result] = [
        *data.draw(st.permutations(results_of(first, one))),
        RunEvent(1, AT, "finished"),
        RunEvent(2, AT, "started"),
        *data.draw(st.permutations(results_of(second, two, 2))),
    ]
    batch = data.draw(st.sampled_from([1, 2, 5, 100]))
    forgetful = data.draw(st.booleans())
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        path = ingest_all(config(Path(folder), max_depth, first), results, batch, forgetful=forgetful)
        assert read_database(path) == read_after(one, two)
        with nothing_is_saved():
            plainly = ingest_all(config(Path(elsewhere), max_depth, first), results, batch, forgetful=forgetful)
        assert read_database(plainly) == read_after(one, two)
        # Pages found in one moment may be numbered in any order: rows can be compared where the numbers are the same.
        saved, all_done = everything(path), everything(plainly)
        if numbers_of_pages(path) == numbers_of_pages(plainly):
            assert saved == all_done
        else:
            assert {table: len(rows) for table, rows in saved.items()} == {t: len(rows) for t, rows in all_done.items()}
