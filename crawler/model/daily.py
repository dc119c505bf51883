"""PURE. Daily figures, rolled up from details that are about to go.

Each row names the file that it was rolled up from: a prune that was cut off adds no row twice.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

VISITS_HEADER = b"date,visits,2xx,3xx,4xx,5xx,none,bytes,source\r\n"
METRICS_HEADER = b"date,metric,values,least,mean,most,last,source\r\n"
_NOT_MODIFIED = 304  # of a page whose size is known, but which was not sent
_CLASSES = ("2xx", "3xx", "4xx", "5xx", "none")


def visits_by_day(visits: Iterable[tuple[str, int | None, int]], source: str) -> bytes:
    """CSV rows of visits, each (time, status, bytes): how many a day, by class of status."""
    days: dict[str, list[int]] = {}
    for at, status, size in visits:
        day = days.setdefault(date_of(at), [0] * (len(_CLASSES) + 2))
        day[0] += 1
        day[1 + _class_of(status)] += 1
        day[-1] += size
    return _rows([date, *numbers, source] for date, numbers in sorted(days.items()))


def metrics_by_day(text: str, source: str) -> bytes:
    """CSV rows of a metrics file (`timestamp,metric,value`): least, mean, most and last value of each metric a day."""
    days: dict[tuple[str, str], list[float]] = {}
    for row in _read(text):
        try:
            days.setdefault((date_of(row["timestamp"]), row["metric"]), []).append(float(row["value"]))
        except (KeyError, ValueError, TypeError):
            continue  # a torn line at its end
    return _rows(
        [
            date,
            metric,
            len(values),
            *map(_number, (min(values), sum(values) / len(values), max(values), values[-1])),
            source,
        ]
        for (date, metric), values in sorted(days.items())
    )


def page_log_by_day(text: str, source: str) -> bytes:
    """CSV rows of a page log (`timestamp`, `http_status`, `content_bytes` among its columns)."""
    return visits_by_day(_logged(text), source)


def date_of(at: str) -> str:
    """The day of a time, in RFC 3339 or in seconds since 1970."""
    try:
        return datetime.fromtimestamp(float(at), UTC).date().isoformat()
    except (ValueError, OverflowError):
        return at[:10]


def _logged(text: str) -> Iterator[tuple[str, int | None, int]]:
    for row in _read(text):
        at = row.get("timestamp")
        if at:
            status = _whole(row.get("http_status"))
            yield at, status, 0 if status == _NOT_MODIFIED else _whole(row.get("content_bytes")) or 0


def _read(text: str) -> Iterator[dict[str, str]]:
    yield from csv.DictReader(io.StringIO(text, newline=""))


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _number(value: float) -> str:
    return f"{value:.6g}" if value != int(value) else str(int(value))


def _class_of(status: int | None) -> int:
    return status // 100 - 2 if status is not None and 200 <= status < 600 else 4


def _rows(rows: Iterable[list[object]]) -> bytes:
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue().encode()
