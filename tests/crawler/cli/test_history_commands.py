"""runs: the commands that look back, on a crawl of the demo and on wrong input."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from crawler.cli.history_commands import changes_between
from crawler.database.completed_map import runs_folder
from crawler.model.settings import Config
from tests.crawler.cli.calling import called
from tests.ingest.terrains import AT, config
from tests.ingest.test_loop import begun, drain, write
from tests.ingest.test_run_maps import crawl
from tests.reporter.diff.conftest import rules_with_two_runs  # noqa: F401

CONFIG = """
[crawler]
max-depth = 2
[output]
database-path = "map.db"
summary-path = "summary.md"
[[quality]]
domain = "qa.test"
seeds = ["https://qa.test/0"]
[[quality]]
domain = "*.qb.test"
seeds = ["https://qb.test/0"]
[[blacklist]]
domain = "bad.test"
[[stub]]
domain = "*.stub.test"
"""
Crawled = tuple[Path, subprocess.CompletedProcess[str]]


def test_runs_lists_the_demo_with_the_figures_of_its_summary(
    crawled: Crawled, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(crawled[0] / "workspace" / "demo")
    assert called("runs", "demo.toml", "--json") == 0
    (run,) = orjson.loads(capsys.readouterr().out)["runs"]
    assert called("stats", "demo.toml", "--json") == 0
    figures = orjson.loads(capsys.readouterr().out)
    overall = figures["overall"]
    kept = {name: run[name] for name in ("pages", "known", "links", "errors")}
    assert list(kept.values()) == [overall[name] for name in ("pages_crawled", "urls_known", "links", "errors")]
    assert run["seconds"] == figures["run"]["seconds"] and run["status"] == "completed"
    assert called("runs", "demo.toml") == 0
    assert capsys.readouterr().out.count("\n") == 2


@pytest.mark.parametrize(("argument", "code"), [("nosuch.db", 2), ("my.toml", 1), ("nosuch.toml", 2)])
def test_runs_of_nothing_is_one_sentence(
    here: Path, config_path: Path, capsys: pytest.CaptureFixture[str], argument: str, code: int
) -> None:
    assert called("runs", argument) == code
    assert capsys.readouterr().err.count("\n") == 1


def test_diff_shows_what_changed_between_two_runs(
    rules_with_two_runs: Config,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = rules_with_two_runs.workspace.parent
    monkeypatch.chdir(folder)
    config = folder / "my.toml"
    config.write_text(CONFIG)
    assert called("diff", "my.toml") == 0
    text = capsys.readouterr().out
    assert "Pages that died (1)\n  https://one.test/0: test\n" in text
    assert called("diff", "my.toml", "1", "2", "--json") == 0
    assert orjson.loads(capsys.readouterr().out)["counts"]["page-moved"] == 1
    assert called("diff", "my.toml", "--csv") == 0
    assert capsys.readouterr().out.startswith("change,name,target,was,is\n")
    assert called("report", "my.toml") == 0
    summary = (folder / "summary.md").read_text()
    assert "## Changes Since Run 1\n" in summary and "### Pages that died (1)" in summary
    capsys.readouterr()
    for run, crawled, state in ((1, 4, "processed"), (2, 5, "dead_link")):
        assert called("stats", "my.toml", "--run", str(run), "--json") == 0
        figures = orjson.loads(capsys.readouterr().out)
        assert (figures["run"]["id"], figures["overall"]["pages_crawled"]) == (run, crawled)
        assert called("explain", "https://one.test/0", "my.toml", "--run", str(run), "--json") == 0
        assert orjson.loads(capsys.readouterr().out)["state"] == state
        assert called("export", "my.toml", f"run{run}.jsonl", "--run", str(run)) == 0
        assert capsys.readouterr().out.startswith("Wrote ")
        assert f'"state":"{state}"' in (folder / f"run{run}.jsonl").read_text().split("one.test/0", 1)[1]
    assert called("report", "my.toml", "--run", "1") == 0
    assert "**Run ID:** 1" in (folder / "summary.run-1.md").read_text()
    assert (folder / "summary.md").read_text() == summary
    for command in ("stats", "report", "export"):
        capsys.readouterr()
        assert called(command, "my.toml", "--run", "9") == 1
        assert "there is no run 9; the runs there are: 1, 2" in capsys.readouterr().err
    assert called("stats", "map.db", "--run", "1") == 2
    assert "--run needs the config file" in capsys.readouterr().err
    for arguments, code, words in (
        (("my.toml", "2", "1"), 2, "earlier run first"),
        (("my.toml", "1"), 2, "two runs"),
        (("my.toml", "1", "2", "--json", "--csv"), 2, "only one of"),
        (("my.toml", "1", "9"), 1, "there is no run 9; the runs there are: 1, 2"),
        (("nosuch.toml",), 2, "no config file"),
    ):
        assert called("diff", *arguments) == code
        error = capsys.readouterr().err
        assert words in error and error.count("\n") == 1


def test_the_last_two_runs_are_compared_without_building_their_maps_and_say_the_same(
    tmp_path: Path,
) -> None:
    rules = config(tmp_path)
    crawl(rules, 1)
    crawl(rules, 2, depth=1)
    database = rules.output.database_path
    found = changes_between(rules, None, None)
    assert found.counts and not list(runs_folder(database).glob("run-*.db"))
    other_rules = replace(rules, blacklist=(*rules.blacklist, "two.test"))
    crawl(other_rules, 3)  # the maps of runs 2 and 3 were made under different rules
    assert changes_between(other_rules, None, None).rules
    assert len(list(runs_folder(database).glob("run-*.db"))) == 2
    assert changes_between(rules, (1, 2), None) == found


def test_a_diff_of_one_run_says_that_it_needs_two(
    crawled: Crawled, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = crawled[0] / "workspace" / "demo"
    monkeypatch.chdir(folder)
    assert called("diff", "demo.toml", "--workspace", folder) == 1
    assert "needs two completed runs" in capsys.readouterr().err


def test_while_a_run_is_under_way_readers_are_shown_the_last_completed_one(
    rules_with_two_runs: Config,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rules = rules_with_two_runs
    folder = rules.workspace.parent
    monkeypatch.chdir(folder)
    (folder / "my.toml").write_text(CONFIG)
    readers = (
        ("stats", "my.toml", "--json"),
        ("stats", "my.toml", "--by", "domain", "--json"),
        ("explain", "https://one.test/0", "my.toml", "--json"),
        ("explain", "one.test", "my.toml", "--json"),
        ("export", "my.toml"),
        ("candidates", "my.toml", "--json"),
        ("crawl", "my.toml", "--stats"),
    )
    before = {}
    for words in readers:
        assert called(*words) == 0
        before[words] = capsys.readouterr().out
    assert called("report", "my.toml") == 0
    summary = (folder / "summary.md").read_text().split("**Generated", 1)[0]
    write(rules, "scheduler", begun(3))
    drain(rules)
    capsys.readouterr()
    note = f"This is the map of run 2, completed {AT}. Run 3 is under way; --run 3 shows it.\n"
    for words in readers:
        assert called(*words) == 0
        assert capsys.readouterr() == (before[words], note)
    assert called("map", "my.toml", "map.html") == 0
    assert capsys.readouterr().err == note
    assert called("report", "my.toml") == 0
    assert (folder / "summary.md").read_text().split("**Generated", 1)[0] == summary
    capsys.readouterr()
    for path in (folder / "map.db.runs").glob("run-*.db"):  # the summary's changes were worked out from them
        path.unlink()
    for run, state in ((2, "dead_link"), (3, "dead_link")):
        assert called("explain", "https://one.test/0", "my.toml", "--run", str(run), "--json") == 0
        assert orjson.loads(capsys.readouterr().out)["state"] == state
    for run, crawled in ((2, 5), (3, 0)):
        assert called("stats", "my.toml", "--run", str(run), "--json") == 0
        figures = orjson.loads(capsys.readouterr().out)
        assert (figures["run"]["id"], figures["overall"]["pages_crawled"]) == (run, crawled)
    assert not list((folder / "map.db.runs").glob("run-*.db")), "the copy answers; nothing is replayed"
    assert called("stats", "map.db", "--json") == 0
    assert orjson.loads(capsys.readouterr().out)["run"]["id"] == 3, "a database that is named is read as it is"
