"""The spools alone draw the map again: under the same rules, or under others.

Replay reads every result segment, run by run and in the order of the records' clocks. The order is for speed (a
result read before the way to its page is known must be held); the map does not depend on it.
"""

from __future__ import annotations

import heapq
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from crawler.model.errors import SumiError
from crawler.model.records import Result, RunEvent
from crawler.model.settings import Config
from crawler.workspace.atomic import sync_file
from crawler.workspace.door import ResultLogs
from crawler.workspace.log import Cursor, Damage, Line
from crawler.workspace.opening import open_workspace
from crawler.workspace.reading import parse_lines
from ingest.apply import Mapper
from ingest.sqlite.store import Store, StoreError

BATCH = 2000
_RESULTS = get_args(Result)
Progress = Callable[[int, int], None]  # (bytes read, bytes in all)


class ReplayError(SumiError):
    """The replay cannot be done; the message says why."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How a map differs from an older one."""

    only_before: int
    only_now: int
    states: tuple[tuple[str, str, int], ...]  # (state before, state now, pages), most first
    depths: int  # pages whose least depth changed
    classes: tuple[tuple[str, str, int], ...]  # (class before, class now, domains)
    waiting: int

    def lines(self) -> list[str]:
        found = [f"pages only in the old map: {self.only_before:,}; only in the new one: {self.only_now:,}"]
        found += [f"pages that went from {was} to {now}: {count:,}" for was, now, count in self.states]
        if self.depths:
            found.append(f"pages with another depth: {self.depths:,}")
        found += [f"domains that went from {was} to {now}: {count:,}" for was, now, count in self.classes]
        found.append(f"pages still to be fetched under these rules: {self.waiting:,}")
        return found


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replay did."""

    results: int
    duplicates: int
    damaged: int
    pages: int
    waiting: int
    difference: Difference | None

    def lines(self) -> list[str]:
        found = [f"{self.results:,} results taken in, {self.pages:,} pages known, {self.waiting:,} still to be fetched"]
        if self.duplicates:
            found.append(f"{self.duplicates:,} results had been taken in already and changed nothing")
        if self.damaged:
            found.append(f"{self.damaged:,} broken lines were passed over")
        if self.difference is not None:
            found += self.difference.lines()
        return found


@dataclass(frozen=True, slots=True)
class Redrawn:
    """The live map was drawn anew under changed rules; the old one is at `kept`."""

    kept: Path
    report: ReplayReport


def replay(
    config: Config,
    into: Path,
    *,
    until: str | None = None,
    run: int | None = None,
    progress: Progress | None = None,
    compare: Path | None = None,
) -> ReplayReport:
    """Draw the map of the workspace's result spools into a new database.

    `until` leaves out what was recorded after that time (RFC 3339), `run` everything but that run. With `compare`,
    the report says how the new map differs from that one. The new map can be crawled on from.
    """
    if into.exists():
        raise ReplayError(f"{into} exists already; name a file that does not, replay never writes over a map")
    workspace = open_workspace(config.workspace)
    workspace.check_format()
    results = workspace.results
    writers = results.writers()
    if not writers:
        raise ReplayError(
            f"there are no result spools in {workspace.name}; has anything been crawled in this workspace?"
        )
    ends = {writer: results.end(writer) for writer in writers}
    scratch = into.with_name(f".{into.name}.replay-{os.getpid()}")
    try:
        report = _draw(config, results, scratch, ends, until, run, progress, compare)
        for suffix in ("-wal", "-shm"):
            scratch.with_name(scratch.name + suffix).unlink(missing_ok=True)
        sync_file(scratch)  # nothing of it has been made durable on the way
        scratch.replace(into)
    except BaseException:
        for suffix in ("", "-wal", "-shm", "-journal"):
            scratch.with_name(scratch.name + suffix).unlink(missing_ok=True)
        raise
    return report


def redraw(config: Config) -> Redrawn:
    """Draw the live map anew under the config as it is now. The old file is kept under a dated name."""
    path = config.output.database_path
    fresh = path.with_name(path.name + ".redrawn")
    fresh.unlink(missing_ok=True)
    try:
        report = replay(config, fresh, compare=path)
    except ReplayError as problem:
        raise StoreError(
            f"the rules changed since {path} was drawn, and it cannot be drawn anew ({problem}); "
            "put the old rules back, or start from nothing with --fresh"
        ) from None
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    kept = path.with_name(f"{path.name}.before-{stamp}")
    for suffix in ("-wal", "-shm", ""):
        source = path.with_name(path.name + suffix)
        if source.exists():
            source.replace(kept.with_name(kept.name + suffix))
    fresh.replace(path)
    return Redrawn(kept, report)


def _draw(
    config: Config,
    results: ResultLogs,
    path: Path,
    ends: dict[str, Cursor],
    until: str | None,
    run: int | None,
    progress: Progress | None,
    compare: Path | None,
) -> ReplayReport:
    store = Store(path, config)
    try:
        store.begin_bulk()
        mapper = Mapper(config, store)
        damaged: list[tuple[str, Damage]] = []
        total = sum(results.segment_bytes(writer, n) for writer in ends for n in results.segments(writer))
        batch: list[tuple[Result, bytes]] = []
        taken = read = 0
        for result, line in _in_order(results, list(ends), damaged):
            read += len(line) + 1
            if (until is not None and result.at > until) or (run is not None and result.run != run):
                continue
            batch.append((result, line))
            if len(batch) >= BATCH:
                mapper.take(batch)
                mapper.commit()
                taken += len(batch)
                batch = []
                if progress is not None:
                    progress(read, total)
        mapper.take(batch)
        store.changes.positions.update(ends)
        store.changes.damage.extend(damaged)
        mapper.commit()
        if store.counts["frontier"]:
            # These rules want more than was fetched: a run that was over is not, and can be resumed.
            store.db.execute("UPDATE runs SET status = 'interrupted' WHERE id = ?", (mapper.run,))
        if progress is not None:
            progress(total, total)
        store.end_bulk()
        difference = _compare(store.db, compare) if compare is not None and compare.exists() else None
        return ReplayReport(
            taken + len(batch),
            mapper.duplicates,
            len(damaged),
            store.counts["known"],
            store.counts["frontier"],
            difference,
        )
    finally:
        store.close()


Key = tuple[int, bool, str]  # run, is it the word that the run is finished, clock


def _in_order(
    results: ResultLogs, writers: list[str], damaged: list[tuple[str, Damage]]
) -> Iterator[tuple[Result, bytes]]:
    """Every result of every segment, by run and clock; the word that a run is finished after all else of it."""
    streams = [_stream(results, writer, damaged) for writer in writers]
    for _, result, line in heapq.merge(*streams, key=lambda item: item[0]):
        yield result, line


def _stream(results: ResultLogs, writer: str, damaged: list[tuple[str, Damage]]) -> Iterator[tuple[Key, Result, bytes]]:
    """One writer's results. Segments are ordered by their first line: copies may bear any number."""
    latest: Key = (0, False, "")
    numbers = results.segments(writer)
    for _, number in sorted((_first_key(results, writer, number), number) for number in numbers):
        for record, line in _segment(results, writer, number, damaged):
            key = (record.run, isinstance(record, RunEvent) and record.event == "finished", record.at)
            latest = max(latest, key)  # a clock set back must not upset the merge
            yield latest, record, line


