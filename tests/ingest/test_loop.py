"""The stage itself: spools in, one transaction a batch, and what happens when things break."""

from __future__ import annotations

import itertools
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crawler.database.digest import digest, parts
from crawler.database.map_errors import StoreError
from crawler.model.records import DomainEvent, Exchange, Feed, PageResult, Result, RunEvent, changed, dump, parse
from crawler.model.settings import Config
from crawler.store.file_store import FileStore, open_store
from crawler.workspace.control import StageControl
from crawler.workspace.door import RoleTaken
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Reader, Writer, end_of, segment_path, segments
from ingest.loop import Ingest, gathering_time, let_gather, run_ingest
from ingest.replay import replay
from ingest.writing import domain_sums as sums
from ingest.writing.store import Store
from tests.ingest.terrains import AT, Terrain, domain, ingest_all, read_database, read_plainly, results_of

LATER = "2026-01-02T00:00:00.000Z"
QA, QB, ONE, TWO = "https://qa.test/0", "https://qb.test/0", "https://one.test/0", "https://two.test/0"


def web() -> Terrain:
    return Terrain(
        {
            QA: ("links", [QB, ONE, "https://bad.test/0", "https://x.stub.test/0"], False),
            QB: ("links", [QA, TWO], False),
            ONE: ("redirect", TWO),
            TWO: ("links", ["https://two.test/1", "https://two.test/2"], False),
            "https://two.test/1": ("error", "dead_link"),
            "https://two.test/2": ("links", ["https://two.test/3"], False),
            "https://two.test/3": ("links", [], False),
        }
    )


def write(config: Config, writer: str, results: list[Result], **options: int) -> None:
    spool = Writer(FileWorkspace(config.workspace).layout.results_of(writer), **options)
    for result in results:
        spool.append(dump(result))
    spool.close()


def start(config: Config) -> Ingest:
    workspace = FileWorkspace(config.workspace)
    workspace.prepare()
    return Ingest(config, StageControl(workspace, "ingest"))


def drain(config: Config) -> None:
    ingest = start(config)
    while ingest.step():
        pass
    ingest.shutdown()


def results(run: int = 1) -> list[Result]:
    terrain = web()
    return results_of(terrain, read_plainly(terrain, 2), run)


def begun(run: int = 1, at: str = AT) -> list[Result]:
    return [RunEvent(run, at, "started", "c", "m")]


def test_the_map_does_not_depend_on_how_results_are_spread_over_fetchers(rules: Config, tmp_path: Path) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results()[::2])
    write(rules, "fetcher-02", results()[1::2])
    drain(rules)
    assert read_database(rules.output.database_path) == read_plainly(web(), 2)


