"""The scheduler's steps, against a real database file and real spools; the test plays the ingest."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from filelock import FileLock

from crawler.database.frontier import Frontier
from crawler.model.records import FamilyEvent, Feed, Job, Record, Release, RunEvent, dump, parse
from crawler.model.settings import Config, CrawlerSettings, OutputSettings, TrapSettings
from crawler.model.urls import hash64
from crawler.schedule.scheduler import Scheduler, window_for
from crawler.schedule.turns import Turns
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Reader, Writer, end_of, segment_path, segments
from crawler.workspace.log import Cursor
from crawler.workspace.runs import Run, RunStatus, newest_run, read_run, write_run
from ingest.sqlite.schema import TABLES


class Map:
    """A map on disk, kept by the test the way the ingest keeps it."""

    def __init__(self, config: Config, workspace: FileWorkspace) -> None:
        self.config = config
        self.workspace = workspace
        config.output.database_path.unlink(missing_ok=True)
        self.db = sqlite3.connect(config.output.database_path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.executescript(TABLES)
        self.set_meta("map_id", "first")
        self.set_meta("map_hash", config.map_hash)
        self.feed_writer = Writer(workspace.layout.feed, durable=False)
        self.fetched: set[str] = set()

    def set_meta(self, name: str, value: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def domain(self, name: str) -> int:
        self.db.execute("INSERT OR IGNORE INTO domain_states (domain, class) VALUES (?, 'discovered')", (name,))
        return int(self.db.execute("SELECT id FROM domain_states WHERE domain = ?", (name,)).fetchone()[0])

    def add(self, url: str, priority: int = 1, *, family: str | None = None, wire: str | None = None) -> int:
        """A page that waits; the scheduler is not told."""
        name = url.split("/")[2]
        domain = self.domain(name)
        number = None if family is None else hash64(f"{name}\n{family}")
        page = self.db.execute(
            "INSERT INTO pages (url, domain, state, discovered_at, discovered_run, url_hash, wire_url, domain_id,"
            " seen_run, family) VALUES (?, ?, 'queued', '', 1, ?, ?, ?, 1, ?)",
            (url, name, hash64(url), wire, domain, number),
        ).lastrowid
        assert page is not None
        self.db.execute(
            "INSERT INTO frontier (id, page_id, priority, added_at, domain_id) VALUES (?1, ?1, ?2, '', ?3)",
            (page, priority, domain),
        )
        return page

    def feed(self, feed: Feed) -> None:
        self.feed_writer.append(dump(feed))

    def add_and_tell(self, url: str, priority: int = 1) -> int:
        page = self.add(url, priority)
        self.feed(Feed(1, work=((url.split("/")[2], priority),)))
        return page

    def visit(self, *urls: str, tell: bool = True) -> None:
        """These pages' results are taken in."""
        for url in urls:
            page, name = self.db.execute("SELECT id, domain FROM pages WHERE url = ?", (url,)).fetchone()
            self.db.execute("DELETE FROM frontier WHERE page_id = ?", (page,))
            self.db.execute("UPDATE pages SET state = 'processed', visited_run = 1 WHERE id = ?", (page,))
            if tell:
                self.feed(Feed(1, done=((name, (page,)),)))

    def take_in(self) -> list[Record]:
        """Read the scheduler's decisions as the ingest does; returns the new ones."""
        place = self.place("scheduler")
        reader = Reader(self.workspace.layout.results_of("scheduler"), place)
        records = []
        for line in reader:
            record = parse(line.body)
            records.append(record)
            if isinstance(record, RunEvent):
                self.db.execute(
                    "INSERT OR IGNORE INTO runs VALUES (?, ?, NULL, '', 'running')", (record.run, record.at)
                )
                status = {"finished": "completed", "interrupted": "interrupted"}.get(record.event, "running")
                self.db.execute("UPDATE runs SET status = ? WHERE id = ?", (status, record.run))
        self.set_place("scheduler", reader.cursor)
        reader.close()
        return records

    def place(self, writer: str) -> Cursor:
        row = self.db.execute("SELECT segment, offset FROM spool_positions WHERE writer = ?", (writer,)).fetchone()
        return Cursor(*row) if row else Cursor()

    def set_place(self, writer: str, place: Cursor) -> None:
        self.db.execute(
            "INSERT OR REPLACE INTO spool_positions VALUES (?, ?, ?)", (writer, place.segment, place.offset)
        )


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(
        crawler=CrawlerSettings(jobs_per_domain=4, max_active_domains=3),
        output=OutputSettings(tmp_path / "map.db", tmp_path / "summary.md"),
        workspace=tmp_path / "workspace",
    )


