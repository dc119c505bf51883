"""Logs as rows, beyond the contract: writers that were replaced, answers that were lost, many at once."""

from __future__ import annotations

import threading

import pytest

from crawler.model.records import RunEvent, dump
from crawler.workspace.log import Damage
from crawler.workspace.postgres.engine_session import Fenced
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.reading import read_records
from ingest.upkeep.retention import drop_old_results
from tests.crawler.workspace.engine_opener import EngineOpener


def event(number: int) -> bytes:
    return dump(RunEvent(number, "2026-01-01T00:00:00.000Z", "started"))


def test_a_reader_that_tails_many_writers_misses_nothing(opener: EngineOpener) -> None:
    """Their transactions become visible in any order: a reader by one number for all would skip some."""
    names = [f"fetcher-{number:02d}" for number in range(1, 5)]

    def write(name: str) -> None:
        log = opener().results.writer(name, segment_bytes=2000, gathers=True)
        for number in range(1, 201):
            log.append(event(number))
            if number % 3 == 0:
                log.sync()
        log.close()

    threads = [threading.Thread(target=write, args=[name]) for name in names]
    for thread in threads:
        thread.start()
    results = opener().results
    readers = {name: results.reader(name) for name in names}
    found: dict[str, list[int]] = {name: [] for name in names}

    def read() -> None:
        for name, reader in readers.items():
            found[name] += [record.run for record, _ in read_records(reader, RunEvent)]

    while any(thread.is_alive() for thread in threads):
        read()
    read()
    assert found == {name: list(range(1, 201)) for name in names}


def test_a_writer_that_was_replaced_writes_no_more(opener: EngineOpener) -> None:
    old = opener().results.writer("fetcher-01", segment_bytes=1 << 20)
    old.append(event(1))
    new = opener().results.writer("fetcher-01", segment_bytes=1 << 20)
    new.append(event(2))
    with pytest.raises(Fenced):
        old.append(event(3))
    reader = opener().results.reader("fetcher-01")
    assert [record.run for record, _ in read_records(reader, RunEvent)] == [1, 2]


def test_lines_are_written_once_though_the_answer_to_their_commit_was_lost(workspace: EngineWorkspace) -> None:
    log = workspace.results.writer("fetcher-01", segment_bytes=100, gathers=True)
    log.append_all([event(1), event(2)])
    log.append(event(3))
    lines = list(log._lines)
    log.flush()
    log._lines = lines  # as if the connection had been lost between the commit and its answer
    log.sync()
    reader = workspace.results.reader("fetcher-01")
    assert [record.run for record, _ in read_records(reader, RunEvent)] == [1, 2, 3]


def test_what_gathers_is_seen_once_it_is_synced_and_before_a_robots_txt_is_kept(workspace: EngineWorkspace) -> None:
    log = workspace.results.writer("fetcher-01", segment_bytes=1 << 20, gathers=True)
    reader = workspace.results.reader("fetcher-01")
    log.append(event(1))
    assert reader.read() == []
    workspace.keep_robots("a.test", b"{}")
    assert len(reader.read()) == 1
    log.append(event(2))
    log.sync()
    assert len(reader.read()) == 1


def test_a_line_that_was_changed_in_the_engine_is_damage(workspace: EngineWorkspace) -> None:
    log = workspace.results.writer("fetcher-01", segment_bytes=1 << 20)
    for number in (1, 2, 3):
        log.append(event(number))
    workspace.session.execute(
        "UPDATE records SET body = set_byte(body, 20, 88)"
        " WHERE start = (SELECT min(start) FROM records WHERE start > 0)"
    )
    found: list[Damage] = []
    reader = workspace.results.reader("fetcher-01", on_damage=found.append)
    assert [record.run for record, _ in read_records(reader, RunEvent)] == [1, 3]
    assert [each.reason for each in found] == ["checksum does not match"]
    assert workspace.results.quarantine("fetcher-01", found[0])


def test_removed_segments_leave_no_row_behind_and_their_numbers_are_not_used_again(opener: EngineOpener) -> None:
    """`[spool] results` and `prune results` remove whole segments, oldest first; a writer's newest one stays."""
    results = opener().results
    for run in (1, 2, 3):
        log = opener().results.writer("fetcher-01", segment_bytes=1 << 20)
        log.append_all([event(run)] * 5)
        log.close()
    end = results.end("fetcher-01")
    assert drop_old_results(results, keep_from=3) == 2
    session = opener().session
    assert session.execute("SELECT segment, count(*) FROM records GROUP BY segment") == [(3, 5)]
    assert session.execute("SELECT number FROM segments") == [(3,)]
    assert results.end("fetcher-01") == end
    assert [record.run for record, _ in read_records(results.reader("fetcher-01"), RunEvent)] == [3] * 5
    assert drop_old_results(results, keep_from=9) == 0, "the newest stays"
    assert opener().results.writer("fetcher-01", segment_bytes=1 << 20).append(event(4)).segment == 4
