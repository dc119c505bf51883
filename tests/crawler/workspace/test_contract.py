"""The contract of the workspace door (`crawler/workspace/door.py`), over every implementation of it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.model.messages import NO_RETRIES, RetryCounts
from crawler.model.records import Closure, Job, PageResult, Release, RunEvent, dump
from crawler.pace.decisions import Admission, Busy, Closed, EntryRequest, NotYet, Open
from crawler.pace.gate_record import GateRecord, with_pause
from crawler.workspace.bookmarks import Bookmark, BookmarkMove
from crawler.workspace.clock import read_clock
from crawler.workspace.door import Gate, RoleTaken, Workspace
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.log import BEGINNING, Cursor, LogReader
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from crawler.workspace.reading import read_records
from tests.crawler.pace.clocks import MS, Clock
from tests.crawler.workspace.engine_opener import EngineOpener, EngineTestClock
from tests.crawler.workspace.memory_workspace import MemoryWorkspace
from tests.places import ROOT
from tests.postgres_server import clean_database

Opener = Callable[[], Workspace]  # every call is another process's view of one workspace
SMALL = 64  # bytes: a segment is full after one or two lines


@pytest.fixture(params=["files", "memory", "postgresql"])
def open_it(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    if request.param == "files":
        yield lambda: FileWorkspace(tmp_path / "workspace")
    elif request.param == "memory":
        only = MemoryWorkspace()
        yield lambda: only
    else:
        with clean_database(WORKSPACE) as url:
            opener = EngineOpener(url, tmp_path / "workspace")
            yield opener
            opener.close()


@pytest.fixture
def workspace(open_it: Opener) -> Workspace:
    made = open_it()
    made.prepare()
    return made


def event(number: int) -> bytes:
    return dump(RunEvent(number, "2026-01-01T00:00:00.000Z", "started"))


def runs_in(reader: LogReader) -> list[int]:
    return [record.run for record, _ in read_records(reader, RunEvent)]


# -- logs ---------------------------------------------------------------------------------------------------


def test_what_is_archived_is_read_with_the_rest(workspace: Workspace) -> None:
    writer = workspace.results.writer("fetcher-01", segment_bytes=SMALL)
    for number in range(1, 8):
        writer.append(event(number))
    results = workspace.results
    *old, newest = results.segments("fetcher-01")
    assert old
    lasts = [results.last_line("fetcher-01", number) for number in old]
    moved = list(results.archive(("fetcher-01", number) for number in (*old, newest)))
    assert moved in ([], [("fetcher-01", number) for number in old]), "nothing, or all but the newest"
    assert runs_in(results.reader("fetcher-01")) == [1, 2, 3, 4, 5, 6, 7]
    assert results.segments("fetcher-01") == [*old, newest]
    assert [list(results.segment_lines("fetcher-01", number))[-1] for number in old] == lasts
    assert [results.last_line("fetcher-01", number) for number in old] == lasts
    live = runs_in(results.reader("fetcher-01", is_live_only=True))
    assert live == runs_in(results.reader("fetcher-01"))[-len(live) :] and live[-1] == 7
    results.remove_segment("fetcher-01", old[0])
    assert results.segments("fetcher-01") == [*old[1:], newest]


def test_a_reader_returns_what_was_appended_in_order(workspace: Workspace) -> None:
    writer = workspace.results.writer("fetcher-01", segment_bytes=SMALL)
    for number in range(1, 8):
        writer.append(event(number))
    assert runs_in(workspace.results.reader("fetcher-01")) == [1, 2, 3, 4, 5, 6, 7]
    assert workspace.results.writers() == ["fetcher-01"]


def test_a_reader_goes_on_where_its_cursor_is(workspace: Workspace) -> None:
    writer = workspace.results.writer("fetcher-01", segment_bytes=SMALL)
    ends = [writer.append(event(number)) for number in range(1, 6)]
    assert ends == sorted(set(ends)), "cursors grow with every append"
    assert runs_in(workspace.results.reader("fetcher-01", ends[2])) == [4, 5]
    reader = workspace.results.reader("fetcher-01")
    assert [line.end for line in reader.read(2)] == ends[:2]
    assert reader.cursor == ends[1]
    reader.cursor = ends[0]
    assert runs_in(reader) == [2, 3, 4, 5]


def test_a_reader_at_the_end_sees_what_comes_later(workspace: Workspace) -> None:
    writer = workspace.results.writer("fetcher-01", segment_bytes=SMALL)
    writer.append(event(1))
    reader = workspace.results.reader("fetcher-01")
    assert runs_in(reader) == [1]
    assert (reader.read(), reader.unread_bytes()) == ([], 0)
    writer.append_all([event(2), event(3)])
    assert reader.unread_bytes() > 0
    assert runs_in(reader) == [2, 3]
    reader.sync()
    reader.close()


def test_a_new_writer_goes_on_after_the_old_one(open_it: Opener, workspace: Workspace) -> None:
    first = workspace.results.writer("fetcher-01", segment_bytes=1 << 20)
    last = first.append(event(1))
    first.close()
    second = open_it().results.writer("fetcher-01", segment_bytes=1 << 20)
    assert second.append(event(2)) > last
    second.sync()
    assert runs_in(workspace.results.reader("fetcher-01")) == [1, 2]
    assert workspace.results.end("fetcher-01") == second.end
    assert len(workspace.results.segments("fetcher-01")) == 2


def test_a_sync_that_was_begun_can_be_finished_while_others_append(workspace: Workspace) -> None:
    writer = workspace.results.writer("fetcher-01", segment_bytes=SMALL)
    writer.append(event(1))
    finish = writer.begin_sync()
    writer.append(event(2))
    finish()
    writer.close()
    writer.close()
    assert runs_in(workspace.results.reader("fetcher-01")) == [1, 2]


def test_what_lines_name_is_made_durable_before_the_lines_are(workspace: Workspace) -> None:
    """Whenever a writer syncs: when it is asked to, and when it closes."""
    calls: list[int] = []
    writer = workspace.results.writer("fetcher-01", segment_bytes=1 << 20, before_sync=lambda: calls.append(1))
    writer.append(event(1))
    assert calls == []
    writer.begin_sync()()
    assert calls == [1]
    writer.append(event(2))
    writer.close()
    assert calls == [1, 1]


def test_logs_of_different_writers_do_not_mix(workspace: Workspace) -> None:
    for number, name in enumerate(("fetcher-02", "fetcher-01", "scheduler"), 1):
        workspace.results.writer(name, segment_bytes=SMALL).append(event(number))
    assert workspace.results.writers() == ["fetcher-01", "fetcher-02", "scheduler"]
    assert runs_in(workspace.results.reader("fetcher-02")) == [1]


def test_an_empty_log_has_nothing_and_ends_at_its_beginning(workspace: Workspace) -> None:
    assert workspace.results.writers() == []
    assert workspace.results.end("fetcher-01") == BEGINNING
    assert workspace.results.segments("fetcher-01") == []
    assert runs_in(workspace.results.reader("fetcher-01")) == []
    assert list(workspace.results.segment_lines("fetcher-01", 1)) == []


def test_segments_are_read_and_removed_one_by_one(workspace: Workspace) -> None:
    writer = workspace.results.writer("fetcher-01", segment_bytes=SMALL)
    for number in range(1, 4):
        writer.append(event(number))
    results = workspace.results
    numbers = results.segments("fetcher-01")
    assert len(numbers) > 1
    lines = [line for number in numbers for line in results.segment_lines("fetcher-01", number)]
    assert [line.end for line in lines] == [line.end for line in results.reader("fetcher-01")]
    assert all(results.segment_bytes("fetcher-01", number) > 0 for number in numbers)
    results.make_durable("fetcher-01", [*numbers, 999])
    results.remove_segment("fetcher-01", numbers[0])
    assert results.segments("fetcher-01") == numbers[1:]
    assert results.segment_bytes("fetcher-01", numbers[0]) == 0
    assert runs_in(results.reader("fetcher-01"))[-1] == 3


def test_a_place_that_a_reader_stopped_at_is_a_line_end(workspace: Workspace) -> None:
    writer = workspace.results.writer("fetcher-01", segment_bytes=1 << 20)
    ends = [writer.append(event(number)) for number in range(1, 4)]
    assert all(workspace.results.is_line_end("fetcher-01", end) for end in (BEGINNING, *ends))
    beyond = Cursor(ends[-1].segment + 1, 0)
    assert not workspace.results.is_line_end("fetcher-01", beyond)


def test_a_line_of_another_kind_is_passed_over_and_reported(workspace: Workspace) -> None:
    writer = workspace.results.writer("fetcher-01", segment_bytes=SMALL)
    writer.append(dump(Release(1, "a.test", 3)))
    writer.append(event(7))
    bad: list[str] = []
    reader = workspace.results.reader("fetcher-01")
    found = read_records(reader, RunEvent, PageResult, on_bad=lambda line, reason: bad.append(reason))
    assert [record.run for record, _ in found] == [7]
    assert bad == ["a release record does not belong here"]


def test_quarantine_keeps_the_damage_and_says_where(workspace: Workspace) -> None:
    writer = workspace.results.writer("fetcher-01", segment_bytes=SMALL)
    writer.append(event(1))
    reader = workspace.results.reader("fetcher-01")
    (line,) = reader.read()
    damage = reader.damage(line, "no such kind")
    assert (damage.raw, damage.reason, damage.segment) == (line.body, "no such kind", line.end.segment)
    assert damage == workspace.results.segment_damage("fetcher-01", line, "no such kind")
    assert workspace.results.quarantine("fetcher-01", damage)


def test_hints_reach_whoever_reads_from_now_on(workspace: Workspace) -> None:
    for log in (workspace.releases, workspace.feed, workspace.orders):
        writer = log.writer(segment_bytes=SMALL)
        writer.append(event(1))
        late, recent = log.reader(), log.recent_reader()
        writer.append(event(2))
        assert runs_in(late) == [2]
        assert runs_in(recent)[-1] == 2
        assert runs_in(log.whole_reader()) == [1, 2]
        log.remove_before(writer.end.segment)
        writer.append(event(3))
        assert runs_in(late) == [3]


# -- jobs and bookmarks -------------------------------------------------------------------------------------


def jobs(domain: str, *names: str) -> list[Job]:
    return [Job(1, f"https://{domain}/{name}", f"https://{domain}/{name}", domain) for name in names]


def keys_in(reader: LogReader) -> list[str]:
    return [job.key.rpartition("/")[2] for job, _ in read_records(reader, Job)]


def test_released_jobs_are_read_window_after_window(workspace: Workspace) -> None:
    writer = workspace.job_writer()
    first = writer.write("a.test", jobs("a.test", "1", "2"))
    second = writer.write("a.test", jobs("a.test", "3"))
    assert second > first
    assert keys_in(workspace.jobs("a.test")) == ["1", "2", "3"]
    assert workspace.domains_with_jobs() == ["a.test"]
    assert keys_in(workspace.jobs("b.test")) == []


def test_window_numbers_are_never_used_twice(open_it: Opener, workspace: Workspace) -> None:
    first = workspace.job_writer()
    numbers = [first.write("a.test", jobs("a.test", "1")), first.write("b.test", jobs("b.test", "1"))]
    first.remove_all()
    again = open_it().job_writer()
    assert again.write("a.test", jobs("a.test", "2")) > max(numbers)


def test_windows_are_found_again_after_a_restart(open_it: Opener, workspace: Workspace) -> None:
    writer = workspace.job_writer()
    number = writer.write("a.test", jobs("a.test", "1", "2"))
    writer.write("b.test", jobs("b.test", "9"))
    found = {window.number: window for window in open_it().job_writer().windows()}
    assert [job.key for job in found[number].jobs] == ["https://a.test/1", "https://a.test/2"]
    found[number].remove()
    assert keys_in(workspace.jobs("a.test")) == []
    assert keys_in(workspace.jobs("b.test")) == ["9"]


def test_a_domain_is_worked_off_when_its_bookmark_passed_every_job(workspace: Workspace) -> None:
    writer = workspace.job_writer()
    writer.write("a.test", jobs("a.test", "1", "2"))
    assert not writer.is_worked_off("a.test")
    one, two = workspace.jobs("a.test").read()
    workspace.save_bookmarks([BookmarkMove("a.test", Bookmark(one.end, "fetcher-01", Cursor(1, 5)))])
    assert not writer.is_worked_off("a.test")
    assert set(workspace.waiting_job_bytes()) == {"a.test"}
    workspace.save_bookmarks([BookmarkMove("a.test", Bookmark(two.end), is_first=False)])
    assert writer.is_worked_off("a.test")
    assert workspace.waiting_job_bytes() == {}


def test_a_bookmark_is_kept_whole_and_begins_at_the_beginning(open_it: Opener, workspace: Workspace) -> None:
    assert workspace.bookmark("a.test") == Bookmark()
    workspace.job_writer().write("a.test", jobs("a.test", "1"))
    kept = Bookmark(Cursor(3, 7), "fetcher-04", Cursor(2, 99))
    workspace.save_bookmarks([BookmarkMove("a.test", kept)])
    assert open_it().bookmark("a.test") == kept


def test_bookmarks_go_with_the_results_that_they_passed(open_it: Opener, workspace: Workspace) -> None:
    for domain in ("a.test", "b.test"):
        workspace.job_writer().write(domain, jobs(domain, "1"))
    log = workspace.results.writer("fetcher-01", segment_bytes=1 << 20, gathers=True)
    first = Bookmark(Cursor(1, 7), "fetcher-01", log.append(event(1)))
    second = Bookmark(Cursor(2, 9), "fetcher-01", log.append(event(2)))
    moves = [BookmarkMove("a.test", first), BookmarkMove("b.test", second), BookmarkMove("gone.test", first)]
    workspace.save_bookmarks(moves, after=log.begin_sync())
    later = open_it()
    assert later.bookmarks(["a.test", "b.test", "gone.test"]) == {
        "a.test": first,
        "b.test": second,
        "gone.test": Bookmark(),
    }
    assert runs_in(later.results.reader("fetcher-01")) == [1, 2]
    workspace.save_bookmarks([BookmarkMove("a.test", second, is_first=False)], after=log.begin_sync())
    assert later.bookmark("a.test") == second, "there was nothing to sync"
    workspace.save_bookmarks([])


def test_no_bookmark_moves_past_results_that_cannot_be_synced(open_it: Opener, workspace: Workspace) -> None:
    def fail() -> None:
        raise OSError(5, "Input/output error")

    workspace.job_writer().write("a.test", jobs("a.test", "1"))
    log = workspace.results.writer("fetcher-01", segment_bytes=1 << 20, gathers=True, before_sync=fail)
    end = log.append(event(1))
    with pytest.raises(OSError, match="Input/output error"):
        workspace.save_bookmarks([BookmarkMove("a.test", Bookmark(Cursor(1, 7), "f", end))], after=log.begin_sync())
    assert open_it().bookmark("a.test") == Bookmark()


def test_a_bookmark_of_jobs_that_are_gone_is_not_kept(workspace: Workspace) -> None:
    writer = workspace.job_writer()
    number = writer.write("a.test", jobs("a.test", "1"))
    writer.remove("a.test", number)
    writer.clean()
    workspace.save_bookmarks([BookmarkMove("a.test", Bookmark(Cursor(3, 7)))])
    assert workspace.bookmark("a.test") == Bookmark()
    assert workspace.domains_with_jobs() == []


def test_cleaning_spares_a_domain_that_somebody_holds(workspace: Workspace) -> None:
    writer = workspace.job_writer()
    number = writer.write("a.test", jobs("a.test", "1"))
    writer.remove("a.test", number)
    claim = workspace.claim("a.test")
    assert claim is not None
    writer.clean()
    workspace.save_bookmarks([BookmarkMove("a.test", Bookmark(Cursor(3, 7)))])
    assert workspace.bookmark("a.test").jobs == Cursor(3, 7)
    claim.release()
    writer.clean()
    assert workspace.bookmark("a.test") == Bookmark()


@pytest.mark.parametrize("domain", ["xn--bcher-kva.test", "[::1]", "a" * 240 + ".test", ".odd", "a_b.test:8443"])
def test_any_host_can_have_jobs_a_claim_and_robots(workspace: Workspace, domain: str) -> None:
    workspace.job_writer().write(domain, jobs(domain, "1"))
    assert workspace.domains_with_jobs() == [domain]
    assert keys_in(workspace.jobs(domain)) == ["1"]
    claim = workspace.claim(domain)
    assert claim is not None and workspace.claim(domain) is None
    workspace.keep_robots(domain, b"x")
    assert workspace.robots(domain) == b"x"


# -- claims, roles, slots -----------------------------------------------------------------------------------


def test_a_domain_has_one_holder_at_a_time(open_it: Opener, workspace: Workspace) -> None:
    mine = workspace.claim("a.test")
    assert mine is not None
    assert open_it().claim("a.test") is None
    assert workspace.claim("b.test") is not None
    mine.release()
    mine.release()
    assert open_it().claim("a.test") is not None


def test_many_domains_are_claimed_and_released_together(open_it: Opener, workspace: Workspace) -> None:
    names = [f"d{number}.test" for number in range(50)]
    other = open_it()
    theirs = other.claim_all(names[:10])
    assert set(theirs) == set(names[:10])
    mine = workspace.claim_all(names)
    assert set(mine) == set(names[10:]), "what others hold stays theirs"
    assert workspace.claim_all(names) == other.claim_all(names) == {}
    mine["d10.test"].release()
    workspace.release_all([mine[name] for name in names[10:20]])
    again = other.claim_all(names)
    assert set(again) == set(names[10:20])
    assert all(again[name].token > mine[name].token for name in again)
    workspace.release_all([mine[name] for name in names[10:20]])
    assert workspace.claim_all(names) == {}, "a claim that was released is not given back again"
    assert workspace.claim_all([]) == {}


def test_every_claim_of_a_domain_has_a_greater_token_than_the_one_before(open_it: Opener, workspace: Workspace) -> None:
    tokens = []
    for _ in range(4):
        claim = open_it().claim("a.test")
        assert claim is not None
        tokens.append(claim.token)
        claim.release()
    assert tokens == sorted(set(tokens))


def test_a_role_is_taken_once_until_it_is_released(open_it: Opener, workspace: Workspace) -> None:
    role = workspace.take_role("ingest")
    other = open_it()
    assert other.is_role_taken("ingest") and not other.is_role_taken("scheduler")
    with pytest.raises(RoleTaken, match="another ingest is already at work"):
        other.take_role("ingest")
    assert "ingest" in other.roles()
    role.release()
    assert not other.is_role_taken("ingest")
    other.take_role("ingest").release()


def test_slots_are_shared_and_never_more_than_the_limit(open_it: Opener, workspace: Workspace) -> None:
    mine, theirs = workspace.slots(3), open_it().slots(3)
    mine.acquire(2)
    theirs.acquire(5)
    assert (mine.held, theirs.held) == (2, 1)
    mine.give_back(1)
    mine.give_back(-4)
    theirs.acquire(5)
    assert (mine.held, theirs.held) == (1, 2)
    theirs.close()
    mine.acquire(9)
    assert mine.held == 3


@settings(max_examples=50, deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 4)), max_size=30), limit=st.integers(1, 4))
def test_slots_never_exceed_the_limit_whatever_the_holders_do(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]], limit: int
) -> None:
    for workspace in (FileWorkspace(tmp_path_factory.mktemp("slots")), MemoryWorkspace()):
        workspace.prepare()
        holders = [workspace.slots(limit) for _ in range(3)]
        for holder, change in steps:
            holders[holder].acquire(change) if change > 0 else holders[holder].give_back(-change)
            assert sum(each.held for each in holders) <= limit
        for each in holders:
            each.close()


# -- gates --------------------------------------------------------------------------------------------------

DELAY = 1000
WISH = EntryRequest(run=1, delay_ms=DELAY, limit=100)
LIMITED = Closure("rate-limited", 3)
COUNTS = RetryCounts(job=7, retries=2, has_waited=True)


@pytest.fixture
def clock(open_it: Opener) -> Clock:
    return open_it.clock() if isinstance(open_it, EngineOpener) else Clock()


@pytest.fixture
def gate(workspace: Workspace, clock: Clock) -> Gate:
    return workspace.gate("a.test", clock)


def wish(gate: Gate, *, run: int = 1, limit: int = 100, crawl_delay_ms: int | None = None) -> Admission:
    """The gate's answer to a request."""
    request = EntryRequest(run=run, delay_ms=DELAY, limit=limit, crawl_delay_ms=crawl_delay_ms)
    return gate.try_enter(request).admission


