"""State files that are damaged or forged: the crawl neither hangs nor crashes, and no page is lost or counted twice."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.database.digest import digest
from crawler.fetch.job_queue import job_fault
from crawler.fetch.robots_cache import RobotsCache
from crawler.model.records import Job, PageResult, RobotsResult, dump
from crawler.model.settings import Config, DiscoverySettings, OutputSettings, QualityEntry
from crawler.observe.processes import observe
from crawler.pace.decisions import EntryRequest
from crawler.schedule.scheduler import Scheduler
from crawler.workspace.bookmarks import Bookmark, BookmarkMove
from crawler.workspace.clock import read_clock
from crawler.workspace.control import StageControl
from crawler.workspace.door import WorkspaceError
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.gate_file import GateFile
from crawler.workspace.log import Cursor
from crawler.workspace.reading import read_records
from crawler.workspace.runs import Run, RunStatus, RunWatch, read_run, write_run
from ingest.loop import Ingest

AT = "2026-01-01T00:00:00.000Z"
PAGES = {
    "https://a.test/": ("/one", "/two", "https://b.test/"),
    "https://a.test/one": ("/two", "https://c.test/"),
    "https://a.test/two": ("https://b.test/deep",),
    "https://b.test/": ("https://a.test/one",),
    "https://b.test/deep": ("https://c.test/x",),
    "https://c.test/": (),
    "https://c.test/x": (),
}
STEPS = 300


def config(folder: Path) -> Config:
    output = OutputSettings(folder / "map.db", folder / "summary.md")
    return Config(
        output=output,
        quality=(QualityEntry("a.test", ("https://a.test/",)),),
        discovery=DiscoverySettings(sitemaps=False),  # the fetcher here knows pages alone
        workspace=folder / "workspace",
    )


class SmallCrawl:
    """Scheduler and ingest in one process, and a fetcher that gives every released job its result."""

    def __init__(self, folder: Path) -> None:
        self.config = config(folder)
        self.workspace = FileWorkspace(self.config.workspace)
        self.workspace.prepare()
        self.now = 0.0
        self.visits: list[str] = []
        self.start()

    def start(self) -> None:
        self.ingest = Ingest(self.config, StageControl(self.workspace, "ingest"))
        self.scheduler = Scheduler(self.config, self.workspace)

    def restart(self) -> None:
        self.scheduler.shutdown(is_told_to_stop=False)
        self.ingest.shutdown()
        self.start()

    def step(self) -> bool:
        """One round of all stages. True: the run is over."""
        self.now += 1.0
        self.scheduler.step(self.now)
        self.visit_released()
        for _ in range(STEPS):
            if not self.ingest.step():
                break
        StageControl(self.workspace, "scheduler").beat(force=True)
        return self.scheduler.is_over

    def finish(self) -> str:
        """To the end; the map's digest."""
        assert any(self.step() for _ in range(STEPS)), "the crawl never ended"
        self.scheduler.shutdown(is_told_to_stop=False)
        self.ingest.shutdown()
        observe(self.workspace)
        return digest(self.config.output.database_path)

    def visit_released(self) -> None:
        workspace = self.workspace
        watch = RunWatch(workspace)
        watch.refresh()
        cache = RobotsCache(workspace, "SumiRipple", lambda: 1000)
        writer = workspace.results.writer("fetcher-01", segment_bytes=1 << 20)
        for domain in workspace.domains_with_jobs():
            claim = workspace.claim(domain)
            assert claim is not None
            start = workspace.bookmark(domain)
            gate = workspace.gate(domain, read_clock)
            if cache.policy(1, domain) is None:
                cache.learn(RobotsResult(1, domain, domain, AT, "allow-all"), 1000)
            reader = workspace.jobs(domain, start.jobs)
            for job, line in read_records(reader, Job):
                if job_fault(job) is None and job.run >= watch.number:
                    gate.try_enter(EntryRequest(run=job.run, delay_ms=0, limit=10_000, crawl_delay_ms=0))
                    gate.finish(is_ledgered=True)
                    self.visits.append(job.key)
                    found = PageResult(job.run, job.key, job.wire, domain, AT, "processed", hrefs=PAGES[job.wire])
                    writer.append(dump(found))
                workspace.save_bookmarks([BookmarkMove(domain, replace(start, jobs=line.end, holder="fetcher-01"))])
            reader.close()
            gate.close()
            claim.release()
        writer.close()

    def state_files(self) -> list[Path]:
        root = self.config.workspace
        spools = {*root.glob("spool/**/*.jsonl")}
        return sorted(path for path in root.rglob("*") if path.is_file() and path not in spools and path.stat().st_size)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    return SmallCrawl(tmp_path_factory.mktemp("plain")).finish()


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    bit %= 8 * len(content)
    content[bit // 8] ^= 1 << (bit % 8)
    path.write_bytes(content)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.integers(1, 8), which=st.integers(0, 10_000), bit=st.integers(0, 100_000), restarts=st.booleans())