@pytest.fixture
def workspace(config: Config) -> FileWorkspace:
    made = FileWorkspace(config.workspace)
    made.prepare()
    return made


@pytest.fixture
def map_(config: Config, workspace: FileWorkspace) -> Iterator[Map]:
    made = Map(config, workspace)
    yield made
    made.db.close()


class Stage:
    """A scheduler between `initialize` and `shutdown`, and the bells that it rang."""

    def __init__(self, config: Config, workspace: FileWorkspace) -> None:
        self.rung: list[str] = []
        self.scheduler = Scheduler(config, workspace, self.rung.append)
        self.scheduler.initialize()
        self.now = 0.0

    def step(self, seconds: float = 0.0) -> float:
        self.now += seconds
        return self.scheduler.step(self.now)

    def settle_down(self) -> None:
        while self.step() == 0.0:
            if self.scheduler.is_over:
                break

    def kill(self) -> None:
        """Let go of everything without a word, as a killed process does."""


def start(config: Config, map_: Map) -> Stage:
    """A scheduler with a run under way."""
    stage = Stage(config, map_.workspace)
    stage.step()
    map_.take_in()
    stage.settle_down()
    return stage


def jobs(workspace: FileWorkspace, domain: str | None = None) -> list[str]:
    """Keys of all released jobs that are still on disk, in order."""
    found = []
    folders = [workspace.layout.jobs_of(domain)] if domain else sorted(workspace.layout.jobs.iterdir())
    for folder in folders:
        for line in Reader(folder):
            record = parse(line.body)
            assert isinstance(record, Job)
            found.append(record.key)
    return found


# -- runs --------------------------------------------------------------------------------------------------


def test_the_scheduler_waits_until_there_is_a_map(config: Config, workspace: FileWorkspace) -> None:
    stage = Stage(config, workspace)
    assert stage.step() > 0
    assert stage.scheduler.run is None
    map_ = Map(config, workspace)
    stage.step()
    assert stage.scheduler.run == Run(1, RunStatus.RUNNING)
    assert [event.event for event in map_.take_in()] == ["started"]


def test_a_database_without_tables_is_not_a_map_yet(config: Config, workspace: FileWorkspace) -> None:
    sqlite3.connect(config.output.database_path).execute("CREATE TABLE other (x)").close()
    stage = Stage(config, workspace)
    assert stage.step() > 0
    assert stage.scheduler.run is None


