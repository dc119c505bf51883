"""Let go of result segments that the config no longer wants kept. What is gone cannot be replayed."""

from __future__ import annotations

from pathlib import Path

from crawler.model.records import RecordError, Result, parse
from crawler.workspace.layout import Workspace
from crawler.workspace.spool import Cursor, Reader, segment_path, segments


def drop_old_results(workspace: Workspace, keep_from: int) -> int:
    """Delete the segments that hold only results of runs before `keep_from`; how many that were.

    Runs follow one another in every spool, so the last line of a segment tells. A writer's newest segment stays.
    """
    dropped = 0
    for writer in workspace.result_writers():
        folder = workspace.results_of(writer)
        numbers = segments(folder)
        for number in numbers[:-1]:
            last = _last_run(folder, number)
            if last is None or last >= keep_from:
                break
            segment_path(folder, number).unlink()
            dropped += 1
    return dropped


def _last_run(folder: Path, number: int) -> int | None:
    reader = Reader(folder, Cursor(number, 0))
    last = None
    try:
        while lines := reader.read(500):
            mine = [line for line in lines if line.end.segment == number]
            if mine:
                last = _run_of(mine[-1].body)
            if len(mine) < len(lines):
                break
        return last
    finally:
        reader.close()


def _run_of(line: bytes) -> int | None:
    try:
        record = parse(line)
    except RecordError:
        return None
    return record.run if isinstance(record, Result) else None
