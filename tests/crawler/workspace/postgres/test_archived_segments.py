"""Segments that leave the engine for files, and are read with the rest as one log."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from crawler.model.records import RunEvent, dump
from crawler.pace.decisions import EntryRequest
from crawler.pace.gate_record import LedgerMark
from crawler.workspace.bookmarks import Bookmark, BookmarkMove
from crawler.workspace.clock import read_clock
from crawler.workspace.door import ArchiveAway, Workspace
from crawler.workspace.files.spool import segment_lines
from crawler.workspace.log import BEGINNING, Cursor, Damage, Line, LogError
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from tests.crawler.workspace.engine_opener import EngineOpener
from tests.places import ROOT

WRITER = "fetcher-01"
SMALL = 200  # bytes: two lines a segment


def event(number: int) -> bytes:
    return dump(RunEvent(number, "2026-01-01T00:00:00.000Z", "started"))


def fill(workspace: Workspace, lines: int = 9, name: str = WRITER) -> list[Line]:
    log = workspace.results.writer(name, segment_bytes=SMALL)
    for number in range(lines):
        log.append(event(number))
    log.close()
    return whole(workspace, name)


def whole(workspace: Workspace, name: str = WRITER) -> list[Line]:
    return list(workspace.results.reader(name))


def archive(workspace: Workspace, *numbers: int) -> list[int]:
    return [number for _, number in workspace.results.archive((WRITER, number) for number in numbers)]


def rows_of(workspace: EngineWorkspace) -> set[int]:
    return {segment for (segment,) in workspace.session.execute("SELECT DISTINCT segment FROM records")}


def files_of(workspace: EngineWorkspace) -> list[Path]:
    return sorted((workspace.layout.root / "archive" / "results").glob("*/*/*.jsonl"))


@pytest.fixture
def elsewhere(opener: EngineOpener, tmp_path: Path) -> Iterator[EngineWorkspace]:
    """The same workspace on a machine that does not have the archive."""
    made = EngineWorkspace(tmp_path / "elsewhere", opener.url)
    yield made
    made.close()


def hide(workspace: EngineWorkspace) -> None:
    """Let the archive be on another machine."""
    folder = workspace.layout.root / "archive" / "results"
    folder.rename(folder.with_name("away"))


def test_archive_and_engine_are_one_log_from_every_place_in_it(workspace: EngineWorkspace) -> None:
    before = fill(workspace)
    results = workspace.results
    ends, sizes = results.end(WRITER), [results.segment_bytes(WRITER, n) for n in results.segments(WRITER)]
    unread = results.reader(WRITER, before[2].end).unread_bytes()
    assert archive(workspace, 1, 2, 4, 5) == [1, 2, 4] and rows_of(workspace) == {3, 5}, "the newest one stays"
    assert archive(workspace, 1, 2, 4) == [], "they are archived already"
    for place in (BEGINNING, *(line.end for line in before)):
        after = [line for line in before if line.end > place]
        assert list(results.reader(WRITER, place)) == after
        one_by_one = results.reader(WRITER, place)
        assert [line for _ in after for line in one_by_one.read(1)] == after and one_by_one.read() == []
        one_by_one.cursor = place
        assert one_by_one.read() == after, "its owner has set it back"
        assert results.is_line_end(WRITER, place)
        one_by_one.close()
    for number in results.segments(WRITER):
        of_it = [line for line in before if line.end.segment == number]
        assert list(results.segment_lines(WRITER, number)) == of_it
        last = results.last_line(WRITER, number)
        assert last == of_it[-1]
    assert results.end(WRITER) == ends and results.reader(WRITER, before[2].end).unread_bytes() == unread
    assert [results.segment_bytes(WRITER, n) for n in results.segments(WRITER)] == sizes
    fill(workspace, 2)
    assert whole(workspace)[: len(before)] == before and len(whole(workspace)) == 11, "its writer goes on"


_numbers = count(10)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_reader_misses_nothing_while_segments_are_archived(workspace: EngineWorkspace, data: st.DataObject) -> None:
    name = f"fetcher-{next(_numbers)}"
    before = fill(workspace, data.draw(st.integers(3, 14)), name)
    segments = workspace.results.segments(name)[:-1]
    reader = workspace.results.reader(name)
    seen: list[Line] = []
    while len(seen) < len(before):
        for number in data.draw(st.lists(st.sampled_from(segments), max_size=3)) if segments else ():
            list(workspace.results.archive([(name, number)]))
        lines = reader.read(data.draw(st.integers(1, 5)))
        assert lines
        seen += lines
    assert seen == before and reader.read() == []
    reader.close()


def test_an_archived_segment_is_a_file_as_a_workspace_of_files_has_it(workspace: EngineWorkspace) -> None:
    before = fill(workspace)
    archive(workspace, 1)
    (path,) = files_of(workspace)
    assert path.name == "000000000001.jsonl" and path.parent.name == WRITER
    assert path.stat().st_size == workspace.results.segment_bytes(WRITER, 1)
    assert list(segment_lines(path.parent, 1)) == [line for line in before if line.end.segment == 1]


_KILLED = """
    import os, signal, sys
    from pathlib import Path
    from crawler.workspace import atomic
    from crawler.workspace.postgres import archived_segments
    from crawler.workspace.postgres.engine_workspace import EngineWorkspace

    def die(*_, **__):
        os.kill(os.getpid(), signal.SIGKILL)

    root, url, step = sys.argv[1:]
    note = archived_segments._note
    if step == "while it is written":
        def pieces(self, before=archived_segments._Copy.pieces):
            yield next(iter(before(self)))
            die()
        archived_segments._Copy.pieces = pieces
    elif step == "before it has its name":
        Path.replace = die
    elif step == "before it is noted":
        archived_segments._note = die
    elif step == "before the commit":
        def noted(connection, *rest):
            with connection.transaction():
                note(connection, *rest)
                die()
        archived_segments._note = noted
    else:
        def noted(*given):
            note(*given)
            die()
        archived_segments._note = noted
    list(EngineWorkspace(Path(root), url).results.archive([("fetcher-01", 1), ("fetcher-01", 2)]))
