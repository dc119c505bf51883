"""The contract of the workspace door (`crawler/workspace/door.py`), over every implementation of it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.model.records import Job, PageResult, Release, RunEvent, dump
from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.door import RoleTaken, Workspace
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.log import BEGINNING, Cursor, LogReader
from crawler.workspace.reading import read_records
from tests.crawler.workspace.memory_workspace import MemoryWorkspace
from tests.places import ROOT

Opener = Callable[[], Workspace]  # every call is another process's view of one workspace
SMALL = 64  # bytes: a segment is full after one or two lines


@pytest.fixture(params=["files", "memory"])
def open_it(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    if request.param == "files":
        return lambda: FileWorkspace(tmp_path / "workspace")
    only = MemoryWorkspace()
    return lambda: only


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
    for log in (workspace.releases, workspace.feed):
        writer = log.writer(segment_bytes=SMALL)
        writer.append(event(1))
        late, recent = log.reader(), log.recent_reader()
        writer.append(event(2))
        assert runs_in(late) == [2]
        assert runs_in(recent)[-1] == 2
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
    workspace.save_bookmark("a.test", Bookmark(one.end, "fetcher-01", Cursor(1, 5)))
    assert not writer.is_worked_off("a.test")
    assert set(workspace.waiting_job_bytes()) == {"a.test"}
    workspace.save_bookmark("a.test", Bookmark(two.end), is_first=False)
    assert writer.is_worked_off("a.test")
    assert workspace.waiting_job_bytes() == {}


def test_a_bookmark_is_kept_whole_and_begins_at_the_beginning(open_it: Opener, workspace: Workspace) -> None:
    assert workspace.bookmark("a.test") == Bookmark()
    workspace.job_writer().write("a.test", jobs("a.test", "1"))
    kept = Bookmark(Cursor(3, 7), "fetcher-04", Cursor(2, 99))
    workspace.save_bookmark("a.test", kept)
    assert open_it().bookmark("a.test") == kept


def test_a_bookmark_of_jobs_that_are_gone_is_not_kept(workspace: Workspace) -> None:
    writer = workspace.job_writer()
    number = writer.write("a.test", jobs("a.test", "1"))
    writer.remove("a.test", number)
    writer.clean()
    workspace.save_bookmark("a.test", Bookmark(Cursor(3, 7)))
    assert workspace.bookmark("a.test") == Bookmark()
    assert workspace.domains_with_jobs() == []


def test_cleaning_spares_a_domain_that_somebody_holds(workspace: Workspace) -> None:
    writer = workspace.job_writer()
    number = writer.write("a.test", jobs("a.test", "1"))
    writer.remove("a.test", number)
    claim = workspace.claim("a.test")
    assert claim is not None
    writer.clean()
    workspace.save_bookmark("a.test", Bookmark(Cursor(3, 7)))
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


def test_heartbeats_and_documents_are_read_as_they_were_last_written(open_it: Opener, workspace: Workspace) -> None:
    assert workspace.heartbeats() == {} and workspace.document("run") is None
    workspace.beat("fetcher-01", b'{"n":1}')
    workspace.beat("fetcher-01", b'{"n":2}')
    workspace.write_document("run", b"one")
    workspace.write_document("run", b"two")
    assert open_it().heartbeats() == {"fetcher-01": b'{"n":2}'}
    assert open_it().document("run") == b"two"
    assert workspace.robots("a.test") is None


def test_moving_aside_leaves_an_empty_workspace(workspace: Workspace) -> None:
    assert workspace.move_aside("20260101", 60) is None
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
    from crawler.workspace.files.file_workspace import FileWorkspace
    workspace = FileWorkspace(Path(sys.argv[1]))
    held = [workspace.take_role("ingest"), workspace.claim("a.test"), workspace.slots(2)]
    held[2].acquire(2)
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