def ask(gate: Gate, clock: Clock, took_ms: int = 10) -> None:
    """A whole request."""
    assert isinstance(wish(gate), Open)
    clock.pass_ms(took_ms)
    assert gate.finish() == clock.now


def after(clock: Clock, ms: int) -> NotYet:
    return NotYet(clock.now.mono_ns + ms * MS)


def test_a_gate_spaces_requests_and_counts_them(gate: Gate, clock: Clock) -> None:
    ask(gate, clock)
    assert wish(gate) == after(clock, DELAY)
    clock.pass_ms(DELAY - 1)
    assert wish(gate) == after(clock, 1)
    clock.pass_ms(1)
    ask(gate, clock)
    assert gate.read().sent == gate.record.sent == 2


def test_an_entry_names_its_moment(gate: Gate, clock: Clock) -> None:
    entry = gate.try_enter(WISH)
    assert (entry.admission, entry.at) == (Open(1), clock.now)


def test_gates_of_different_domains_do_not_know_each_other(workspace: Workspace, gate: Gate, clock: Clock) -> None:
    assert isinstance(wish(gate), Open)
    other = workspace.gate("b.test", clock)
    ask(other, clock)
    assert other.read().sent == 1


def test_another_holder_finds_the_gate_busy_during_a_request(open_it: Opener, gate: Gate, clock: Clock) -> None:
    theirs = open_it().gate("a.test", clock)
    assert isinstance(wish(gate), Open)
    assert wish(theirs) == Busy()
    assert theirs.read().is_in_flight
    gate.finish()
    assert wish(theirs) == after(clock, DELAY)
    clock.pass_ms(DELAY)
    ask(theirs, clock)
    assert wish(gate) == after(clock, DELAY), "what the other one sent counts for all"


