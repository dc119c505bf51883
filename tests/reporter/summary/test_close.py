"""The end of a run: figures of one moment, whatever the ingest does to the map meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.model.settings import Config, OutputSettings
from reporter.queries import broken_links
from reporter.summary.close import close_run
from tests.reporter.terrain import config_for, rich_map

_INDEX = "CREATE INDEX more ON pages(discovered_at)"
_RESULT = "UPDATE pages SET state = 'failed' WHERE url LIKE '%/about'; UPDATE spool_positions SET offset = offset + 9"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    path = rich_map(tmp_path / "map.db")
    with closing(sqlite3.connect(path)) as db:
        db.executescript("PRAGMA journal_mode = WAL; INSERT INTO spool_positions VALUES ('fetcher-01', 1, 0)")
        db.commit()
    output = OutputSettings(database_path=path, summary_path=tmp_path / "summary.md")
    return replace(config_for(("q.test", "*.wild.test")), workspace=tmp_path / "workspace", output=output)


def interrupted_by(change: str, config: Config, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ingest commits this change once, in the middle of the summary's questions. Returns the calls."""
    ask: Callable = broken_links.broken_links
    calls: list[int] = []

    def asked(*arguments: object) -> object:
        calls.append(1)
        if len(calls) == 1:
            with closing(sqlite3.connect(config.output.database_path)) as db:
                db.executescript(change)
                db.commit()
        return ask(*arguments)

    monkeypatch.setattr(broken_links, "broken_links", asked)
    return calls


def summary_of(config: Config) -> str:
    ending = close_run(config)
    assert ending.summary is not None
    return ending.summary.read_text()


def test_an_index_that_is_added_changes_no_figure(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    before = summary_of(config)
    calls = interrupted_by(_INDEX, config, monkeypatch)
    assert summary_of(config) == before
    assert len(calls) == 1


def test_results_that_are_applied_meanwhile_are_in_all_figures_or_in_none(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = summary_of(config)
    calls = interrupted_by(_RESULT, config, monkeypatch)
    found = summary_of(config)
    assert len(calls) == 2, "everything is asked again"
    assert found == summary_of(config) != before
