"""The journal: results, their fsync, and how far a bookmark may follow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.fetch.journal import SYNC_EVERY, JobProgress, Journal, JournalClosed
from crawler.model.records import DomainEvent, dump
from crawler.pace.gate_record import LedgerMark
from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.log import Cursor
from tests.crawler.workspace.engine_opener import opener_in

BODY = dump(DomainEvent(1, "a.test", "", "deferred"))  # any record will do
JOB_END = Cursor(1, 100)


@pytest.fixture
def rings() -> list[None]:
    return []


@pytest.fixture
def journal(workspace: FileWorkspace, rings: list[None]) -> Iterator[Journal]:
    journal = Journal(workspace, "fetcher-01", 1, 1 << 20, lambda: rings.append(None))
    yield journal
    journal.close()


@pytest.fixture
def progress(workspace: FileWorkspace) -> JobProgress:
    workspace.layout.jobs_of("a.test").mkdir(parents=True)
    return JobProgress("a.test", Bookmark())


def test_a_bookmark_passes_only_jobs_whose_results_are_durable(
    workspace: FileWorkspace, journal: Journal, progress: JobProgress
) -> None:
    journal.adopt([progress])
    mark = journal.append_result(BODY, progress, JOB_END)
    assert progress.done == JOB_END
    journal.save([progress])
    assert workspace.bookmark("a.test").jobs == Cursor()
    journal.sync(0.0)
    journal.save([progress])
    assert workspace.bookmark("a.test") == Bookmark(JOB_END, "fetcher-01", Cursor(mark.segment, mark.offset))


def test_pages_are_durable_before_the_results_that_name_them_and_those_before_bookmarks(
    workspace: FileWorkspace, progress: JobProgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (order.append("results"), fsync(descriptor))[1])
    journal = Journal(workspace, "fetcher-01", 1, 1 << 20, lambda: None, sync_store=lambda: order.append("store"))
    journal.append_result(BODY, progress, JOB_END)
    order.clear()
    journal.sync(0.0)
    assert order == ["store", "results"]
    order.clear()
    journal.append_result(BODY, progress, JOB_END)
    journal.close()
    assert order == ["store", "results"]


def test_a_store_that_cannot_be_synced_lets_no_bookmark_move(
    workspace: FileWorkspace, progress: JobProgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError(5, "Input/output error")

    journal = Journal(workspace, "fetcher-01", 1, 1 << 20, lambda: None, sync_store=fail)
    before = progress.bookmark
    journal.append_result(BODY, progress, JOB_END)
    with pytest.raises(OSError, match="cannot be made durable"):
        journal.sync(0.0)
    journal.save([progress])
    assert workspace.bookmark("a.test") == before


def test_a_failed_fsync_takes_back_what_it_would_have_allowed(
    workspace: FileWorkspace, journal: Journal, progress: JobProgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    journal.adopt([progress])
    before = progress.bookmark
    journal.append_result(BODY, progress, JOB_END)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="cannot be made durable"):
            journal.sync(0.0)
    journal.save([progress])
    assert workspace.bookmark("a.test") == before


def test_a_closed_journal_appends_nothing_and_finishes_no_job(
    workspace: FileWorkspace, journal: Journal, progress: JobProgress
) -> None:
    journal.close()
    with pytest.raises(JournalClosed):
        journal.append_result(BODY, progress, JOB_END)
    assert progress.done == Cursor()


@pytest.mark.parametrize(("is_counted", "holder"), [(True, None), (False, "fetcher-01")])
def test_the_bookmark_of_a_released_domain_names_its_fetcher_only_if_requests_are_uncounted(
    workspace: FileWorkspace, journal: Journal, progress: JobProgress, is_counted: bool, holder: str | None
) -> None:
    journal.adopt([progress])
    journal.append_result(BODY, progress, JOB_END)
    journal.make_durable(progress)
    journal.release([(progress, is_counted)])
    found = workspace.bookmark("a.test")
    assert (found.jobs, found.holder) == (JOB_END, holder)


def test_a_job_that_needs_no_result_is_done_with_the_next_sync(
    workspace: FileWorkspace, journal: Journal, progress: JobProgress
) -> None:
    journal.adopt([progress])
    journal.skip_job(progress, JOB_END)
    assert journal.patience() < SYNC_EVERY
    journal.keep_up(1000.0, [progress])
    assert workspace.bookmark("a.test").jobs == JOB_END


def test_the_ingest_is_woken_once_for_many_pages_and_once_for_a_sync(journal: Journal, rings: list[None]) -> None:
    for _ in range(50):
        journal.append(BODY)
        journal.wake_ingest(more_to_come=True)
    assert len(rings) < 50
    for _ in range(3):
        before = len(rings)
        journal.wake_ingest(more_to_come=False)
        assert len(rings) == before + 1, "nobody else would wake it"
    before = len(rings)
    journal.sync(0.0)
    assert len(rings) == before + 1


def test_the_ingest_is_not_woken_for_what_it_cannot_see_before_the_next_sync(tmp_path: Path) -> None:
    """With an engine results gather in memory: each ring would be a NOTIFY for nothing."""
    rings: list[None] = []
    with opener_in(tmp_path) as opener:
        journal = Journal(opener(), "fetcher-01", 1, 1 << 20, lambda: rings.append(None))
        journal.append(BODY)
        journal.wake_ingest(more_to_come=False)
        assert not rings
        journal.sync(0.0)
        assert len(rings) == 1
        journal.close()


def test_a_mark_is_the_end_of_the_log(workspace: FileWorkspace, journal: Journal) -> None:
    mark = journal.append(BODY)
    end = workspace.results.end("fetcher-01")
    assert mark == journal.mark() == LedgerMark(1, end.segment, end.offset)
