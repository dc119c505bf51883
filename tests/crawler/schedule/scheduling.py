"""What the scheduler's tests share: a map that the test keeps as the ingest would, and a scheduler on it."""

from __future__ import annotations

import sqlite3

from crawler.database.format import SCHEMA_VERSION
from crawler.model.records import Feed, Job, Record, RunEvent, dump, parse
from crawler.model.settings import Config
from crawler.model.urls import hash64
from crawler.schedule.scheduler import Scheduler
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Reader, Writer
from crawler.workspace.log import Cursor
from ingest.writing.schema import TABLES


class Map:
    """A map on disk, kept by the test the way the ingest keeps it."""

    def __init__(self, config: Config, workspace: FileWorkspace) -> None:
        self.config = config
        self.workspace = workspace
        config.output.database_path.unlink(missing_ok=True)
        self.db = sqlite3.connect(config.output.database_path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.executescript(TABLES)
        self.set_meta("schema_version", str(SCHEMA_VERSION))
        self.set_meta("map_id", "first")
        self.set_meta("map_hash", config.map_hash)
        self.feed_writer = Writer(workspace.layout.feed, durable=False)
        self.fetched: set[str] = set()

    def set_meta(self, name: str, value: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def domain(self, name: str) -> int:
        self.db.execute("INSERT OR IGNORE INTO domain_states (domain, class) VALUES (?, 'discovered')", (name,))
        return int(self.db.execute("SELECT id FROM domain_states WHERE domain = ?", (name,)).fetchone()[0])

    def add(
        self, url: str, priority: int = 1, *, family: str | None = None, wire: str | None = None, turn: int = 0
    ) -> int:
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
            "INSERT INTO frontier (id, page_id, priority, added_at, domain_id, turn) VALUES (?1, ?1, ?2, '', ?3, ?4)",
            (page, priority, domain, turn),
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

    def begin_run(self, number: int) -> None:
        """The first part of what the ingest does at the start of a run."""
        self.db.execute("INSERT INTO runs VALUES (?, '', NULL, '', 'running')", (number,))

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


class Stage:
    """A scheduler before its `shutdown`, and the bells that it rang."""

    def __init__(self, config: Config, workspace: FileWorkspace) -> None:
        self.rung: list[str] = []
        self._note_bells(workspace)
        self.scheduler = Scheduler(config, workspace)
        self.now = 0.0

    def _note_bells(self, workspace: FileWorkspace) -> None:
        ring = workspace.ring

        def note(name: str) -> None:
            self.rung.append(name)
            ring(name)

        workspace.ring = note  # type: ignore[method-assign]

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


def restart(config: Config, map_: Map) -> Stage:
    return start(config, map_)


def map_frontier(map_: Map) -> set[str]:
    return {row[0] for row in map_.db.execute("SELECT url FROM pages WHERE id IN (SELECT page_id FROM frontier)")}
