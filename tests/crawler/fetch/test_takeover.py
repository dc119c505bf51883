"""A fetcher takes over the work of one before it."""

from __future__ import annotations

import pytest

from crawler.fetch.job_queue import JobQueue
from crawler.fetch.journal import Journal
from crawler.fetch.leased_domain import LeasedDomain
from crawler.fetch.takeover import ResultIndex, Takeover
from crawler.model.records import Closure, DomainEvent, Exchange, PageResult, RobotsResult, dump
from crawler.model.settings import Config
from crawler.pace.decisions import EntryRequest, NotYet, Open
from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.gate_file import GateFile
from crawler.workspace.files.spool import Reader, Writer
from crawler.workspace.log import Cursor
from crawler.workspace.reading import read_records

WISH = EntryRequest(run=1, delay_ms=100, limit=1000)


def page(
    key: str, domain: str = "a.test", requests: int = 2, closes: Closure | None = None, run: int = 1
) -> PageResult:
    ledger = tuple(Exchange(0, number, "GET", domain, 200, 1, domain) for number in range(requests))
    return PageResult(run, key, key, domain, "", "processed", hrefs=("/x",) * 50, ledger=ledger, closes=closes)


def test_what_a_dead_fetcher_left_is_found_by_domain_from_any_cursor(workspace: FileWorkspace) -> None:
    folder = workspace.layout.results_of("fetcher-01")
    writer = Writer(folder, segment_bytes=2000)
    first = writer.append(dump(page("https://a.test/1")))
    second = writer.append(dump(page("https://b.test/1", "b.test")))
    writer.append(dump(page("https://a.test/2", requests=3, closes=Closure("rate-limited", 5))))
    writer.append(dump(DomainEvent(1, "a.test", "", "lost-requests", 4)))
    writer.close()
    index = ResultIndex(workspace.results, "fetcher-01")
    late = index.since("a.test", second)
    assert late.done == {(1, "https://a.test/2")}
    assert sum(requests for _, _, requests in late.ledgered) == 3
    assert late.closes == {1: Closure("rate-limited", 5)}
    assert late.reported == {1}
    assert index.since("a.test", Cursor()).done == {(1, "https://a.test/1"), (1, "https://a.test/2")}
    assert index.since("a.test", first).done == {(1, "https://a.test/2")}
    assert index.since("b.test", Cursor()).done == {(1, "https://b.test/1")}
    assert index.since("c.test", Cursor()).done == set()


