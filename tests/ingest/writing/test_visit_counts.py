"""Visits counted as they are applied."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.writing.store import Store
from tests.ingest.terrains import config, ingest_all, read_plainly, results_of, terrains

_COUNTED = "SELECT kind, name, count FROM visit_counts ORDER BY kind, name"


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_counts_are_those_of_the_visited_pages_whatever_the_order_and_however_often(data: st.DataObject) -> None:
    terrain = data.draw(terrains())
    results = data.draw(st.permutations(results_of(terrain, read_plainly(terrain, 2))))
    again = data.draw(st.lists(st.sampled_from(results), max_size=3)) if results else []
    with tempfile.TemporaryDirectory() as folder:
        settings_ = config(Path(folder), 2)
        path = ingest_all(settings_, [*results, *again], data.draw(st.sampled_from([1, 3, 100])))
        with sqlite3.connect(path) as db:
            counted = db.execute(_COUNTED).fetchall()
            db.execute("DROP TABLE visit_counts")
        visited = sum(count for kind, _, count in counted if kind == "status")
        with sqlite3.connect(path) as db:
            sql = "SELECT count(*) FROM pages WHERE visited_run = 1 AND status_code IS NOT NULL"
            assert visited == db.execute(sql).fetchone()[0]
        Store(path, settings_).close()  # a map of an older program is counted when it is opened
        with sqlite3.connect(path) as db:
            statuses = [row for row in db.execute(_COUNTED) if row[0] == "status"]
            assert statuses == [row for row in counted if row[0] == "status"]
