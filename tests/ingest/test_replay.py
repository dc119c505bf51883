"""Replay and catching up: the spools alone draw the map, however they lie about, and under other rules too."""

from __future__ import annotations

import random
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.database.digest import digest, parts
from crawler.model.records import DomainEvent, FamilyEvent, PageResult, Result, RunEvent, changed, dump
from crawler.model.settings import Config
from crawler.model.urls import resolve
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Writer, segment_path, segments
from ingest.loop import run_ingest
from ingest.replay import ReplayError, replay
from tests.ingest.terrains import AT, Terrain, read_after, read_database, read_plainly, results_of
from tests.ingest.test_loop import LATER, ONE, QA, QB, TWO, begun, drain, results, web, write


def two_runs(rules: Config) -> tuple[Terrain, Terrain]:
    """Spools of two finished runs by two fetchers; the second found the web changed."""
    first, second = web(), web()
    second.pages[QA] = ("links", [QB], False)
    second.pages[TWO] = ("error", "failed")
    for run, terrain in ((1, first), (2, second)):
        at = AT if run == 1 else LATER
        found = [changed(result, at=at) for result in results_of(terrain, read_plainly(terrain, 2), run)]
        write(rules, "scheduler", begun(run, at))
        write(rules, "fetcher-01", found[::2], segment_bytes=300)
        write(rules, "fetcher-02", found[1::2], segment_bytes=300)
        write(rules, "scheduler", [RunEvent(run, at, "finished")])
    return first, second


def test_a_map_of_several_runs_is_caught_up_with_run_by_run(rules: Config) -> None:
    """The database is gone and each fetcher's spool holds both runs: no result of the first may come too late."""
    first, second = two_runs(rules)
    drain(rules)
    assert read_database(rules.output.database_path) == read_after(read_plainly(first, 2), read_plainly(second, 2))
    db = sqlite3.connect(rules.output.database_path)
    assert db.execute("SELECT id, status, started_at, finished_at, config_hash FROM runs").fetchall() == [
        (1, "completed", AT, AT, "c"),
        (2, "completed", LATER, LATER, "c"),
    ]


def test_a_run_whose_start_cannot_be_read_is_walked_all_the_same(rules: Config) -> None:
    first, second = two_runs(rules)
    spool = FileWorkspace(rules.workspace).layout.results_of("scheduler")
    for number in segments(spool):
        segment_path(spool, number).unlink()
    drain(rules)
    assert read_database(rules.output.database_path) == read_after(read_plainly(first, 2), read_plainly(second, 2))


@pytest.mark.parametrize("seed", range(6))
def test_shuffled_and_duplicated_segments_are_replayed_to_the_same_map(
    rules: Config, tmp_path: Path, seed: int
) -> None:
    two_runs(rules)
    replay(rules, tmp_path / "calm.db")
    rng = random.Random(seed)
    for writer in ("fetcher-01", "fetcher-02", "scheduler"):
        folder = FileWorkspace(rules.workspace).layout.results_of(writer)
        contents = [segment_path(folder, number).read_bytes() for number in segments(folder)]
        contents += rng.sample(contents, len(contents) // 2)
        rng.shuffle(contents)
        for number, content in enumerate(contents, 1):
            segment_path(folder, number).write_bytes(content)
    report = replay(rules, tmp_path / "shuffled.db")
    assert report.duplicates > 0
    assert parts(tmp_path / "shuffled.db") == parts(tmp_path / "calm.db")


def test_any_number_of_fetchers_gives_the_same_replay(rules: Config, tmp_path: Path) -> None:
    """An interrupted and resumed run, with other fetchers after the break."""
    found = [*results(), FamilyEvent(1, "two.test", AT, "two.test/#", "trap-similar-paths: x", 5000)]
    digests = set()
    for fetchers in (1, 2, 5):
        mine = replace(rules, workspace=tmp_path / str(fetchers), output=replace(rules.output))
        write(mine, "scheduler", [*begun(), RunEvent(1, AT, "interrupted"), RunEvent(1, AT, "resumed")])
        for index in range(fetchers):
            write(mine, f"fetcher-{index + 1:02d}", found[index::fetchers])
        replay(mine, tmp_path / f"{fetchers}.db")
        digests.add(digest(tmp_path / f"{fetchers}.db"))
    assert len(digests) == 1


def test_a_clock_set_back_in_the_middle_changes_nothing(rules: Config, tmp_path: Path) -> None:
    write(rules, "scheduler", begun(1, LATER))
    backwards = [changed(result, at=f"2026-01-01T00:00:{50 - n:02d}.000Z") for n, result in enumerate(results())]
    write(rules, "fetcher-01", backwards[:3])
    write(rules, "fetcher-02", backwards[3:])
    replay(rules, tmp_path / "new.db")
    assert read_database(tmp_path / "new.db") == read_plainly(web(), 2)


def test_lines_that_the_live_ingest_sets_aside_are_passed_over_by_replay_too(rules: Config, tmp_path: Path) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results())
    spool = Writer(FileWorkspace(rules.workspace).layout.results_of("fetcher-02"))
    good = dump(PageResult(1, QA, QA, "qa.test", AT, state="processed", hrefs=("/a",)))
    bad = [
        good.replace(b'"processed"', b'"invented"'),
        good.replace(b'["/a"]', b"[17]"),
        good.replace(b'"key":"https://qa.test/0"', b'"key":null'),
        b'{"v":1,"kind":"feed","run":1}',
        dump(DomainEvent(1, "one.test", AT, "closed")).replace(b'"closes":null', b'"closes":{"reason":[]}'),
    ]
    for line in bad:
        spool.append(line)
    spool.close()
    report = replay(rules, tmp_path / "new.db")
    assert report.damaged == len(bad)
    drain(rules)
    assert digest(tmp_path / "new.db") == digest(rules.output.database_path)
    db = sqlite3.connect(rules.output.database_path)
    assert db.execute("SELECT count(*) FROM quarantine").fetchone() == (len(bad),)


