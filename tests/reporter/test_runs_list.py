"""The list of runs: figures that were kept, figures that are counted now, and changed settings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.database.map_errors import NoSuchRun
from crawler.model import recorded_settings
from crawler.model.settings import Config, CrawlerSettings
from reporter.runs_list import as_json, as_text, list_runs
from tests.older_maps import TO_FORMAT_3
from tests.reporter.terrain import MapBuilder

BASE = Config(crawler=CrawlerSettings(max_depth=2))


def history(path: Path) -> Path:
    b = MapBuilder(path, run=3)
    b.add_run(1)
    b.add_run(2)
    b.add_run(3, "running", None)
    b.db.execute("INSERT INTO run_figures VALUES (2, 10, 20, 30, 4, 5)")
    deeper = replace(BASE, crawler=CrawlerSettings(max_depth=3))
    wary = replace(deeper, blacklist=("ads.test",))
    for run, config in ((1, BASE), (2, BASE), (3, deeper), (3, wary)):
        settings = recorded_settings.dump(config)
        b.db.execute("INSERT INTO run_settings (run, at, settings) VALUES (?, '', ?)", (run, settings))
    b.page("https://q.test/")
    b.page("https://q.test/gone", "dead_link", error_message="http-404")
    b.link("https://q.test/", "https://q.test/gone")
    return b.save()


def test_runs_have_kept_figures_and_the_newest_is_counted_now(tmp_path: Path) -> None:
    first, second, third = list_runs(history(tmp_path / "map.db"))
    assert (first.pages, first.links, first.errors) == (None, None, None)
    assert (second.pages, second.known, second.links, second.errors, second.domains) == (10, 20, 30, 4, 5)
    assert (third.pages, third.known, third.links, third.errors, third.domains) == (1, 2, 1, 1, 1)
    assert (second.seconds, third.seconds, third.status) == (15323, None, "running")


def test_changed_settings_are_named_under_the_run_that_had_them_first(tmp_path: Path) -> None:
    runs = list_runs(history(tmp_path / "map.db"))
    assert [run.changed for run in runs] == [None, (), ("crawler.max-depth: 2 → 3", "blacklist: + ads.test")]
    text = as_text(runs)
    assert text.splitlines()[0].split()[:4] == ["run", "started", "took", "ended"]
    assert text.endswith("     crawler.max-depth: 2 → 3\n     blacklist: + ads.test\n")
    assert json.loads(as_json(runs))["runs"][2]["changed"] == ["crawler.max-depth: 2 → 3", "blacklist: + ads.test"]


def test_a_map_of_an_older_format_has_runs_without_figures(tmp_path: Path) -> None:
    b = MapBuilder(tmp_path / "map.db", run=2)
    b.db.executescript(TO_FORMAT_3)
    b.add_run(1)
    b.add_run(2)
    b.page("https://q.test/")
    first, second = list_runs(b.save())
    assert first.pages is None and first.changed is None
    assert second.pages == 1


def test_a_map_without_a_run_says_so(tmp_path: Path) -> None:
    b = MapBuilder(tmp_path / "empty.db")
    b.db.commit()
    b.db.close()
    with pytest.raises(NoSuchRun, match="no run has been started"):
        list_runs(tmp_path / "empty.db")
