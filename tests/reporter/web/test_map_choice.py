"""The map that a call is about, and the stamp that answers about it are kept under."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from crawler.database.completed_map import copy_path
from ingest.sqlite.completed_copy import keep_copy
from reporter.web.map_choice import chosen
from reporter.web.routing import Role
from tests.reporter.web.serving import make_rich_folder, served


def test_answers_about_a_completed_run_stay_when_the_next_one_begins(tmp_path: Path) -> None:
    with served(make_rich_folder(tmp_path)) as face:
        database = face.face.database
        before = chosen(face.face)
        db = sqlite3.connect(database, isolation_level=None)
        keep_copy(db, database, lambda: None)
        db.execute("INSERT INTO runs VALUES (2, '2025-01-16T10:30:00Z', NULL, 'hash', 'running')")
        after, live = chosen(face.face), chosen(face.face, 2)
        assert (before.path, after.path, live.path) == (database, copy_path(database), database)
        assert (after.key, after.stamp, after.run) == (before.key, before.stamp, 1)
        assert live.key != after.key and live.run == 2 and not live.is_completed
        shown = face.get("/api/runs", token=face.token(Role.USER)).json()["runs"]
        assert [run["status"] for run in shown] == ["completed", "running"]
        assert shown[1]["pages"] == 0 and shown[1]["domains"] is None, "the live figures, and no scan of the live map"
        db.execute("UPDATE runs SET status = 'completed', finished_at = '2025-01-16T11:00:00Z' WHERE id = 2")
        assert chosen(face.face).stamp != before.stamp
        changed = chosen(face.face).stamp
        db.execute("INSERT OR REPLACE INTO meta VALUES ('map_hash', 'of other rules')")
        assert chosen(face.face).stamp != changed
        db.close()