def test_a_busy_gate_is_not_updated(open_it: Opener, gate: Gate, clock: Clock) -> None:
    theirs = open_it().gate("a.test", clock)
    assert isinstance(wish(gate), Open)
    assert not theirs.update(1, lambda record: replace(record, closes=LIMITED))
    gate.finish()
    assert gate.read().closes is None
    assert theirs.update(1, lambda record: replace(record, closes=LIMITED))
    assert gate.read().closes == theirs.record.closes == LIMITED


def test_the_budget_closes_the_domain_for_its_run(open_it: Opener, gate: Gate, clock: Clock) -> None:
    ask(gate, clock)
    gate.close()
    again = open_it().gate("a.test", clock)
    clock.pass_ms(DELAY)
    assert wish(again, limit=1) == Closed(Closure("request-limit", 1, 1))
    assert wish(again, run=2, limit=1) == Open(1)


def test_a_new_run_does_not_shorten_the_delay(gate: Gate, clock: Clock) -> None:
    ask(gate, clock)
    assert wish(gate, run=2) == after(clock, DELAY)


def test_a_closure_holds_for_the_run(open_it: Opener, gate: Gate, clock: Clock) -> None:
    assert gate.update(1, lambda record: replace(record, closes=LIMITED))
    gate.close()
    again = open_it().gate("a.test", clock)
    assert wish(again) == Closed(LIMITED)
    assert wish(again, run=2) == Open(1)