def _first_key(results: ResultLogs, writer: str, number: int) -> tuple[int, str]:
    for record, _ in _segment(results, writer, number, []):
        return record.run, record.at
    return 0, ""


def _segment(
    results: ResultLogs, writer: str, number: int, damaged: list[tuple[str, Damage]]
) -> Iterator[tuple[Result, bytes]]:
    def note_bad_line(line: Line, reason: str) -> None:
        damaged.append((writer, results.segment_damage(writer, line, reason)))

    lines = results.segment_lines(writer, number, lambda damage: damaged.append((writer, damage)))
    records: Iterator[tuple[Result, Line]] = parse_lines(lines, *_RESULTS, on_bad=note_bad_line)
    for record, line in records:
        yield record, line.body


def _compare(db: sqlite3.Connection, other: Path) -> Difference:
    """How the map in `db` differs from the one in `other`."""
    db.execute("ATTACH DATABASE ? AS old", (str(other),))
    try:

        def first(sql: str) -> int:
            return int(db.execute(sql).fetchone()[0])

        same = "main.pages n JOIN old.pages o ON o.url_hash = n.url_hash AND o.url = n.url"
        shared = first(f"SELECT count(*) FROM {same}")
        states = db.execute(
            f"SELECT o.state, n.state, count(*) AS c FROM {same} WHERE o.state <> n.state"
            " GROUP BY 1, 2 ORDER BY c DESC, 1, 2"
        ).fetchall()
        classes = db.execute(
            "SELECT o.class, n.class, count(*) AS c FROM main.domain_states n JOIN old.domain_states o USING (domain)"
            " WHERE o.class <> n.class GROUP BY 1, 2 ORDER BY c DESC, 1, 2"
        ).fetchall()
        return Difference(
            first("SELECT count(*) FROM old.pages") - shared,
            first("SELECT count(*) FROM main.pages") - shared,
            tuple(states),
            first(f"SELECT count(*) FROM {same} WHERE o.depth IS NOT n.depth"),
            tuple(classes),
            first("SELECT count(*) FROM main.frontier"),
        )
    finally:
        db.execute("DETACH DATABASE old")
