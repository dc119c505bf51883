"""The page logs: a row for each visit that counts, none lost and none twice, whatever happens at a commit."""

from __future__ import annotations

import csv
import sqlite3
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from crawler.database.map_errors import StoreError
from crawler.model.page_row import COLUMNS
from crawler.model.records import PageResult, changed
from crawler.model.settings import Config, LogSettings
from crawler.workspace.opening import open_log_folder
from ingest.replay import replay
from tests.ingest.test_loop import ONE, QA, QB, TWO, begun, drain, results, start, write
from tests.ingest.test_replay import two_runs

SPECIFIED = (
    "timestamp,url,page_type,depth,referrer,http_status,content_type,encoding,content_sha256,content_bytes,"
    "stored_path,etag,last_modified,fetch_latency_ms,retries,proxy_id,metadata"
)


def table(folder: Path, run: int = 1) -> list[dict[str, str]]:
    with (folder / "logs" / f"pages-{run}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def records(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "metadata" / "crawl_metadata.jsonl").read_bytes().splitlines()
    return [orjson.loads(line) for line in lines]


def visited(config: Config, run: int = 1) -> list[str]:
    with sqlite3.connect(config.output.database_path) as db:
        return sorted(row[0] for row in db.execute("SELECT url FROM pages WHERE visited_run = ?", (run,)))


def test_every_visit_has_one_row_with_the_columns_of_the_specification(rules: Config) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results())
    drain(rules)
    rows = table(rules.workspace)
    assert ",".join(COLUMNS) == SPECIFIED and tuple(rows[0]) == COLUMNS
    assert sorted(row["url"] for row in rows) == visited(rules) and len(rows) == 6
    by_url = {row["url"]: row for row in rows}
    assert (by_url[QA]["depth"], by_url[QA]["referrer"]) == ("0", "")
    assert (by_url[ONE]["depth"], by_url[ONE]["referrer"]) == ("1", QA)
    assert by_url["https://two.test/2"]["referrer"] == TWO
    assert orjson.loads(by_url[ONE]["metadata"])["redirect_to"] == TWO
    assert orjson.loads(by_url["https://two.test/1"]["metadata"])["state"] == "dead_link"
    found = {str(record["url"]): record for record in records(rules.workspace)}
    assert found.keys() == by_url.keys()
    assert found[QB]["links"] == 2 and found[QB]["run"] == 1 and "proxy_id" in found[QB]


def test_text_that_a_csv_could_trip_over_comes_back_as_it_was(rules: Config) -> None:
    title = 'a "title", with\na line break; =1+1 \ud800'
    odd = [changed(each, title=title) if isinstance(each, PageResult) else each for each in results()]
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", odd)
    drain(rules)
    assert {orjson.loads(row["metadata"])["title"] for row in table(rules.workspace)} == {
        title.replace("\ud800", "\ufffd")
    }


@pytest.mark.parametrize("moment", ["before the commit", "in the middle of a row", "after the commit"])
def test_a_death_around_a_commit_loses_no_row_and_writes_none_twice(rules: Config, moment: str) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results()[:3])
    drain(rules)
    write(rules, "fetcher-01", results()[3:])
    ingest = start(rules)
    if moment == "after the commit":
        ingest.step()
    else:
        ingest.store.db.execute("CREATE TRIGGER dead BEFORE INSERT ON links BEGIN SELECT RAISE(ABORT, 'dead'); END")
        with pytest.raises(StoreError):
            ingest.step()
        ingest.store.db.execute("DROP TRIGGER dead")
        assert len(table(rules.workspace)) > 3, "the rows are there, and their commit is not"
    ingest.shutdown()
    if moment == "in the middle of a row":
        for name in ("logs/pages-1.csv", "metadata/crawl_metadata.jsonl"):
            content = (rules.workspace / name).read_bytes()
            (rules.workspace / name).write_bytes(content[:-7])
    drain(rules)
    assert sorted(row["url"] for row in table(rules.workspace)) == visited(rules)
    assert sorted(str(record["url"]) for record in records(rules.workspace)) == visited(rules)