def test_an_adjustment_is_kept_even_if_no_request_may_leave(gate: Gate, clock: Clock) -> None:
    ask(gate, clock)
    entry = gate.try_enter(WISH, adjust=lambda record: replace(record, ledgered=record.sent))
    assert entry.admission == after(clock, DELAY)
    assert gate.read().ledgered == 1


@pytest.mark.parametrize("is_ledgered", [False, True])
def test_a_request_that_is_ledgered_elsewhere_is_counted_so(gate: Gate, clock: Clock, is_ledgered: bool) -> None:
    assert isinstance(wish(gate), Open)
    gate.finish(is_ledgered=is_ledgered)
    assert (gate.read().sent, gate.read().ledgered) == (1, is_ledgered)


def test_the_crawl_delay_of_a_host_outlives_the_holder_that_learned_it(
    open_it: Opener, gate: Gate, clock: Clock
) -> None:
    assert isinstance(wish(gate, crawl_delay_ms=5000), Open)
    gate.finish()
    gate.close()
    again = open_it().gate("a.test", clock)
    clock.pass_ms(4999)
    assert wish(again) == after(clock, 1)
    clock.pass_ms(1)
    assert isinstance(wish(again), Open)


def test_a_holder_that_is_gone_with_a_request_out_has_counted_it_and_costs_one_delay(
    open_it: Opener, gate: Gate, clock: Clock
) -> None:
    assert isinstance(wish(gate), Open)
    gate.close()
    heir = open_it().gate("a.test", clock)
    clock.pass_ms(9 * DELAY)
    noticed = after(clock, DELAY)
    assert wish(heir) == noticed
    clock.pass_ms(DELAY // 2)
    assert wish(heir) == noticed, "the delay does not begin again with every wish"
    clock.pass_ms(DELAY // 2)
    assert wish(heir) == Open(2)


def test_after_a_reboot_the_whole_delay_is_waited(open_it: Opener, gate: Gate, clock: Clock) -> None:
    ask(gate, clock)
    clock.pass_ms(9 * DELAY)
    gate.close()
    clock.reboot()
    again = open_it().gate("a.test", clock)
    assert wish(again) == after(clock, DELAY)
    clock.pass_ms(DELAY)
    assert wish(again) == Open(2)


def test_a_pause_of_a_visit_holds_for_every_holder_and_ends_with_the_next_request(
    open_it: Opener, gate: Gate, clock: Clock
) -> None:
    ask(gate, clock)
    gate.update(1, lambda record: with_pause(record, seconds=120, retry_counts=COUNTS))
    gate.close()
    other = open_it().gate("a.test", clock)
    assert wish(other) == after(clock, 120_000)
    clock.pass_ms(120_000)
    ask(other, clock)
    assert wish(other) == after(clock, DELAY)


def test_retry_counts_are_kept_until_another_run_begins(open_it: Opener, gate: Gate, clock: Clock) -> None:
    gate.update(1, lambda record: with_pause(record, seconds=0, retry_counts=COUNTS))
    assert isinstance(wish(gate), Open)
    theirs = open_it().gate("a.test", clock)
    assert theirs.read().retry_counts == COUNTS, "the holder may be killed right now"
    gate.finish()
    assert theirs.read().retry_counts == COUNTS
    clock.pass_ms(DELAY)
    assert isinstance(wish(gate, run=2), Open)
    assert theirs.read().retry_counts == NO_RETRIES


def test_moving_aside_keeps_the_clocks_of_recent_domains_and_begins_budgets_anew(
    workspace: Workspace, gate: Gate, clock: Clock
) -> None:
    ask(gate, clock)
    gate.close()
    workspace.write_document("run", b"{}")
    assert workspace.move_aside("20260102", 60)
    if isinstance(clock, EngineTestClock):
        clock.install()
    kept = workspace.gate("a.test", clock)
    assert (wish(kept), kept.read().sent) == (after(clock, DELAY), 0)
    kept.close()


gate_steps = st.lists(
    st.tuples(
        st.sampled_from(["enter", "finish", "update", "wait", "reopen", "reboot", "wall", "run"]),
        st.integers(0, 1),
        st.integers(0, 1500),
        st.none() | st.sampled_from([0, 300, 2500]),
    ),
    min_size=1,
    max_size=50,
)


@settings(max_examples=150, deadline=None)
@given(steps=gate_steps)
def test_all_gates_agree_and_keep_the_spacing_whatever_two_holders_do(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int, int | None]]
) -> None:
    """Two holders, deaths with a request out, reboots, jumps of the wall clock, new runs, pauses, in any order."""
    clock = Clock()
    workspaces: list[Workspace] = [FileWorkspace(tmp_path_factory.mktemp("gates")), MemoryWorkspace()]
    for workspace in workspaces:
        workspace.prepare()
    holders = [[workspace.gate("a.test", clock) for workspace in workspaces] for _ in range(2)]
    holding: int | None = None
    true_ms, last_end, run = 0, None, 1  # time that really passed, whatever the clocks say
    for step, number, ms, crawl_delay_ms in steps:
        gates = holders[number]
        if step == "wait":
            clock.pass_ms(ms)
            true_ms += ms
        elif step == "wall":
            clock.now = clock.now._replace(wall_ms=clock.now.wall_ms - 10**9)
        elif step == "run":
            run += 1
        elif step == "reboot" or (step == "reopen" and holding in (None, number)):
            for holder in range(2) if step == "reboot" else [number]:
                for gate in holders[holder]:
                    gate.close()
                holders[holder] = [workspace.gate("a.test", clock) for workspace in workspaces]
            if holding is not None:
                last_end, holding = true_ms, None
            if step == "reboot":
                clock.reboot()
        elif step == "finish" and holding == number:
            assert len({gate.finish() for gate in gates}) == 1
            last_end, holding = true_ms, None
        elif step == "update" and holding != number:

            def pause(record: GateRecord, seconds: float = ms / 1000) -> GateRecord:
                return with_pause(record, seconds=seconds, retry_counts=COUNTS)

            assert [gate.update(run, pause) for gate in gates] == [holding is None] * 2
        elif step == "enter" and holding != number:
            admissions = [wish(gate, run=run, limit=3, crawl_delay_ms=crawl_delay_ms) for gate in gates]
            assert admissions[0] == admissions[1]
            if holding is not None:
                assert admissions[0] == Busy()
            elif isinstance(admissions[0], Open):
                least = max(DELAY, crawl_delay_ms or 0)
                assert last_end is None or true_ms - last_end >= least
                holding = number
        assert gates[0].read() == gates[1].read()
        assert gates[0].read().sent <= 3
    for gate in [*holders[0], *holders[1]]:
        gate.close()


