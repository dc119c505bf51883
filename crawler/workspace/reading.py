"""Records from logs: the one way from verified lines to typed records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from crawler.model.records import Record, RecordError, parse
from crawler.workspace.log import Line, LogReader

R = TypeVar("R", bound=Record)

OnBad = Callable[[Line, str], None]


def record_of(line: Line, *kinds: type[R]) -> R:
    """The record on a line. Raises RecordError if it holds none of these kinds."""
    record = parse(line.body)
    if not isinstance(record, kinds):
        raise RecordError(f"a {record.kind} record does not belong here")
    return record


def parse_lines(lines: Iterable[Line], *kinds: type[R], on_bad: OnBad | None = None) -> Iterator[tuple[R, Line]]:
    """The records of these kinds among the lines, each with its line.

    A line that holds none of these kinds is passed over; `on_bad` is told of it, with the reason.
    """
    for line in lines:
        try:
            record = record_of(line, *kinds)
        except RecordError as problem:
            if on_bad is not None:
                on_bad(line, str(problem))
        else:
            yield record, line


def read_records(
    reader: LogReader, *kinds: type[R], limit: int | None = None, on_bad: OnBad | None = None
) -> Iterator[tuple[R, Line]]:
    """The records of these kinds that are in the log now, at most `limit` lines of it, each with its line."""
    return parse_lines(reader if limit is None else reader.read(limit), *kinds, on_bad=on_bad)
