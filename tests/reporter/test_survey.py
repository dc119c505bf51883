"""The figures of one run are those that plain SQL counts."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from crawler.database.map_errors import NoSuchRun
from reporter.survey import survey
from tests.reporter.terrain import MapBuilder


def test_states_and_links_are_what_plain_sql_counts(database: Path) -> None:
    figures = survey(database)
    with closing(sqlite3.connect(database)) as db:
        states = dict(db.execute("SELECT state, count(*) FROM pages WHERE seen_run = 1 GROUP BY state").fetchall())
        links = db.execute("SELECT count(*) FROM links WHERE last_run = 1").fetchone()[0]
    assert figures.states == states
    assert figures.overall.links == links


def test_without_the_lists_the_counts_are_the_same(database: Path) -> None:
    whole, plain = survey(database), survey(database, in_full=False)
    assert (plain.overall, plain.states, plain.depths, plain.domains, plain.errors) == (
        whole.overall,
        whole.states,
        whole.depths,
        whole.domains,
        whole.errors,
    )
    assert whole.top_linked and whole.dead_links and not plain.top_linked and not plain.dead_links


def test_only_the_newest_run_can_be_shown(tmp_path: Path) -> None:
    builder = MapBuilder(tmp_path / "map.db", run=2)
    builder.add_run(1)
    builder.add_run(2)
    builder.page("https://q.test/")
    path = builder.save()
    assert survey(path).run.id == survey(path, 2).run.id == 2
    with pytest.raises(NoSuchRun, match="`sumi-ripple replay --run 1` rebuilds run 1"):
        survey(path, 1)
    with pytest.raises(NoSuchRun, match="there is no run 3; the newest is run 2"):
        survey(path, 3)