# -- flags, bells, heartbeats, documents --------------------------------------------------------------------


def test_a_flag_for_all_holds_for_every_stage_and_one_for_a_stage_for_it_alone(workspace: Workspace) -> None:
    assert not workspace.is_flagged("pause") and not workspace.is_flagged("pause", "fetcher")
    workspace.set_flag("pause", "fetcher")
    assert workspace.is_flagged("pause", "fetcher")
    assert not workspace.is_flagged("pause", "ingest") and not workspace.is_flagged("pause")
    workspace.set_flag("stop")
    assert workspace.is_flagged("stop", "ingest") and workspace.is_flagged("stop")
    assert workspace.flags() == ["pause.fetcher", "stop"]
    assert workspace.clear_flag("pause", "fetcher") and not workspace.clear_flag("pause", "fetcher")
    assert workspace.clear_flag("stop")
    assert workspace.flags() == []


def test_a_bell_ends_a_wait_and_is_heard_once(open_it: Opener, workspace: Workspace) -> None:
    bell = workspace.bell("ingest")
    other = open_it()
    assert other.bells() == ["ingest"]
    other.ring("ingest")
    other.ring("nobody")
    assert bell.wait(60)
    assert not bell.wait(0)
    bell.close()


def test_the_work_of_a_fetcher_is_seen_from_outside_while_it_lasts(open_it: Opener, workspace: Workspace) -> None:
    activity = workspace.activity("fetcher-01")
    assert open_it().busy_work() == []
    activity.assign(0, "a.test", 3, 2**63)
    activity.assign(2, "é" * 200, 3, 7)
    activity.enter_thread(2)
    activity.enter(0)
    thread, loop = open_it().busy_work()
    assert (thread.job, loop[2:]) == (7, ("a.test", 3, 2**63))
    assert thread.since_ns <= loop.since_ns <= time.monotonic_ns()
    assert {thread.pid, loop.pid} == {os.getpid()}
    activity.leave()
    activity.leave_thread(2)
    assert open_it().busy_work() == []
    activity.enter(0)
    again = workspace.activity("fetcher-01")
    assert open_it().busy_work() == [], "a new process of this name begins anew"
    activity.close()
    again.close()


