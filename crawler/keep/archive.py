"""Visits before a date as compressed tables for cold storage, and such tables made a database again.

    pages.csv.gz       every visit, from the result logs; of runs whose results are gone, what the map still knows
    failures.csv.gz    the visits that failed, with the slug of their error
    figures.jsonl.gz   daily figures of these visits, and the figures of every run that began before the date
    archive.json       what the folder is; written last

An archive removes nothing: `prune` does, when the archive is made.
"""

from __future__ import annotations

import csv
import gzip
import io
import shutil
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import orjson

from crawler.database.archive_rows import figures_of_runs, visits_in_map
from crawler.database.archive_table import load_archive
from crawler.database.ingest_progress import results_kept_from
from crawler.model.archived import COLUMNS, FAILURE_COLUMNS, archived_visit, failure_of
from crawler.model.daily import date_of
from crawler.model.errors import SumiError, UsageError, sentence
from crawler.model.records import PageResult
from crawler.model.settings import Config
from crawler.model.urls import hash64
from crawler.workspace.atomic import OWNER_ONLY_FOLDER, write_atomically
from crawler.workspace.clock import now_text
from crawler.workspace.door import Unreachable
from crawler.workspace.opening import open_workspace
from crawler.workspace.reading import read_records

NAME = "archive.json"
PAGES, FAILURES, FIGURES = "pages.csv.gz", "failures.csv.gz", "figures.jsonl.gz"
TABLE = "archive.db"
_FORMAT = 1
_STATES = ("2xx", "3xx", "4xx", "5xx", "none")


class ArchiveError(SumiError):
    """The archive cannot be made or opened; the text says why."""


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive that was made."""

    before: str
    made_at: str
    first: str
    last: str
    pages: int
    failures: int
    figures: int
    v: int = _FORMAT


def make_archive(config: Config, before: str, folder: Path) -> Archive:
    """Archive all visits before then (RFC 3339, UTC) into a new folder. Raises SumiError."""
    if folder.exists():
        raise UsageError(f"{folder} exists already; name another folder with --into")
    scratch = folder.with_name(f".{folder.name}.new")
    try:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(OWNER_ONLY_FOLDER, parents=True)
        made = _write(config, before, scratch)
        write_atomically(scratch / NAME, orjson.dumps(asdict(made), option=orjson.OPT_INDENT_2))
        scratch.rename(folder)
    except Unreachable:
        raise
    except OSError as problem:
        raise ArchiveError(f"the archive cannot be written: {sentence(problem)}") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return made


def _write(config: Config, before: str, scratch: Path) -> Archive:
    days: dict[str, dict[str, int]] = {}
    pages = failures = 0
    first = last = ""
    with ExitStack() as stack:
        tables = [stack.enter_context(_compressed(scratch / name)) for name in (PAGES, FAILURES)]
        writers = [csv.writer(table) for table in tables]
        for writer, columns in zip(writers, (COLUMNS, FAILURE_COLUMNS), strict=True):
            writer.writerow(columns)
        for row in _visits(config, before):
            pages += 1
            writers[0].writerow([row[name] for name in COLUMNS])
            failure = failure_of(row)
            if failure is not None:
                failures += 1
                writers[1].writerow([failure[name] for name in FAILURE_COLUMNS])
            at = str(row["visited_at"])
            first, last = min(first or at, at), max(last, at)
            _count(days, row)
    if not pages:
        raise ArchiveError(f"there is no visit before {before} in {config.workspace} or {config.map_place}")
    figures = [
        *({"kind": "day", "date": date, **numbers} for date, numbers in sorted(days.items())),
        *({"kind": "run", **figures} for figures in figures_of_runs(config.map_place, before)),
    ]
    with _compressed(scratch / FIGURES) as lines:
        lines.writelines(orjson.dumps(figure).decode() + "\n" for figure in figures)
    return Archive(before, now_text(), first, last, pages, failures, len(figures))


def _visits(config: Config, before: str) -> Iterator[dict[str, object]]:
    """Every visit before then, each once: a kill may have left its result twice, or in the map and in a log."""
    seen: set[int] = set()
    for row in _found(config, before):
        identity = hash64(f"{row['run']} {row['url']}")
        if identity not in seen:
            seen.add(identity)
            yield row


def _found(config: Config, before: str) -> Iterator[dict[str, object]]:
    """The visits in the result logs, and those that only the map still knows."""
    results = open_workspace(config).results
    for writer in results.writers():
        reader = results.reader(writer)
        try:
            for result, _ in read_records(reader, PageResult):
                if result.at < before and not result.is_carried:
                    yield archived_visit(result)
        finally:
            reader.close()
    kept_from = results_kept_from(config.map_place)
    if kept_from is not None:
        yield from visits_in_map(config.map_place, before, kept_from)


def _count(days: dict[str, dict[str, int]], row: dict[str, object]) -> None:
    day = days.setdefault(date_of(str(row["visited_at"])), {"visits": 0, **dict.fromkeys(_STATES, 0), "bytes": 0})
    status = row["status_code"]
    day["visits"] += 1
    day[_STATES[status // 100 - 2] if isinstance(status, int) and 200 <= status < 600 else "none"] += 1
    day["bytes"] += row["bytes"] if isinstance(row["bytes"], int) else 0


def open_archive(folder: Path, into: Path | None) -> tuple[Path, dict[str, int]]:
    """Load an archive into tables of a read-only database; returns its path, and the rows of each table."""
    try:
        fields = orjson.loads((folder / NAME).read_bytes())
        if fields["v"] != _FORMAT:
            raise ArchiveError(f"{folder} is an archive of format {fields['v']!r}, and this program reads {_FORMAT}")
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{folder} is no archive: it has no {NAME}") from None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ArchiveError(f"the archive {folder} cannot be read: {sentence(problem)}") from None
    target = into or folder / TABLE
    if into is not None and into.exists():
        raise UsageError(f"{into} exists already; name another file with --into")
    try:
        counts = load_archive(
            target,
            _table(folder / PAGES, COLUMNS),
            _table(folder / FAILURES, FAILURE_COLUMNS),
            _lines(folder / FIGURES),
        )
    except (OSError, EOFError, ValueError, csv.Error, zlib.error) as problem:
        raise ArchiveError(f"the archive {folder} is damaged: {sentence(problem)}; use another copy of it") from None
    return target, counts


def _table(path: Path, columns: tuple[str, ...]) -> Iterator[list[str | None]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        if header != list(columns):
            raise ValueError(f"{path.name} has other columns")
        for row in rows:
            if len(row) != len(columns):
                raise ValueError(f"{path.name} has a row of {len(row)} columns")
            yield [text or None for text in row]


def _lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            orjson.loads(line)
            yield line.rstrip("\n")


def _compressed(path: Path) -> IO[str]:
    """A text file to be written; the same content is the same bytes."""
    return io.TextIOWrapper(gzip.GzipFile(path, "wb", mtime=0), encoding="utf-8", newline="")