def visit(wire: str, key: str, *hrefs: str, at: str = AT) -> PageResult:
    host = key.split("/")[2]
    return PageResult(1, key, wire, host, at, "processed", status=200, title=wire, base=wire, hrefs=hrefs)


# As earlier versions recorded them: tables of contents, links back to the page itself, a bare fragment of a Refresh.
_WITH_FRAGMENTS = {
    QA: ("#top", "b#1", "b#2", "?q#1", "0#here", "../c#", "b", "https://one.test/0#x", "d #y", "http://two.test/0#z"),
    ONE: ("0#x", "0", "https://www.qa.test/0#y", "//qb.test/0#1", "//qb.test/0#2", "mailto:a@b#c"),
    TWO: ("#", "two#x", "one", "two", "one#x"),
}
# By a version that looked for every href with its fragment.
_DIGEST_BEFORE = "0135fb5d1fe9095f6cadfa866d47c7a2e3b0fded5d77c269a06deaccb1cfd941"


def test_results_with_fragments_give_the_map_that_they_gave_before_fragments_were_dropped(
    rules: Config, tmp_path: Path
) -> None:
    recorded = [visit(wire, wire, *hrefs) for wire, hrefs in _WITH_FRAGMENTS.items()]
    resolved = [
        changed(result, hrefs=tuple(url for href in result.hrefs if (url := resolve(result.wire, href))))
        for result in recorded
    ]
    digests = []
    for name, found in (("recorded", recorded), ("reversed", recorded[::-1]), ("resolved", resolved)):
        place = replace(rules, workspace=tmp_path / name)
        write(place, "scheduler", begun())
        write(place, "fetcher-01", found)
        replay(place, tmp_path / f"{name}.db")
        digests.append(digest(tmp_path / f"{name}.db"))
    assert digests == [_DIGEST_BEFORE] * 3
    rows = sqlite3.connect(tmp_path / "recorded.db").execute(
        "SELECT count(*) FROM links JOIN pages ON pages.id = from_page_id WHERE url = ? AND to_page_id = from_page_id",
        (QA,),
    )
    assert rows.fetchone() == (1,)


def states(path: Path) -> dict[str, str]:
    return dict(sqlite3.connect(path).execute("SELECT url, state FROM pages").fetchall())


def with_tracking(rules: Config, *names: str) -> Config:
    return replace(rules, crawler=replace(rules.crawler, tracking_parameters=names))


def test_under_more_tracking_parameters_what_was_visited_need_not_be_fetched_again(
    rules: Config, tmp_path: Path
) -> None:
    """`?lang=` made two pages of one; the new rules say that it makes none."""
    found: list[Result] = [
        visit(QA, QA, "https://one.test/0?lang=de", "https://one.test/0?lang=en"),
        visit("https://one.test/0?lang=de", "https://one.test/0?lang=de", TWO),
        visit("https://one.test/0?lang=en", "https://one.test/0?lang=en", TWO, at=LATER),
        visit(TWO, TWO, at=LATER),
    ]
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", found)
    replay(with_tracking(rules, "lang"), tmp_path / "new.db")
    assert states(tmp_path / "new.db") == {QA: "processed", QB: "queued", ONE: "processed", TWO: "processed"}


def test_under_fewer_tracking_parameters_a_visit_counts_for_what_was_asked_for(rules: Config, tmp_path: Path) -> None:
    found: list[Result] = [
        visit(QA, QA, "https://one.test/0?ref=a", "https://one.test/0?ref=b"),
        visit("https://one.test/0?ref=a", ONE, TWO),
    ]
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", found)
    drain(rules)
    assert states(rules.output.database_path) == {QA: "processed", QB: "queued", ONE: "processed", TWO: "queued"}
    report = replay(with_tracking(rules), tmp_path / "new.db", compare=rules.output.database_path)
    assert states(tmp_path / "new.db") == {
        QA: "processed",
        QB: "queued",
        "https://one.test/0?ref=a": "processed",
        "https://one.test/0?ref=b": "queued",
        TWO: "queued",
    }
    assert report.difference is not None
    assert (report.difference.only_before, report.difference.only_now, report.difference.waiting) == (1, 2, 3)