def test_heartbeats_and_documents_are_read_as_they_were_last_written(open_it: Opener, workspace: Workspace) -> None:
    assert workspace.heartbeats() == {} and workspace.document("run") is None
    workspace.beat("fetcher-01", b'{"n":1}')
    workspace.beat("fetcher-01", b'{"n":2}')
    workspace.write_document("run", b"one")
    workspace.write_document("run", b"two")
    assert open_it().heartbeats() == {"fetcher-01": b'{"n":2}'}
    assert open_it().document("run") == b"two"
    assert open_it().heartbeat("fetcher-01") == b'{"n":2}' and workspace.heartbeat("fetcher-02") is None
    assert workspace.robots("a.test") is None


def test_who_glances_sees_what_was_written_when_it_looks_again(open_it: Opener, workspace: Workspace) -> None:
    other = open_it()
    assert (workspace.glance("run"), workspace.is_flagged("pause")) == (None, False)
    other.write_document("run", b"one")
    other.set_flag("pause")
    workspace.look_again()
    assert (workspace.glance("run"), workspace.is_flagged("pause")) == (b"one", True)
    workspace.write_document("run", b"two")
    workspace.clear_flag("pause")
    assert (workspace.glance("run"), workspace.is_flagged("pause")) == (b"two", False)
    other.write_document("run", b"three")
    until = time.monotonic() + 30
    while workspace.glance("run") != b"three":
        assert time.monotonic() < until


