"""Result segments that the config wants nowhere any more, or not in the engine any more.

What is deleted cannot be replayed. What goes to the archive can, where the archive is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from crawler.model.records import PageResult, Result
from crawler.workspace.door import ResultLogs
from crawler.workspace.log import BEGINNING, Cursor, Line
from crawler.workspace.reading import parse_lines


def old_segments(results: ResultLogs, keep_from: int) -> list[tuple[str, int]]:
    """The (writer, number) of segments that hold only results of runs before `keep_from`.

    Runs follow one another in every log, so the last line of a segment tells. A writer's newest segment stays.
    """
    found = []
    for writer in results.writers():
        for number in results.segments(writer)[:-1]:
            last = _last_run(results, writer, number)
            if last is None or last >= keep_from:
                break
            found.append((writer, number))
    return found


def drop_old_results(results: ResultLogs, keep_from: int) -> int:
    """Delete these segments; returns their number."""
    segments = old_segments(results, keep_from)
    for writer, number in segments:
        results.remove_segment(writer, number)
    return len(segments)


def archive_old_results(
    results: ResultLogs, keep_from: int, positions: Mapping[str, Cursor]
) -> Iterator[tuple[str, int]]:
    """Move the segments to the archive that hold only results of runs before `keep_from`, which the map has applied.

    Returns those moved, one by one. `positions` are the map's places in the logs. Raises LogError.
    """
    applied = [
        (writer, number)
        for writer, number in old_segments(results, keep_from)
        if number < positions.get(writer, BEGINNING).segment
    ]
    return results.archive(applied)


def visits_of(results: ResultLogs, writer: str, number: int) -> Iterator[tuple[str, int | None, int]]:
    """Time, status and bytes of every visit in a segment, for the daily figures."""
    lines: Iterator[tuple[PageResult, Line]] = parse_lines(results.segment_lines(writer, number), PageResult)
    for result, _ in lines:
        if not result.is_carried:
            yield result.at, result.last_status, result.bytes_sent


def _last_run(results: ResultLogs, writer: str, number: int) -> int | None:
    """The run of the last line of a segment; None if that line is no result."""
    last = results.last_line(writer, number)
    found: Iterator[tuple[Result, Line]] = parse_lines([last] if last else [], *get_args(Result))
    return next((result.run for result, _ in found), None)
