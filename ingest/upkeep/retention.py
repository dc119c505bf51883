"""Delete result segments that the config no longer wants kept. Their results cannot be replayed any more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from crawler.model.records import Result
from crawler.workspace.door import ResultLogs
from crawler.workspace.log import Line
from crawler.workspace.reading import parse_lines


def drop_old_results(results: ResultLogs, keep_from: int) -> int:
    """Delete the segments that hold only results of runs before `keep_from`; returns their number.

    Runs follow one another in every log, so the last line of a segment tells. A writer's newest segment stays.
    """
    dropped = 0
    for writer in results.writers():
        for number in results.segments(writer)[:-1]:
            last = _last_run(results, writer, number)
            if last is None or last >= keep_from:
                break
            results.remove_segment(writer, number)
            dropped += 1
    return dropped


def _last_run(results: ResultLogs, writer: str, number: int) -> int | None:
    """The run of the last line of a segment; None if that line is no result."""
    last: Line | None = None
    for line in results.segment_lines(writer, number):
        last = line
    found: Iterator[tuple[Result, Line]] = parse_lines([last] if last else [], *get_args(Result))
    return next((result.run for result, _ in found), None)