def test_unread_bytes_are_those_of_all_logs_after_the_positions(workspace: Workspace) -> None:
    ends = {}
    for name in ("fetcher-01", "fetcher-02"):
        writer = workspace.results.writer(name, segment_bytes=SMALL)
        for number in range(4):
            ends[name] = [*ends.get(name, []), writer.append(event(number))]
        writer.sync()
    whole = workspace.results.unread_bytes({})
    sizes = [
        workspace.results.segment_bytes(name, number)
        for name in workspace.results.writers()
        for number in workspace.results.segments(name)
    ]
    assert whole == sum(sizes) > 0
    assert workspace.results.unread_bytes({name: found[-1] for name, found in ends.items()}) == 0
    reader = workspace.results.reader("fetcher-01", ends["fetcher-01"][0])
    left = workspace.results.unread_bytes({"fetcher-01": ends["fetcher-01"][0], "fetcher-02": ends["fetcher-02"][-1]})
    assert left == reader.unread_bytes() < whole
    reader.close()
    assert workspace.results.unread_bytes({"fetcher-01": ends["fetcher-01"][-1]}) == sum(
        workspace.results.segment_bytes("fetcher-02", number) for number in workspace.results.segments("fetcher-02")
    )


def test_moving_aside_leaves_an_empty_workspace(workspace: Workspace) -> None:
    assert workspace.move_aside("20260101", 60) == []
    assert not workspace.is_aside("20260101")
    workspace.results.writer("fetcher-01", segment_bytes=SMALL).append(event(1))
    workspace.write_document("run", b"{}")
    assert workspace.move_aside("20260102", 60)
    assert workspace.is_aside("20260102")
    assert workspace.results.writers() == [] and workspace.document("run") is None
    assert workspace.exists()