"""


@pytest.mark.parametrize(
    ("step", "is_noted"),
    [
        ("while it is written", False),
        ("before it has its name", False),
        ("before it is noted", False),
        ("before the commit", False),
        ("after the commit", True),
    ],
)
def test_a_kill_at_any_step_loses_no_line_and_doubles_none(
    workspace: EngineWorkspace, opener: EngineOpener, step: str, is_noted: bool
) -> None:
    before = fill(workspace)
    words = [sys.executable, "-c", textwrap.dedent(_KILLED), str(workspace.layout.root), opener.url, step]
    died = subprocess.run(words, cwd=ROOT, check=False, timeout=60, capture_output=True, text=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert (1 not in rows_of(workspace)) == is_noted
    assert whole(workspace) == before
    assert archive(workspace, 1, 2) == ([2] if is_noted else [1, 2])
    assert whole(workspace) == before
    assert len(files_of(workspace)) == 2
    left = [path for path in (workspace.layout.root / "archive").rglob("*") if path.is_file() and path.suffix == ".tmp"]
    assert left == [], "the next one has cleaned up"


def test_without_the_archive_live_readers_go_on_and_others_say_where_it_is(
    workspace: EngineWorkspace, elsewhere: EngineWorkspace
) -> None:
    before = fill(workspace)
    archive(workspace, 1, 2)
    assert whole(elsewhere) == before, "its folder is where the engine says: this is the same machine"
    hide(workspace)
    with pytest.raises(ArchiveAway, match=r"segment 1 of the results of fetcher-01 left .* bring the folder"):
        whole(elsewhere)
    with pytest.raises(ArchiveAway, match="segment 2"):
        list(elsewhere.results.segment_lines(WRITER, 2))
    live = [line for line in before if line.end.segment > 2]
    assert list(elsewhere.results.reader(WRITER, is_live_only=True)) == live
    second = [line for line in before if line.end.segment == 2]
    assert list(elsewhere.results.reader(WRITER, second[-1].end)) == live, "it has read all of the archive"
    assert elsewhere.results.last_line(WRITER, 2) == second[-1]
    (elsewhere.layout.root / "archive").mkdir(parents=True)
    (workspace.layout.root / "archive" / "away").rename(elsewhere.layout.root / "archive" / "results")
    assert whole(elsewhere) == before, "somebody has brought it"


def test_a_file_that_is_not_whole_is_not_read(workspace: EngineWorkspace) -> None:
    fill(workspace)
    archive(workspace, 1)
    (path,) = files_of(workspace)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ArchiveAway, match="not there \\(whole\\)"):
        whole(workspace)


def test_damage_stays_damage_and_all_others_keep_their_places(workspace: EngineWorkspace) -> None:
    before = fill(workspace)
    change = "UPDATE records SET body = %s WHERE segment = %s AND start = 0"
    workspace.session.execute(change, (b"longer " * 100, 1))
    workspace.session.execute(change, (b"short", 2))
    live = [line for line in before if line.end not in (before[0].end, before[2].end)]
    assert [each.body for each in whole(workspace)] == [line.body for line in live]
    assert archive(workspace, 1, 2) == [1, 2]
    found: list[Damage] = []
    assert list(workspace.results.reader(WRITER, on_damage=found.append)) == live
    assert {(damage.segment, damage.offset) for damage in found} == {(1, 0), (2, 0)}


def test_a_segment_that_a_takeover_may_ask_for_stays_in_the_engine(workspace: EngineWorkspace) -> None:
    fill(workspace)
    gate = workspace.gate("a.test", read_clock)
    gate.try_enter(EntryRequest(run=1, delay_ms=0, limit=9))
    gate.finish()
    gate.update(1, lambda record: replace(record, mark=LedgerMark(1, 2, 0)))
    assert archive(workspace, 1, 2, 3) == [1], "the ledger of its request may be after the mark"
    gate.update(1, lambda record: replace(record, mark=LedgerMark()))
    workspace.job_writer().write("a.test", [])
    workspace.save_bookmarks([BookmarkMove("a.test", Bookmark(Cursor(1, 0), WRITER, Cursor(3, 0)))])
    assert archive(workspace, 2, 3) == [2], "or after its bookmark"
    gate.update(1, lambda record: replace(record, ledgered=1))
    assert archive(workspace, 3) == [3]
    gate.close()


def test_a_segment_that_is_removed_leaves_no_file_behind(workspace: EngineWorkspace) -> None:
    before = fill(workspace)
    archive(workspace, 1, 2)
    workspace.results.remove_segment(WRITER, 1)
    assert [path.name for path in files_of(workspace)] == ["000000000002.jsonl"]
    assert workspace.results.segments(WRITER) == [2, 3, 4, 5]
    assert whole(workspace) == [line for line in before if line.end.segment > 1]


def test_a_crawl_that_was_moved_aside_keeps_its_archive(workspace: EngineWorkspace) -> None:
    fill(workspace)
    archive(workspace, 1)
    (first,) = files_of(workspace)
    content = first.read_bytes()
    workspace.move_aside("20260101-000000", 0)
    before = fill(workspace, 5)
    archive(workspace, 1)
    assert first.read_bytes() == content and len(files_of(workspace)) == 2
    assert whole(workspace) == before


def test_an_archive_that_cannot_be_written_leaves_all_in_the_engine(workspace: EngineWorkspace) -> None:
    before = fill(workspace)
    folder = workspace.layout.root / "archive"
    folder.write_bytes(b"")
    with pytest.raises(LogError, match="the results stay in the engine"):
        archive(workspace, 1)
    assert whole(workspace) == before and 1 in rows_of(workspace)