def test_nofollow_that_is_not_obeyed_makes_links_like_any_other(rules: Config, tmp_path: Path) -> None:
    terrain = web()
    terrain.pages[QA] = ("links", [ONE], True)
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", [changed(visit(QA, QA, ONE), nofollow=True)])
    replay(rules, tmp_path / "obeyed.db")
    assert states(tmp_path / "obeyed.db")[ONE] == "discovered"
    replay(replace(rules, crawler=replace(rules.crawler, obey_nofollow=False)), tmp_path / "ignored.db")
    assert states(tmp_path / "ignored.db")[ONE] == "queued"


def test_what_wider_rules_left_waiting_in_an_earlier_run_waits_in_the_next_one_too(
    rules: Config, tmp_path: Path
) -> None:
    """Both runs were complete under max-depth 0; under 1 the pages beyond are still to be fetched, in both."""
    narrow = replace(rules, crawler=replace(rules.crawler, max_depth=0))
    terrain = web()
    for run in (1, 2):
        write(narrow, "scheduler", begun(run))
        write(narrow, "fetcher-01", results_of(terrain, read_plainly(terrain, 0), run))
        write(narrow, "scheduler", [RunEvent(run, AT, "finished")])
    report = replay(replace(rules, crawler=replace(rules.crawler, max_depth=1)), tmp_path / "new.db")
    assert report.waiting == 2
    db = sqlite3.connect(tmp_path / "new.db")
    waiting = db.execute("SELECT url FROM frontier JOIN pages ON pages.id = page_id").fetchall()
    assert {row[0] for row in waiting} == {ONE, TWO}
    assert db.execute("SELECT status FROM runs ORDER BY id").fetchall() == [("completed",), ("interrupted",)]


def test_progress_is_told_and_ends_with_everything(
    rules: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingest.replay.BATCH", 20)
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", [changed(results()[0], error=str(n)) for n in range(100)])
    told: list[tuple[int, int]] = []
    replay(rules, tmp_path / "new.db", progress=lambda done, total: told.append((done, total)))
    assert len(told) >= 3
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] > 0


def test_a_replay_that_fails_leaves_nothing_behind(rules: Config, tmp_path: Path) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results())

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "new"
    folder.mkdir()
    with pytest.raises(KeyboardInterrupt):
        replay(rules, folder / "new.db", progress=interrupt)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("wound", ["cut", "zeros", "noise"])
def test_a_database_that_is_damaged_inside_is_refused_with_a_sentence_that_names_replay(
    rules: Config, tmp_path: Path, wound: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the ingest meets of it: a sentence, exit code 1, and replay draws the map again."""
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results()[:3])
    drain(rules)
    path = rules.output.database_path
    whole = path.read_bytes()
    rubbish = {"cut": b"", "zeros": bytes(len(whole) - 4096), "noise": random.Random(1).randbytes(len(whole) - 4096)}
    path.write_bytes(whole[:4096] + rubbish[wound])
    write(rules, "fetcher-01", results()[3:])
    assert run_ingest(rules, drain=True) == 1
    assert any("damaged" in line and "sumi-ripple replay" in line for line in caplog.messages), caplog.messages
    replay(rules, tmp_path / "new.db")
    assert read_database(tmp_path / "new.db") == read_plainly(web(), 2)


def test_replay_gives_the_same_digest_and_says_so_for_parts_too(rules: Config, tmp_path: Path) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results()[:3])
    write(rules, "fetcher-02", results()[3:])
    drain(rules)
    report = replay(rules, tmp_path / "fresh.db", compare=rules.output.database_path)
    assert digest(tmp_path / "fresh.db") == digest(rules.output.database_path)
    assert report.difference is not None and report.difference.states == ()
    db = sqlite3.connect(tmp_path / "fresh.db")
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert {row[0] for row in db.execute("SELECT writer FROM spool_positions")} == {
        "scheduler",
        "fetcher-01",
        "fetcher-02",
    }


def test_replay_until_and_run_take_a_part(rules: Config, tmp_path: Path) -> None:
    early, late = results()[:2], [changed(r, at=LATER) for r in results()[2:] if isinstance(r, PageResult)]
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", [*early, *late])
    write(rules, "fetcher-02", begun(2, LATER))
    assert replay(rules, tmp_path / "a.db", until="2026-01-01T12:00:00Z").results == 3
    assert replay(rules, tmp_path / "b.db", run=2).results == 1


def test_replay_never_writes_over_a_file_and_wants_spools(rules: Config, tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="no result spools"):
        replay(rules, tmp_path / "new.db")
    (tmp_path / "old.db").write_text("mine")
    with pytest.raises(ReplayError, match="exists already"):
        replay(rules, tmp_path / "old.db")
    assert (tmp_path / "old.db").read_text() == "mine"