def test_replay_makes_the_same_rows_for_every_run(rules: Config, tmp_path: Path) -> None:
    two_runs(rules)
    drain(rules)
    replay(rules, tmp_path / "again.db", logs=open_log_folder(tmp_path / "again"))
    for run in (1, 2):
        assert sorted(map(str, table(tmp_path / "again", run))) == sorted(map(str, table(rules.workspace, run)))
    order = [repr(sorted(record.items(), key=str)) for record in records(tmp_path / "again")]
    assert sorted(order) == sorted(repr(sorted(r.items(), key=str)) for r in records(rules.workspace))


def test_a_map_that_is_rebuilt_under_other_rules_has_logs_under_those_rules(rules: Config) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results())
    drain(rules)
    nearer = replace(rules, crawler=replace(rules.crawler, max_depth=1))
    drain(nearer)
    with sqlite3.connect(rules.output.database_path) as db:
        deep = db.execute("SELECT count(*) FROM pages WHERE state = 'depth_exceeded'").fetchone()[0]
    assert deep > 0
    rows = [row["url"] for row in table(rules.workspace)]
    assert sorted(rows) == visited(nearer) and "https://two.test/3" not in rows
    assert not list((rules.workspace / "logs_redrawn").rglob("*.csv"))


def test_rows_that_somebody_removed_stay_away_and_those_of_another_map_are_kept(rules: Config, tmp_path: Path) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results()[:4])
    drain(rules)
    (rules.workspace / "metadata" / "crawl_metadata.jsonl").unlink()
    again = replace(rules, output=replace(rules.output, database_path=tmp_path / "again.db"))
    replay(rules, tmp_path / "again.db")
    write(rules, "fetcher-01", results()[4:])
    drain(again)  # the map of a replay goes on with the logs as they are
    assert sorted(row["url"] for row in table(rules.workspace)) == visited(again)
    assert len(records(rules.workspace)) == len(visited(again)) - 4


def test_a_map_that_begins_anew_writes_every_row_once_and_sets_the_old_files_aside(rules: Config) -> None:
    """Somebody removed the map, or a kill came between two renames of a rebuild: all results are applied again."""
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results())
    drain(rules)
    rules.output.database_path.unlink()
    drain(rules)
    assert sorted(row["url"] for row in table(rules.workspace)) == visited(rules)
    assert sorted(str(record["url"]) for record in records(rules.workspace)) == visited(rules)
    aside = [path.name for folder in ("logs", "metadata") for path in (rules.workspace / folder).glob("old-1-*")]
    assert sorted(aside) == ["old-1-crawl_metadata.jsonl", "old-1-pages-1.csv"]


def test_the_encoding_is_the_charset_alone(rules: Config) -> None:
    odd = 'Text/HTML;profile="a;b" ; CharSet="UTF-8"; q=1'
    write(rules, "scheduler", begun())
    write(
        rules,
        "fetcher-01",
        [changed(each, content_type=odd) if isinstance(each, PageResult) else each for each in results()],
    )
    drain(rules)
    assert {(row["content_type"], row["encoding"]) for row in table(rules.workspace)} == {("text/html", "utf-8")}


def test_no_log_is_written_that_the_config_does_not_ask_for(rules: Config) -> None:
    quiet = replace(rules, logs=LogSettings(pages=False, metadata=False, metrics=False))
    write(quiet, "scheduler", begun())
    write(quiet, "fetcher-01", results())
    drain(quiet)
    assert not (rules.workspace / "logs").exists() and not (rules.workspace / "metadata").exists()


def test_metrics_go_on_counting_after_a_death(rules: Config) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results()[:3])
    drain(rules)
    write(rules, "fetcher-01", results()[3:])
    drain(rules)
    rows = list(csv.reader((rules.workspace / "logs" / "metrics-1.csv").read_text().splitlines()))
    assert rows[0] == ["timestamp", "metric", "value"]
    fetched = [int(value) for _, metric, value in rows[1:] if metric == "pages_fetched"]
    assert fetched == [3, 6]