def test_positions_and_effects_are_one_transaction(rules: Config) -> None:
    """A commit that fails leaves neither: the same lines are read and applied again after the repair."""
    write(rules, "scheduler", begun())
    drain(rules)
    calm = digest(rules.output.database_path)
    write(rules, "fetcher-01", results())
    ingest = start(rules)
    ingest.store.db.execute("CREATE TRIGGER full BEFORE INSERT ON links BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    with pytest.raises(StoreError, match="the disk is full"):
        ingest.step()
    ingest.store.db.execute("DROP TRIGGER full")
    assert "fetcher-01" not in ingest.store.positions()
    ingest.shutdown()
    assert digest(rules.output.database_path) == calm
    drain(rules)
    assert read_database(rules.output.database_path) == read_plainly(web(), 2)


def test_stored_pages_are_durable_before_their_results_and_those_before_the_commit(
    rules: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetcher may not have synced what the ingest reads. What a 304 confirmed was made durable by an earlier run."""
    write(rules, "scheduler", begun())
    open_store(rules, writer="fetcher-01").put(b"a page")
    order: list[str] = []

    def watch(kind: type, name: str) -> None:
        act = getattr(kind, name)

        def watched(*arguments: Any, **options: Any) -> Any:
            order.append(kind.__name__)
            return act(*arguments, **options)

        monkeypatch.setattr(kind, name, watched)

    watch(FileStore, "sync")
    watch(Reader, "sync")
    watch(Store, "commit")
    page = PageResult(1, QA, QA, "qa.test", AT, "processed", status=200, content_hash="0" * 64, stored=True)
    confirmed = changed(page, key=QB, wire=QB, domain="qb.test", ledger=(Exchange(0, 0, "GET", "q", 304, 0, "q"),))
    for results, expected in (([page], ["FileStore", "Reader", "Store"]), ([confirmed], ["Reader", "Store"])):
        ingest = start(rules)
        while ingest.step():
            pass
        write(rules, f"fetcher-{len(expected):02d}", results)
        order.clear()
        ingest.step()
        assert list(dict.fromkeys(order)) == expected
        ingest.shutdown()


class Killed(BaseException):
    pass


@pytest.mark.parametrize("enough", [1, 1000])
@pytest.mark.parametrize("runs", [1, 2])
def test_a_death_after_any_commit_changes_nothing(
    rules: Config, monkeypatch: pytest.MonkeyPatch, runs: int, enough: int
) -> None:
    """Above all after those around the start of a run: a run without its seeds would be over at once."""
    monkeypatch.setattr(sums, "ENOUGH", enough)
    for run in range(1, runs + 1):
        write(rules, "scheduler", begun(run))
        write(rules, "fetcher-01", results(run))
    commit, deaths = Store.commit, 0
    while True:
        left = deaths + 1  # one commit later each time

        def dying(store: Store, *arguments: Any, **options: Any) -> Any:
            nonlocal left
            done = commit(store, *arguments, **options)
            left -= 1
            if not left:
                store.db.close()
                raise Killed
            return done

        rules.output.database_path.unlink(missing_ok=True)
        try:
            with monkeypatch.context() as patch:
                patch.setattr(Store, "commit", dying)
                drain(rules)
        except Killed:
            deaths += 1
        else:
            break
        drain(rules)
        assert read_database(rules.output.database_path) == read_plainly(web(), 2), f"behind commit {deaths}"
    assert deaths >= 2


def test_a_writer_that_was_not_there_a_moment_ago_is_read_at_once(rules: Config) -> None:
    """A bell is what tells of it, and nobody rings twice."""
    ingest = start(rules)
    assert ingest.step() == 0
    write(rules, "scheduler", begun())
    assert ingest.step() == 1
    ingest.shutdown()


def test_results_gather_while_there_is_plenty_to_do_without_them() -> None:
    few, some, plenty = (gathering_time(waiting, waiting) for waiting in (0, 2_000, 1_000_000))
    assert few < some < plenty
    assert gathering_time(900_000, 1_000_000) == gathering_time(1_000_001, 1_000_000) == plenty
    assert gathering_time(2_000, 30_000) == gathering_time(0, 1) == few, "domains that were just found wait for jobs"
    assert gathering_time(1_990, 2_000) == few, "a crawl that has only begun"


def test_batches_become_smaller_towards_the_end_of_a_run() -> None:
    """However many pages wait: the budgets of their domains may be spent."""
    times = [gathering_time(1_000_000, 1_000_000, left) for left in (3600.0, 6.0, 2.0, 0.5, 0.0)]
    assert times[0] == gathering_time(1_000_000, 1_000_000)
    assert times[0] > times[1] > times[2] > times[3] == times[4] > 0


@pytest.mark.parametrize(
    ("unread", "looks"),
    [
        ([10, 20, 30, 30], 4),  # nothing more comes in
        ([0, 0], 2),
        ([10, 20, 2_000_000], 3),  # enough for a batch
        ([2_000_000], 1),
    ],
)
def test_results_gather_only_while_they_become_more_and_are_few(rules: Config, unread: list[int], looks: int) -> None:
    workspace = FileWorkspace(rules.workspace)
    workspace.prepare()
    control = StageControl(workspace, "ingest")
    left = [*unread, *[-1] * 100]
    let_gather(lambda: left.pop(0), control, time.monotonic() + 600)
    assert len(unread) + 100 - len(left) == looks
    control.close()


def test_results_gather_no_longer_than_that_and_not_when_a_stop_is_asked_for(rules: Config) -> None:
    workspace = FileWorkspace(rules.workspace)
    workspace.prepare()
    control = StageControl(workspace, "ingest")
    looks = itertools.count()
    let_gather(lambda: next(looks), control, time.monotonic())
    control.signals = 1
    let_gather(lambda: next(looks), control, time.monotonic() + 600)
    assert next(looks) == 2
    control.close()


def test_duplicated_segments_change_nothing(rules: Config) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", [*results(), DomainEvent(1, "one.test", AT, "lost-requests", count=2)], segment_bytes=1)
    drain(rules)
    before = digest(rules.output.database_path)
    folder = FileWorkspace(rules.workspace).layout.results_of("fetcher-01")
    last = segments(folder)[-1]
    for number in segments(folder):
        segment_path(folder, last + number).write_bytes(segment_path(folder, number).read_bytes())
    drain(rules)
    assert digest(rules.output.database_path) == before
    db = sqlite3.connect(rules.output.database_path)
    assert db.execute("SELECT lost_requests FROM domain_states WHERE domain = 'one.test'").fetchone() == (2,)


def test_every_line_with_a_flipped_bit_is_one_quarantine_and_no_more(rules: Config) -> None:
    everything = [*begun(), *results()]
    write(rules, "fetcher-01", everything)
    folder = FileWorkspace(rules.workspace).layout.results_of("fetcher-01")
    path = segment_path(folder, 1)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for index in range(1, len(lines)):
        broken = bytearray(lines[index])
        broken[len(broken) // 2] ^= 0x10
        path.write_bytes(b"".join([*lines[:index], bytes(broken), *lines[index + 1 :]]))
        rules.output.database_path.unlink(missing_ok=True)
        drain(rules)
        db = sqlite3.connect(rules.output.database_path)
        assert db.execute("SELECT count(*) FROM quarantine").fetchone() == (1,)
        without = [result for number, result in enumerate(everything) if number != index]
        other = replace(rules, output=replace(rules.output, database_path=rules.workspace / f"without-{index}.db"))
        ingest_all(other, without, started=False)
        assert digest(rules.output.database_path) == digest(other.output.database_path)
        db.close()
        for suffix in ("", "-wal", "-shm"):
            rules.output.database_path.with_name(rules.output.database_path.name + suffix).unlink(missing_ok=True)


def test_lines_of_another_version_or_kind_are_set_aside_with_the_reason(rules: Config) -> None:
    write(rules, "scheduler", begun())
    spool = Writer(FileWorkspace(rules.workspace).layout.results_of("fetcher-01"))
    spool.append(b'{"v":99,"kind":"page"}')
    spool.append(b'{"v":1,"kind":"job","run":1,"key":"k","wire":"w","domain":"d"}')
    spool.append(b'{"v":1,"kind":"page","run":1}')
    spool.append(dump(PageResult(1, QA, QA, "qa.test", AT, state="invented")))
    spool.close()
    drain(rules)
    db = sqlite3.connect(rules.output.database_path)
    reasons = [row[0] for row in db.execute("SELECT reason FROM quarantine ORDER BY offset")]
    assert (
        "version 99" in reasons[0] and "job" in reasons[1] and "broken page" in reasons[2] and "invented" in reasons[3]
    )
    assert len(list((rules.workspace / "quarantine").iterdir())) == 4


def test_the_end_of_a_run_is_taken_in_after_all_its_results(rules: Config) -> None:
    write(rules, "scheduler", [*begun(), RunEvent(1, LATER, "finished")])
    write(rules, "fetcher-01", results())
    drain(rules)
    db = sqlite3.connect(rules.output.database_path)
    assert db.execute("SELECT status, finished_at FROM runs").fetchall() == [("completed", LATER)]
    assert db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'idx_links_to'").fetchone() == (1,)
    assert read_database(rules.output.database_path) == read_plainly(web(), 2)


def test_hints_follow_the_commit_and_a_restart_says_resync(rules: Config) -> None:
    write(rules, "scheduler", begun())
    drain(rules)
    feeds = [parse(line.body) for line in Reader(FileWorkspace(rules.workspace).layout.feed)]
    assert all(isinstance(feed, Feed) for feed in feeds)
    assert feeds[0].resync
    assert dict(feeds[1].work) == {"qa.test": 0, "qb.test": 0}
    write(rules, "fetcher-01", results()[:1])
    drain(rules)
    feeds = [parse(line.body) for line in Reader(FileWorkspace(rules.workspace).layout.feed)]
    assert [feed.resync for feed in feeds].count(True) == 1, "older hints are dropped at a restart"


def test_the_next_run_walks_again_and_keeps_history(rules: Config) -> None:
    write(rules, "scheduler", [*begun(), RunEvent(1, AT, "finished")])
    write(rules, "fetcher-01", results())
    drain(rules)
    write(rules, "scheduler", begun(2, LATER))
    drain(rules)
    db = sqlite3.connect(rules.output.database_path)
    queued = {row[0] for row in db.execute("SELECT url FROM pages WHERE state = 'queued'")}
    assert queued == {QA, QB}, "only the seeds wait; the rest is found again by walking"
    changed = web()
    changed.pages[QA] = ("links", [QB], False)  # the link to ONE is gone
    again = list(results_of(changed, read_plainly(changed, 2), 2))
    write(rules, "fetcher-01", again)
    drain(rules)
    rows = {
        (a.split("//")[1], b.split("//")[1]): (first, last)
        for a, b, first, last in db.execute(
            "SELECT a.url, b.url, l.discovered_run, l.last_run FROM links l JOIN pages a ON a.id = from_page_id"
            " JOIN pages b ON b.id = to_page_id"
        )
    }
    assert rows["qa.test/0", "qb.test/0"] == (1, 2)
    assert rows["qa.test/0", "one.test/0"] == (1, 1)
    assert db.execute("SELECT state, seen_run, visited_run FROM pages WHERE url = ?", (ONE,)).fetchone() == (
        "processed",
        1,
        1,
    )
    assert db.execute("SELECT reference_count FROM stubbed_urls").fetchone() == (1,)
    other = replace(rules, output=replace(rules.output, database_path=rules.workspace / "again.db"))
    replay(other, other.output.database_path)
    assert parts(rules.output.database_path) == parts(other.output.database_path)


def test_the_heartbeats_figures_are_those_of_the_run_at_hand(rules: Config) -> None:
    write(rules, "scheduler", [*begun(), RunEvent(1, AT, "finished")])
    write(rules, "fetcher-01", results())
    drain(rules)
    write(rules, "scheduler", begun(2, LATER))
    write(rules, "fetcher-01", [r for r in results(2) if isinstance(r, PageResult) and r.key == QA])
    counted = start(rules)
    while counted.step():
        pass
    loaded = Store(rules.output.database_path, rules)
    for figures in (counted.store.counts, loaded.counts):
        assert (figures["pages"], figures["errors"]) == (1, 0)
        assert (figures["known"], figures["links"]) == (5, 4), "what run 2 has seen: two seeds, and one page's links"
    assert counted.store.counts == loaded.counts
    loaded.close()
    counted.shutdown()


def test_changed_rules_draw_the_map_anew_and_keep_the_old_one(rules: Config) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results())
    drain(rules)
    deeper = replace(rules, crawler=replace(rules.crawler, max_depth=0))
    ingest = start(deeper)
    assert ingest.rebuilt is not None and ingest.rebuilt.kept.exists()
    assert any("depth_exceeded" in line for line in ingest.rebuilt.report.lines())
    ingest.shutdown()
    assert read_database(rules.output.database_path) == read_plainly(web(), 0)
    listed = replace(rules, blacklist=("bad.test", "two.test"))
    start(listed).shutdown()
    db = sqlite3.connect(rules.output.database_path)
    assert db.execute("SELECT state FROM pages WHERE url = ?", (TWO,)).fetchone() == ("blacklisted",)


def test_a_setting_that_does_not_touch_the_map_does_not_rebuild_it(rules: Config) -> None:
    write(rules, "scheduler", begun())
    drain(rules)
    ingest = start(replace(rules, crawler=replace(rules.crawler, minimum_time_on_page=5000, workers=7)))
    assert ingest.rebuilt is None
    ingest.shutdown()


def test_a_deleted_database_is_rebuilt_from_the_spools(rules: Config) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results())
    drain(rules)
    before = digest(rules.output.database_path)
    for suffix in ("", "-wal", "-shm"):
        rules.output.database_path.with_name(rules.output.database_path.name + suffix).unlink(missing_ok=True)
    drain(rules)
    assert digest(rules.output.database_path) == before


def test_a_second_ingest_is_refused_with_a_sentence(rules: Config) -> None:
    workspace = FileWorkspace(rules.workspace)
    workspace.prepare()
    with workspace.take_role("ingest"), pytest.raises(RoleTaken, match="another ingest is already at work"):
        run_ingest(rules, drain=True)


def test_a_place_behind_the_end_of_a_replaced_spool_is_not_trusted(rules: Config) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results())
    drain(rules)
    folder = FileWorkspace(rules.workspace).layout.results_of("fetcher-01")
    segment_path(folder, 1).unlink()
    write(rules, "fetcher-01", [r for r in results() if isinstance(r, PageResult)][:1])
    assert end_of(folder).segment == 1
    drain(rules)
    assert read_database(rules.output.database_path) == read_plainly(web(), 2)
    assert domain(QA) == "qa.test"