def test_a_map_of_another_config_is_waited_for(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.set_meta("map_hash", "of other rules")
    map_.add("https://a.test/")
    stage = Stage(config, workspace)
    stage.step()
    assert stage.scheduler.run is None
    map_.set_meta("map_hash", config.map_hash)
    stage.step()
    assert stage.scheduler.run is not None


def test_a_run_event_carries_the_hashes_and_is_noted(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    Stage(config, workspace).step()
    (event,) = map_.take_in()
    assert isinstance(event, RunEvent)
    assert (event.run, event.event) == (1, "started")
    assert (event.config_hash, event.map_hash) == (config.config_hash, config.map_hash)
    assert read_run(workspace) == Run(1, RunStatus.RUNNING)


def test_nothing_is_released_before_the_run_event_is_taken_in(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/")
    stage = Stage(config, workspace)
    for _ in range(3):
        stage.step(1)
    assert jobs(workspace) == []
    map_.take_in()
    stage.step(1)
    assert jobs(workspace) == ["https://a.test/"]


def test_an_empty_frontier_before_the_seeds_are_in_does_not_end_the_run(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    stage = Stage(config, workspace)
    stage.step()
    stage.step(10)
    assert [event.event for event in map_.take_in()] == ["started"]


def test_a_run_ends_when_the_frontier_is_empty_and_the_map_says_so(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    map_.visit("https://a.test/")
    stage.settle_down()
    stage.step(1)
    assert not stage.scheduler.is_over, "not before the map says so"
    assert read_run(workspace) == Run(1, RunStatus.RUNNING)
    assert [event.event for event in map_.take_in()] == ["finished"]
    stage.step(1)
    assert stage.scheduler.is_over
    assert read_run(workspace) == Run(1, RunStatus.COMPLETED)
    assert list(workspace.layout.jobs.iterdir()) == []
    stage.scheduler.shutdown(is_told_to_stop=True)
    assert map_.take_in() == [], "a completed run is not interrupted"


def test_a_stop_interrupts_the_run_and_the_next_start_resumes_it(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    stage.scheduler.shutdown(is_told_to_stop=True)
    assert read_run(workspace) == Run(1, RunStatus.INTERRUPTED)
    assert [event.event for event in map_.take_in()] == ["interrupted"]
    Stage(config, workspace).step()
    (event,) = map_.take_in()
    assert (event.run, event.event) == (1, "resumed")  # type: ignore[union-attr]


def test_a_killed_scheduler_resumes_its_run(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    start(config, map_).kill()
    Stage(config, workspace).step()
    assert [event.event for event in map_.take_in()] == ["resumed"]


def test_after_a_completed_run_comes_the_next_number(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    stage = start(config, map_)
    stage.settle_down()
    map_.take_in()
    stage.step()
    assert stage.scheduler.is_over
    Stage(config, workspace).step()
    (event,) = map_.take_in()
    assert (event.run, event.event) == (2, "started")  # type: ignore[union-attr]


def test_a_crash_between_the_run_event_and_its_note_does_not_start_a_second_run(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    Stage(config, workspace).step()
    workspace.layout.run_file.unlink()  # the note was not written, and the map has not taken in the event either
    Stage(config, workspace).step()
    assert [(event.run, event.event) for event in map_.take_in()] == [(1, "started"), (1, "resumed")]


def test_a_run_whose_end_nobody_saw_is_brought_to_its_end_instead_of_walked_again(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    stage = start(config, map_)
    stage.settle_down()  # writes `finished`, and is killed before the map has taken that in
    second = Stage(config, workspace)
    second.step()
    assert not second.scheduler.is_over
    assert [event.event for event in map_.take_in()] == ["finished"]
    second.step(1)
    assert second.scheduler.is_over
    assert read_run(workspace) == Run(1, RunStatus.COMPLETED)
    assert map_.take_in() == []


def test_events_behind_the_maps_place_count_for_how_a_run_stands() -> None:
    started, finished = RunEvent(3, "", "started"), RunEvent(3, "", "finished")
    assert newest_run(None, []) is None
    assert newest_run(Run(2, RunStatus.COMPLETED), [started]) == Run(3, RunStatus.RUNNING)
    assert newest_run(Run(3, RunStatus.RUNNING), [started, finished]) == Run(3, RunStatus.COMPLETED)
    assert newest_run(Run(3, RunStatus.RUNNING), [RunEvent(1, "", "finished")]) == Run(3, RunStatus.RUNNING)


# -- windows -----------------------------------------------------------------------------------------------


def test_a_window_is_released_by_priority_then_age(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    for path, priority in (("one", 3), ("two", 1), ("three", 1), ("four", 0), ("five", 2)):
        map_.add(f"https://a.test/{path}", priority)
    start(config, map_)
    assert [key.rsplit("/", 1)[1] for key in jobs(workspace)] == ["four", "two", "three", "five"]


def test_a_job_names_the_wire_url_where_it_is_not_the_key(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    one = map_.add("https://a.test/x", wire="https://www.a.test/x/")
    two = map_.add("https://a.test/y")
    start(config, map_)
    records = [parse(line.body) for line in Reader(workspace.layout.jobs_of("a.test"))]
    assert records == [
        Job(1, "https://a.test/x", "https://www.a.test/x/", "a.test", one),
        Job(1, "https://a.test/y", "https://a.test/y", "a.test", two),
    ]


def test_a_domain_never_has_more_jobs_out_than_its_window(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    urls = [f"https://a.test/{number:02d}" for number in range(20)]
    for url in urls:
        map_.add(url)
    stage = start(config, map_)
    done: list[str] = []
    while waiting := jobs(workspace, "a.test"):
        waiting = [key for key in waiting if key not in done]
        assert len(waiting) <= 4
        map_.visit(waiting[0])
        done.append(waiting[0])
        stage.settle_down()
    assert done == urls
    assert stage.scheduler.released == len(urls)


def test_a_window_is_filled_up_when_half_of_it_is_worked_off(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    urls = [f"https://a.test/{number}" for number in range(9)]
    for url in urls:
        map_.add(url)
    stage = start(config, map_)
    map_.visit(urls[0])
    stage.settle_down()
    assert stage.scheduler.released == 4
    map_.visit(urls[1])
    stage.settle_down()
    assert stage.scheduler.released == 6


def test_only_so_many_domains_are_active_at_a_time(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    for number in range(6):
        map_.add(f"https://d{number}.test/")
    stage = start(config, map_)
    assert len(jobs(workspace)) == 3
    map_.visit("https://d1.test/")
    stage.settle_down()
    assert stage.scheduler.released == 4
    assert "https://d3.test/" in jobs(workspace)


def test_the_better_priority_gets_the_free_place(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    for number, priority in enumerate((5, 4, 3, 2, 1)):
        map_.add(f"https://d{number}.test/", priority)
    start(config, map_)
    assert sorted(jobs(workspace)) == ["https://d2.test/", "https://d3.test/", "https://d4.test/"]


def test_domains_with_endless_urls_give_their_place_to_a_small_one_of_the_same_priority(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    for big in ("big0", "big1", "big2"):
        for number in range(200):
            map_.add(f"https://{big}.test/{number}")
    for number in range(3):
        map_.add(f"https://small.test/{number}")
    stage = start(config, map_)
    visits = 0
    while any(key.startswith("https://small.test/") for key in map_frontier(map_)):
        waiting = map_frontier(map_)
        for folder in sorted(workspace.layout.jobs.iterdir()):  # one page of each, so that nobody is ever through
            keys = [key for key in jobs(workspace, folder.name) if key in waiting]
            map_.visit(*keys[:1])
            visits += len(keys[:1])
        stage.settle_down()
        assert visits < 60, "the small domain has to wait for the big ones to be through"


def map_frontier(map_: Map) -> set[str]:
    return {row[0] for row in map_.db.execute("SELECT url FROM pages WHERE id IN (SELECT page_id FROM frontier)")}


def test_new_work_in_the_feed_is_released(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    map_.add_and_tell("https://a.test/more")
    map_.add_and_tell("https://b.test/")
    stage.settle_down()
    assert jobs(workspace) == ["https://a.test/", "https://a.test/more", "https://b.test/"]


def test_a_domain_keeps_its_turn(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    for name in ("a.test", "b.test"):
        map_.add(f"https://{name}/")
    stage = start(config, map_)
    map_.visit("https://b.test/")
    stage.settle_down()
    for name in ("c.test", "b.test"):
        map_.add_and_tell(f"https://{name}/more")
    stage.settle_down()
    released = [parse(line.body) for line in Reader(workspace.layout.releases)]
    turns = {(record.domain, record.turn) for record in released if isinstance(record, Release)}
    assert turns == {("a.test", 1), ("b.test", 2), ("c.test", 3)}


@pytest.mark.parametrize(("pause", "window"), [(100, 30), (150, 20), (1000, 16), (60_000, 16), (0, 64)])
def test_a_window_is_a_few_jobs_or_a_few_seconds_of_them(pause: int, window: int) -> None:
    assert window_for(CrawlerSettings(minimum_time_on_page=pause)) == window
    assert window_for(CrawlerSettings(minimum_time_on_page=pause, jobs_per_domain=5)) == 5


def test_releases_are_announced_and_the_fetchers_bells_rung_once(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    for name in ("fetcher-01", "fetcher-02", "ingest"):
        (workspace.layout.bells / name).touch()
    for name in ("a.test", "b.test"):
        map_.add(f"https://{name}/")
    stage = start(config, map_)
    released = [parse(line.body) for line in Reader(workspace.layout.releases)]
    assert released == [Release(1, "a.test", 1, turn=1), Release(1, "b.test", 1, turn=2)]
    assert sorted(name for name in stage.rung if name.startswith("fetcher")) == ["fetcher-01", "fetcher-02"]


def test_a_closed_domain_is_over(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    for number in range(9):
        map_.add(f"https://a.test/{number}")
    map_.add("https://b.test/")
    stage = start(config, map_)
    map_.db.execute("DELETE FROM frontier WHERE domain_id = (SELECT id FROM domain_states WHERE domain = 'a.test')")
    map_.feed(Feed(1, closed=("a.test",)))
    stage.settle_down()
    assert jobs(workspace) == ["https://b.test/"]
    assert stage.scheduler.facts()["active_domains"] == 1


def test_settled_segments_and_empty_folders_go(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    map_.add("https://b.test/")
    stage = start(config, map_)
    map_.visit("https://a.test/")
    stage.settle_down()
    assert segments(workspace.layout.jobs_of("a.test")) == []
    stage.step(60)
    assert [folder.name for folder in workspace.layout.jobs.iterdir()] == ["b.test"]


def test_a_folder_stays_while_a_fetcher_holds_the_lease(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    map_.add("https://b.test/")
    stage = start(config, map_)
    lease = FileLock(workspace.layout.lease_of("a.test"))
    lease.acquire()
    map_.visit("https://a.test/")
    stage.settle_down()
    stage.step(60)
    assert workspace.layout.jobs_of("a.test").exists()
    lease.release()
    stage.step(60)
    assert not workspace.layout.jobs_of("a.test").exists()


# -- restarts ----------------------------------------------------------------------------------------------


def restart(config: Config, map_: Map) -> Stage:
    return start(config, map_)


def test_what_was_released_before_a_crash_is_not_released_again(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    urls = [f"https://a.test/{number}" for number in range(6)]
    for url in urls:
        map_.add(url)
    start(config, map_).kill()
    map_.visit(urls[0], tell=False)
    stage = restart(config, map_)
    assert stage.scheduler.released == 0, "three of four are still out"
    map_.visit(urls[1])
    stage.settle_down()
    assert jobs(workspace)[-2:] == urls[4:]


def test_jobs_of_a_map_that_was_drawn_anew_are_known_by_their_keys(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    urls = [f"https://a.test/{number}" for number in range(3)]
    for url in urls:
        map_.add(url)
    before = Writer(workspace.layout.jobs_of("a.test"), durable=False)
    before.append(dump(Job(1, urls[1], urls[1], "a.test", 2_000)))  # no page has this number now
    before.append(dump(Job(1, urls[0], urls[0], "a.test", 3)))  # another one has this
    before.append(dump(Job(1, "https://a.test/gone", "https://a.test/gone", "a.test", 1)))
    stage = start(config, map_)
    assert stage.scheduler.released == 1
    assert sorted(jobs(workspace)) == [*urls, "https://a.test/gone"]


def test_a_torn_job_is_released_again(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/1")
    map_.add("https://a.test/2")
    start(config, map_).kill()
    folder = workspace.layout.jobs_of("a.test")
    (number,) = segments(folder)
    path = segment_path(folder, number)
    path.write_bytes(path.read_bytes()[:-10])
    restart(config, map_)
    assert jobs(workspace) == ["https://a.test/1", "https://a.test/2"]


def test_segments_of_settled_jobs_and_of_other_runs_go_at_the_start(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/")
    map_.add("https://b.test/")
    start(config, map_).kill()
    map_.visit("https://a.test/", tell=False)
    old = Writer(workspace.layout.jobs_of("c.test"), durable=False)
    old.append(dump(Job(99, "https://c.test/", "https://c.test/", "c.test")))
    restart(config, map_)
    assert jobs(workspace) == ["https://b.test/"]


def test_segment_numbers_rise_from_start_to_start(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    start(config, map_).kill()
    first = segments(workspace.layout.jobs_of("a.test"))
    map_.add("https://a.test/more")
    restart(config, map_)
    second = segments(workspace.layout.jobs_of("a.test"))
    assert second[0] == first[0] and second[1] // 1_000_000 > first[0] // 1_000_000
    assert orjson.loads(workspace.layout.scheduler_file.read_bytes())["epoch"] == second[1] // 1_000_000


def test_segment_numbers_rise_even_when_the_epoch_is_lost(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    start(config, map_).kill()
    first = segments(workspace.layout.jobs_of("a.test"))
    workspace.layout.scheduler_file.write_bytes(b"{torn")
    map_.add("https://a.test/more")
    restart(config, map_)
    assert segments(workspace.layout.jobs_of("a.test"))[1] // 1_000_000 > first[0] // 1_000_000


def test_a_replaced_map_is_read_afresh_with_its_own_page_numbers(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    map_.db.close()
    for suffix in ("", "-wal", "-shm"):
        config.output.database_path.with_name(config.output.database_path.name + suffix).unlink(missing_ok=True)
    second = Map(config, workspace)
    second.set_meta("map_id", "second")
    for number in range(3):
        second.add(f"https://b.test/{number}")
    second.add("https://a.test/")
    second.take_in()
    stage.settle_down()
    assert sorted(jobs(workspace)) == ["https://a.test/", *(f"https://b.test/{number}" for number in range(3))]
    assert stage.scheduler.released == 4, "the one that was out stays out"
    second.visit("https://a.test/")
    stage.settle_down()
    assert segments(workspace.layout.jobs_of("a.test")) == []


def test_a_lost_hint_is_made_up_for_by_looking_at_the_table(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    map_.visit("https://a.test/", tell=False)
    map_.add("https://b.test/")
    stage.step(6)
    stage.settle_down()
    assert jobs(workspace) == ["https://b.test/"]


def test_a_resync_in_the_feed_looks_at_everything(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    map_.add("https://b.test/")
    map_.visit("https://a.test/", tell=False)
    map_.feed(Feed(0, resync=True))
    stage.settle_down()
    assert jobs(workspace) == ["https://b.test/"]


# -- lost results ------------------------------------------------------------------------------------------


def bookmark_at_the_end(workspace: FileWorkspace, domain: str) -> None:
    folder = workspace.layout.jobs_of(domain)
    end = end_of(folder)
    content = {"v": 1, "segment": end.segment, "offset": end.offset, "holder": "fetcher-01", "results": [1, 0]}
    (folder / "bookmark.json").write_bytes(orjson.dumps(content))


def test_a_visit_without_a_readable_result_is_released_again(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    before = segments(workspace.layout.jobs_of("a.test"))
    bookmark_at_the_end(workspace, "a.test")
    stage.step(60)
    assert jobs(workspace) == ["https://a.test/"]
    assert segments(workspace.layout.jobs_of("a.test"))[0] > before[0]
    released = stage.scheduler.released
    stage.step(60)
    assert stage.scheduler.released == released, "the bookmark is behind the new job now"


def test_a_result_that_waits_to_be_taken_in_is_waited_for(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    bookmark_at_the_end(workspace, "a.test")
    results = Writer(workspace.layout.results_of("fetcher-01"))
    end = results.append(b'{"v":1,"kind":"other"}')
    stage.step(60)
    assert stage.scheduler.released == 1
    map_.set_place("fetcher-01", end)
    stage.step(60)
    assert stage.scheduler.released == 2


def test_a_torn_tail_in_a_dead_fetchers_spool_does_not_hold_up_the_second_release(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    bookmark_at_the_end(workspace, "a.test")
    results = Writer(workspace.layout.results_of("fetcher-01"))
    end = results.append(b'{"v":1,"kind":"other"}')
    with segment_path(workspace.layout.results_of("fetcher-01"), end.segment).open("ab") as file:
        file.write(b'{"v":1,"kind":"pa')
    map_.set_place("fetcher-01", end)
    stage.step(60)
    assert stage.scheduler.released == 2


def test_a_visit_under_way_is_not_released_again(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    for _ in range(10):
        stage.step(60)
    assert stage.scheduler.released == 1


# -- families ----------------------------------------------------------------------------------------------


@pytest.fixture
def trap_config(config: Config) -> Config:
    return Config(
        crawler=CrawlerSettings(jobs_per_domain=4, max_active_domains=3),
        output=config.output,
        workspace=config.workspace,
        traps=TrapSettings(max_query_variants=3),
    )


def test_a_family_gets_its_share_and_is_then_closed_with_one_event(
    trap_config: Config, workspace: FileWorkspace
) -> None:
    from crawler.rules.traps import family_of

    map_ = Map(trap_config, workspace)
    urls = [f"https://a.test/calendar?day={number}" for number in range(10)]
    family = family_of(urls[0], trap_config.traps)
    assert family is not None and family.limit == 3
    for url in urls:
        map_.add(url, family=family.name)
    map_.add("https://a.test/plain", 9)
    stage = start(trap_config, map_)
    assert jobs(workspace) == urls[:3]
    events = [record for record in map_.take_in() if isinstance(record, FamilyEvent)]
    assert [(event.run, event.domain, event.family, event.error, event.limit) for event in events] == [
        (1, "a.test", family.name, family.error, 3)
    ]
    assert events[0].spare == tuple(urls[:3])
    stage.step(5)
    assert map_.take_in() == [], "once"
    # The ingest settles what waits in the family; what stands behind it comes up.
    map_.db.execute(
        "DELETE FROM frontier WHERE page_id IN (SELECT id FROM pages WHERE url IN (SELECT value FROM json_each(?)))",
        (orjson.dumps(urls[3:]).decode(),),
    )
    map_.visit(*urls[:2])
    stage.settle_down()
    assert jobs(workspace)[-1] == "https://a.test/plain"
    map_.visit(urls[2], "https://a.test/plain")
    stage.settle_down()
    assert [event.event for event in map_.take_in()] == ["finished"]  # type: ignore[union-attr]


def test_visits_before_a_restart_count_for_a_familys_share(trap_config: Config, workspace: FileWorkspace) -> None:
    from crawler.rules.traps import family_of

    map_ = Map(trap_config, workspace)
    urls = [f"https://a.test/calendar?day={number}" for number in range(5)]
    family = family_of(urls[0], trap_config.traps)
    assert family is not None
    map_.add(urls[0], family=family.name)
    map_.add(urls[1], family=family.name)
    start(trap_config, map_).kill()
    map_.visit(urls[0], tell=False)  # one visited, one out
    for url in urls[2:]:
        map_.add(url, family=family.name)
    stage = start(trap_config, map_)
    assert stage.scheduler.released == 1
    (event,) = [record for record in map_.take_in() if isinstance(record, FamilyEvent)]
    assert event.spare == tuple(urls[1:3])


def test_a_family_that_the_map_knows_as_closed_is_not_closed_again(
    trap_config: Config, workspace: FileWorkspace
) -> None:
    from crawler.rules.traps import family_of

    map_ = Map(trap_config, workspace)
    url = "https://a.test/calendar?day=1"
    family = family_of(url, trap_config.traps)
    assert family is not None
    map_.add(url, family=family.name)
    number = hash64(f"a.test\n{family.name}")
    map_.db.execute("INSERT INTO closed_families VALUES (?, 1, 'a.test', ?, 'trap', '[]')", (number, family.name))
    stage = start(trap_config, map_)
    stage.step(5)
    assert jobs(workspace) == []
    assert map_.take_in() == []


# -- the parts ---------------------------------------------------------------------------------------------


def test_turns_go_by_priority_then_by_waiting_time() -> None:
    turns = Turns()
    for name, priority in (("late", 2), ("first", 1), ("second", 1)):
        turns.offer(name, priority)
    served = []
    while (first := turns.first()) is not None:
        served.append(first[1])
        turns.drop(first[1])
        if first[1] == "first" and served.count("first") == 1:
            turns.offer("first", 1)
    assert served == ["first", "second", "first", "late"]


def test_a_better_priority_moves_a_domain_forward_and_a_worse_one_does_not_move_it_back() -> None:
    turns = Turns()
    turns.offer("a", 5)
    turns.offer("b", 4)
    turns.offer("a", 1)
    turns.offer("a", 9)
    assert turns.first() == (1, "a")
    assert len(turns) == 2


def test_the_line_does_not_grow_with_offers() -> None:
    turns = Turns()
    for number in range(10_000):
        turns.offer("a", 10_000 - number)
    assert len(turns._heap) < 200


def test_the_domains_of_a_large_frontier_cost_one_seek_each(config: Config, map_: Map) -> None:
    """Not a clock but SQLite's own plan: no scan of the frontier, no sorting."""
    from crawler.database.frontier import _DOMAINS, _WINDOW

    for sql, parameters in ((_DOMAINS, ()), (_WINDOW, (1, 4))):
        plan = [row[3] for row in map_.db.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
        assert not any("TEMP B-TREE" in line for line in plan), plan
        assert not any(line.startswith(("SCAN frontier", "SCAN f ")) for line in plan), plan


def test_domains_are_listed_with_their_best_row(config: Config, map_: Map) -> None:
    map_.add("https://b.test/1", 5)
    map_.add("https://a.test/1", 7)
    map_.add("https://a.test/2", 2)
    frontier = Frontier(config.output.database_path)
    frontier.open()
    assert [(found.name, found.priority, found.row) for found in frontier.domains()] == [
        ("a.test", 2, 3),
        ("b.test", 5, 1),
    ]
    frontier.close()


def test_a_note_of_the_run_that_cannot_be_read_is_no_note(workspace: FileWorkspace) -> None:
    assert read_run(workspace) is None
    write_run(workspace, Run(4, RunStatus.INTERRUPTED))
    assert read_run(workspace) == Run(4, RunStatus.INTERRUPTED)
    workspace.layout.run_file.write_bytes(b'{"run": 4, "status": "dancing"}')
    assert read_run(workspace) is None