def test_one_flipped_bit_in_any_state_file_changes_nothing_in_the_map(
    undisturbed: str, steps: int, which: int, bit: int, restarts: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        crawl = SmallCrawl(Path(folder))
        for _ in range(steps):
            if crawl.step():
                break
        files = crawl.state_files()
        damaged = files[which % len(files)]
        flip(damaged, bit)
        try:
            crawl.workspace.check_format()
        except WorkspaceError:  # in one sentence
            assert damaged.name == "format"
            return
        if restarts and not crawl.scheduler.is_over:
            crawl.restart()
        assert crawl.finish() == undisturbed, damaged
        assert sorted({*crawl.visits}) == sorted(PAGES)


@pytest.mark.parametrize("bit", range(0, 8 * 90, 7))
def test_a_bookmark_with_a_flipped_bit_is_replaced_by_the_one_before(tmp_path: Path, bit: int) -> None:
    workspace = FileWorkspace(tmp_path)
    workspace.prepare()
    writer = workspace.job_writer()
    number = writer.write("a.test", [Job(1, f"https://a.test/{n}", f"https://a.test/{n}", "a.test") for n in range(3)])
    reader = workspace.jobs("a.test")
    first, second, third = (line.end for line in reader.read(3))
    reader.close()
    assert first.segment == number
    for end in (first, second, third):
        workspace.save_bookmarks([BookmarkMove("a.test", Bookmark(end, "fetcher-01", Cursor(1, 5)))])
    flip(workspace.layout.jobs_of("a.test") / "bookmark.json", bit)
    assert workspace.bookmark("a.test").jobs in (second, third)


def test_a_bookmark_without_a_checksum_is_read_unless_it_is_past_every_segment(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As the program before this one wrote it; segment 1000068 became 9000068 by one flipped bit."""
    workspace = FileWorkspace(tmp_path)
    workspace.prepare()
    number = workspace.job_writer().write("a.test", [Job(1, "https://a.test/", "https://a.test/", "a.test")])
    path = workspace.layout.jobs_of("a.test") / "bookmark.json"

    def write(segment: int) -> None:
        path.write_bytes(
            orjson.dumps({"v": 1, "segment": segment, "offset": 7, "holder": "fetcher-01", "results": [1, 5]})
        )

    write(number)
    assert workspace.bookmark("a.test") == Bookmark(Cursor(number, 7), "fetcher-01", Cursor(1, 5))
    assert not caplog.records
    write(number + 8_000_000)
    assert workspace.bookmark("a.test") == Bookmark()
    assert "is damaged" in caplog.text


@pytest.mark.parametrize("epoch", [2**64, -1, 10**30, "x", None, 899_999_999])
def test_an_epoch_that_cannot_be_one_is_ignored(tmp_path: Path, epoch: object) -> None:
    workspace = FileWorkspace(tmp_path)
    workspace.prepare()
    first = workspace.job_writer().write("a.test", [Job(1, "https://a.test/", "https://a.test/", "a.test")])
    content = b'{"v":1,"epoch":%b}' % (str(epoch).encode() if isinstance(epoch, int) else orjson.dumps(epoch))
    workspace.layout.scheduler_file.write_bytes(content)
    again = workspace.job_writer().write("a.test", [Job(1, "https://a.test/b", "https://a.test/b", "a.test")])
    assert first < again < 10**12


def test_a_forged_end_of_the_run_ends_nothing(tmp_path: Path, undisturbed: str) -> None:
    crawl = SmallCrawl(tmp_path)
    for _ in range(3):
        crawl.step()
    watch = RunWatch(crawl.workspace)
    watch.refresh()
    write_run(crawl.workspace, Run(1, RunStatus.COMPLETED))
    watch.refresh()
    assert not watch.is_completed
    assert read_run(crawl.workspace) == Run(1, RunStatus.RUNNING)
    write_run(crawl.workspace, Run(50, RunStatus.RUNNING))
    watch.refresh()
    assert watch.number == 1
    assert crawl.finish() == undisturbed
    assert read_run(crawl.workspace) == Run(1, RunStatus.COMPLETED)


@pytest.mark.parametrize("run", [2, 50, 2**40])
def test_a_result_of_a_run_that_nobody_started_is_set_aside(tmp_path: Path, undisturbed: str, run: int) -> None:
    crawl = SmallCrawl(tmp_path)
    crawl.step()
    writer = crawl.workspace.results.writer("fetcher-09", segment_bytes=1 << 20)
    writer.append(dump(PageResult(run, "https://a.test/", "https://a.test/", "a.test", AT, "dead_link")))
    writer.append(dump(PageResult(1, "https://a.test/two", "https://a.test/two", "a.test", AT, "processed")))
    writer.close()
    crawl.finish()
    db = sqlite3.connect(crawl.config.output.database_path)
    try:
        assert db.execute("SELECT id, status FROM runs").fetchall() == [(1, "completed")]
        (reason,) = db.execute("SELECT reason FROM quarantine").fetchone()
        assert reason == f"a result of run {run}, which the scheduler never started"
    finally:
        db.close()


def test_a_run_begins_with_its_results_where_only_the_record_of_its_start_is_lost(tmp_path: Path) -> None:
    crawl = SmallCrawl(tmp_path)
    crawl.finish()
    writer = crawl.workspace.results.writer("fetcher-01", segment_bytes=1 << 20)
    writer.append(dump(PageResult(2, "https://a.test/", "https://a.test/", "a.test", AT, "processed")))
    writer.close()
    ingest = Ingest(crawl.config, StageControl(crawl.workspace, "ingest"))
    while ingest.step():
        pass
    assert ingest.store.last_run() == (2, "running")
    ingest.shutdown()


@pytest.mark.parametrize(
    ("run", "wire", "domain"),
    [
        (1, "https://", "a.test"),
        (1, "", "a.test"),
        (1, "ftp://a.test/", "a.test"),
        (1, "https://b.test/", "a.test"),
        (1, "https://[a.test/", "a.test"),
        (2**40, "https://a.test/", "a.test"),
        (0, "https://a.test/", "a.test"),
        (-5, "https://a.test/", "a.test"),
    ],
)
def test_a_forged_job_has_a_fault(run: int, wire: str, domain: str) -> None:
    assert job_fault(Job(run, "https://a.test/", wire, domain)) is not None
    assert job_fault(Job(1, "https://a.test/", "https://www.a.test/?b=2&a=1", "a.test")) is None


def test_a_symlink_in_the_place_of_a_gate_or_lease_is_replaced_and_its_target_stays_as_it_was(tmp_path: Path) -> None:
    workspace = FileWorkspace(tmp_path / "workspace")
    workspace.prepare()
    target = tmp_path / "precious"
    target.write_bytes(b"keep me")
    for path in (workspace.layout.gate_of("a.test"), workspace.layout.lease_of("a.test")):
        path.symlink_to(target)
    gate = workspace.gate("a.test", read_clock)
    gate.try_enter(EntryRequest(run=1, delay_ms=0, limit=10, crawl_delay_ms=0))
    gate.finish()
    gate.close()
    claim = workspace.claim("a.test")
    assert claim is not None
    claim.release()
    workspace.layout.document("run").symlink_to(target)
    assert workspace.document("run") is None, "a document is not read through a symlink"
    workspace.write_document("run", b'{"v":1}')
    assert target.read_bytes() == b"keep me"
    assert not workspace.layout.gate_of("a.test").is_symlink()
    assert isinstance(gate, GateFile)


def test_a_workspace_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        crawl = SmallCrawl(tmp_path)
        crawl.finish()
    finally:
        os.umask(before)
    root = crawl.config.workspace
    for path in (root, *root.rglob("*")):
        if path.parent.name != "locks" or path.is_dir():
            assert not path.stat().st_mode & 0o077, path
