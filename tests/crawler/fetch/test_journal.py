"""What a fetcher writes down, and how far a bookmark may follow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.fetch.journal import SYNC_EVERY, Results, TooLate
from crawler.fetch.lease import Domain
from crawler.model.records import DomainEvent, dump
from crawler.pace.gate_record import LedgerMark
from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.gate_file import GateFile
from crawler.workspace.files.job_spools import read_bookmark
from crawler.workspace.files.spool import Reader
from crawler.workspace.log import Cursor

BODY = dump(DomainEvent(1, "a.test", "", "deferred"))  # what it is does not matter here


@pytest.fixture
def workspace(tmp_path: Path) -> FileWorkspace:
    workspace = FileWorkspace(tmp_path)
    workspace.prepare()
    return workspace


@pytest.fixture
def rings() -> list[None]:
    return []


@pytest.fixture
def results(workspace: FileWorkspace, rings: list[None]) -> Iterator[Results]:
    results = Results(workspace, "fetcher-01", 1, 1 << 20, lambda: rings.append(None))
    yield results
    results.close()


@pytest.fixture
def domain(workspace: FileWorkspace) -> Iterator[Domain]:
    folder = workspace.layout.jobs_of("a.test")
    folder.mkdir(parents=True)
    lease = workspace.claim("a.test")
    assert lease is not None
    domain = Domain("a.test", lease, GateFile(workspace.layout.gate_of("a.test")), Reader(folder), Bookmark())
    yield domain
    domain.drop()


def test_a_bookmark_moves_only_behind_what_is_durable(results: Results, domain: Domain) -> None:
    results.adopt([domain])
    domain.job_end = Cursor(1, 100)
    end = results.append(BODY, settles=domain)
    assert domain.done == Cursor(1, 100)
    results.save([domain])
    assert read_bookmark(domain.reader.folder).jobs == Cursor()
    results.sync(0.0)
    results.save([domain])
    assert read_bookmark(domain.reader.folder) == Bookmark(Cursor(1, 100), "fetcher-01", end)


def test_a_failed_fsync_takes_back_what_it_would_have_allowed(
    results: Results, domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    results.adopt([domain])
    before = domain.bookmark
    domain.job_end = Cursor(1, 100)
    results.append(BODY, settles=domain)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="cannot be made durable"):
            results.sync(0.0)
    results.save([domain])
    assert read_bookmark(domain.reader.folder) == before


def test_a_closed_spool_takes_nothing_more_and_settles_no_job(results: Results, domain: Domain) -> None:
    results.close()
    domain.job_end = Cursor(1, 100)
    with pytest.raises(TooLate):
        results.append(BODY, settles=domain)
    assert domain.done == Cursor()


@pytest.mark.parametrize(("is_in_order", "holder"), [(True, None), (False, "fetcher-01")])
def test_a_domain_let_go_names_its_fetcher_only_if_there_is_something_left_to_look_at(
    results: Results, domain: Domain, is_in_order: bool, holder: str | None
) -> None:
    results.adopt([domain])
    domain.job_end = Cursor(1, 100)
    results.append(BODY, settles=domain)
    results.make_durable(domain)
    results.release([(domain, is_in_order)])
    found = read_bookmark(domain.reader.folder)
    assert (found.jobs, found.holder) == (Cursor(1, 100), holder)


def test_a_job_that_needs_no_result_is_settled_with_the_next_sync(results: Results, domain: Domain) -> None:
    results.adopt([domain])
    domain.job_end = Cursor(1, 100)
    results.step_over(domain)
    assert results.patience() < SYNC_EVERY
    results.keep_up(1000.0, [domain])
    assert read_bookmark(domain.reader.folder).jobs == Cursor(1, 100)


def test_the_ingest_is_woken_once_for_many_pages_and_once_for_a_sync(results: Results, rings: list[None]) -> None:
    for _ in range(50):
        results.append(BODY)
        results.tell_ingest(more_to_come=True)
    assert len(rings) < 50
    for _ in range(3):
        before = len(rings)
        results.tell_ingest(more_to_come=False)
        assert len(rings) == before + 1, "nobody else would wake it"
    before = len(rings)
    results.sync(0.0)
    assert len(rings) == before + 1


def test_a_mark_is_the_end_of_the_spool(results: Results) -> None:
    end = results.append(BODY)
    assert results.mark() == LedgerMark(1, end.segment, end.offset)