# -- processes that die: only what outlives a process can show it -------------------------------------------

_HOLDER = """
    import sys
    from pathlib import Path
    from crawler.pace.decisions import EntryRequest
    from crawler.workspace.clock import read_clock
    from crawler.workspace.files.file_workspace import FileWorkspace
    workspace = FileWorkspace(Path(sys.argv[1]))
    held = [workspace.take_role("ingest"), workspace.claim("a.test"), workspace.slots(2)]
    held[2].acquire(2)
    gate = workspace.gate("a.test", read_clock)
    gate.try_enter(EntryRequest(run=1, delay_ms=1000, limit=9))
    print(held[1].token, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    FileWorkspace(tmp_path).prepare()
    code = [sys.executable, "-c", textwrap.dedent(_HOLDER), str(tmp_path)]
    process = subprocess.Popen(code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    yield process
    process.kill()
    process.communicate()


def test_everything_that_a_killed_process_held_is_free_again(tmp_path: Path, holder: subprocess.Popen[bytes]) -> None:
    assert holder.stdout is not None
    token = int(holder.stdout.readline())
    workspace = FileWorkspace(tmp_path)
    slots = workspace.slots(2)
    slots.acquire(2)
    assert (workspace.is_role_taken("ingest"), workspace.claim("a.test"), slots.held) == (True, None, 0)
    holder.kill()
    holder.wait()
    claim = workspace.claim("a.test")
    slots.acquire(2)
    assert claim is not None and claim.token > token
    assert (workspace.is_role_taken("ingest"), slots.held) == (False, 2)
    slots.close()


def test_a_killed_process_has_counted_its_request_and_costs_a_whole_delay(
    tmp_path: Path, holder: subprocess.Popen[bytes]
) -> None:
    """`kill -9` with a request on the wire: the kernel frees the gate, the record says what was out."""
    assert holder.stdout is not None and holder.stdout.readline()
    gate = FileWorkspace(tmp_path).gate("a.test", read_clock)
    assert wish(gate) == Busy()
    holder.kill()
    holder.wait()
    entry = gate.try_enter(WISH)
    assert entry.admission == NotYet(entry.at.mono_ns + DELAY * MS)
    assert gate.read().sent == 1
    gate.close()