def test_the_pages_that_a_dead_fetcher_stored_are_made_durable_once_for_all_domains_and_before_its_results(
    workspace: FileWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(workspace.layout.results_of("fetcher-01"))
    for name in ("a.test", "b.test"):
        writer.append(dump(page(f"https://{name}/1", name)))
    order: list[str] = []
    make_durable = workspace.results.make_durable
    monkeypatch.setattr(
        workspace.results,
        "make_durable",
        lambda name, segments: (order.append(f"results {sorted(segments)}"), make_durable(name, segments)),
    )
    index = ResultIndex(workspace.results, "fetcher-01", lambda: order.append("store"))
    for name in ("a.test", "b.test", "c.test"):
        index.since(name, Cursor())
    assert order == ["store", "results [1]", "results [1]", "results []"]
    writer.append(dump(page("https://b.test/2", "b.test")))
    index.since("b.test", Cursor())
    assert order[-2:] == ["store", "results [1]"], "more was written since"
    writer.close()


def test_an_index_sees_what_is_written_after_its_first_look(workspace: FileWorkspace) -> None:
    folder = workspace.layout.results_of("fetcher-01")
    writer = Writer(folder)
    writer.append(dump(page("https://a.test/1")))
    index = ResultIndex(workspace.results, "fetcher-01")
    assert len(index.since("a.test", Cursor()).done) == 1
    writer.append(dump(page("https://a.test/2")))
    assert len(index.since("a.test", Cursor()).done) == 2
    writer.close()


def test_requests_to_other_domains_are_not_counted_for_this_one(workspace: FileWorkspace) -> None:
    folder = workspace.layout.results_of("fetcher-01")
    writer = Writer(folder)
    ledger = (Exchange(0, 0, "GET", "a.test", 302, 1, "a.test"), Exchange(0, 9, "GET", "b.test", 200, 1, "b.test"))
    writer.append(dump(RobotsResult(1, "a.test", "a.test", "", "parsed", ledger=ledger)))
    writer.close()
    index = ResultIndex(workspace.results, "fetcher-01")
    assert [requests for _, _, requests in index.since("a.test", Cursor()).ledgered] == [1]
    assert index.since("b.test", Cursor()).ledgered == []


def test_a_crawl_delay_that_was_recorded_but_not_cached_is_kept_after_a_takeover(
    workspace: FileWorkspace,
) -> None:
    """The fetcher was killed between its result log and the cache of robots.txt."""
    before = GateFile(workspace.layout.gate_of("a.test"))
    before.try_enter(WISH)
    before.finish()
    before.close()
    dead = Writer(workspace.layout.results_of("fetcher-01"))
    ledger = (Exchange(0, 0, "GET", "a.test", 200, 1, "a.test"),)
    dead.append(dump(RobotsResult(1, "a.test", "a.test", "", "parsed", 200, "", 5.0, ledger=ledger)))
    dead.close()
    bookmark = Bookmark(Cursor(), "fetcher-01", Cursor())
    claim = workspace.claim("a.test")
    assert claim is not None
    gate, jobs = GateFile(workspace.layout.gate_of("a.test")), JobQueue(Reader(workspace.layout.jobs_of("a.test")))
    domain = LeasedDomain("a.test", claim, gate, jobs, bookmark)
    journal = Journal(workspace, "fetcher-02", 2, 1_000_000, lambda: None)
    assert Takeover(workspace, Config(), journal).take_over(domain)
    admission = gate.try_enter(WISH).admission
    assert gate.record.ended is not None
    assert admission == NotYet(gate.record.ended.mono_ns + 5_000_000_000)
    journal.close()
    domain.close().release()


def test_numbers_that_the_log_has_and_the_gate_lost_are_not_given_again(workspace: FileWorkspace) -> None:
    """The gate's last writes went with a power cut, or with an engine that crashed: of five requests it knows two."""
    before = GateFile(workspace.layout.gate_of("a.test"))
    for _ in range(2):
        assert isinstance(before.try_enter(EntryRequest(run=1, delay_ms=0, limit=1000)).admission, Open)
        before.finish(is_ledgered=True)
    before.close()
    dead = Writer(workspace.layout.results_of("fetcher-01"))
    ledger = tuple(Exchange(0, number, "GET", "a.test", 200, 1, "a.test", number) for number in (3, 5))
    dead.append(dump(PageResult(1, "k", "k", "a.test", "", "processed", ledger=ledger)))
    dead.close()
    claim = workspace.claim("a.test")
    assert claim is not None
    gate, jobs = GateFile(workspace.layout.gate_of("a.test")), JobQueue(Reader(workspace.layout.jobs_of("a.test")))
    domain = LeasedDomain("a.test", claim, gate, jobs, Bookmark(Cursor(), "fetcher-01", Cursor()))
    journal = Journal(workspace, "fetcher-02", 2, 1_000_000, lambda: None)
    assert Takeover(workspace, Config(), journal).take_over(domain)
    assert (gate.record.sent, gate.record.ledgered) == (5, 5)
    assert gate.try_enter(EntryRequest(run=1, delay_ms=0, limit=1000)).admission == Open(6)
    gate.finish()
    journal.close()
    domain.close().release()
    reported = [
        record.count
        for record, _ in read_records(workspace.results.reader("fetcher-02"), DomainEvent)
        if record.event == "lost-requests"
    ]
    assert reported == [1], "the fourth left and is in no ledger"
