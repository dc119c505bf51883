"""Figures and search index of a completed run, before somebody asks."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from reporter.web import map_api
from reporter.web.map_choice import chosen
from reporter.web.routing import Role
from reporter.web.warming import Warmer
from tests.reporter.web.serving import CONFIG, make_rich_folder, served


def test_a_completed_run_is_prepared_once_and_again_after_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    surveyed: list[Path] = []
    survey = map_api.survey

    def noted(path: Path, **how: bool) -> object:
        surveyed.append(path)
        return survey(path, **how)

    monkeypatch.setattr(map_api, "survey", noted)
    with served(make_rich_folder(tmp_path)) as face:
        warmer = Warmer(face.face)
        warmer.look()
        face.face.search.wait(60)
        warmer.look()
        warmer.look()
        assert len(surveyed) == 1
        about = chosen(face.face)
        assert face.face.search.prepare(about.path, about.stamp), "the index is there"
        token = face.token(Role.USER)
        assert face.get("/api/stats", token=token).status_code == 200
        assert face.get("/api/domains?sort=errors", token=token).status_code == 200
        assert len(surveyed) == 1
        db = sqlite3.connect(face.face.database, isolation_level=None)
        db.execute("UPDATE runs SET finished_at = '2026-01-01T00:00:00Z' WHERE id = (SELECT max(id) FROM runs)")
        db.close()
        warmer.look()
        assert len(surveyed) == 2


def test_without_a_map_nothing_is_prepared(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(CONFIG)
    with served(tmp_path) as face:
        Warmer(face.face).look()
        assert not face.face.search.path.exists()
