"""Rebuild the map from the result spools alone, under the same rules or under others.

Replay reads every result segment, run by run and in the order of the records' clocks. The order is for speed (a
result read before the path to its page is known must be held); the map does not depend on it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import get_args

from crawler.database.map_errors import StoreError
from crawler.database.presence import is_there
from crawler.model.errors import SumiError
from crawler.model.map_place import EngineMap, MapPlace
from crawler.model.page_claims import MOST_CHARACTERS, longest_key, weight_of
from crawler.model.records import PageResult, Result, RunEvent, dump
from crawler.model.settings import Config
from crawler.workspace.door import ArchiveAway, LogFolder, ResultLogs, Workspace
from crawler.workspace.log import Cursor, Damage, Line
from crawler.workspace.opening import open_workspace
from crawler.workspace.reading import parse_lines
from crawler.workspace.runs import recorded_runs
from ingest import whole_maps
from ingest.apply import MapUpdater
from ingest.page_log import PageLog, redrawn_folder
from ingest.writing.store import Difference, Store

BATCH = 2000
CHARACTERS = 8 * MOST_CHARACTERS  # of addresses in a batch
_RESULTS = get_args(Result)
Progress = Callable[[int, int], None]  # (bytes read, bytes in all)
Renew = Callable[[PageResult], PageResult]  # the result of a visit as it would be today


class ReplayError(SumiError):
    """The replay cannot be done; the message says why."""


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """The outcome of a replay."""

    results: int
    duplicates: int
    damaged: int
    pages: int
    waiting: int
    difference: Difference | None

    def lines(self) -> list[str]:
        found = [f"{self.results:,} results applied, {self.pages:,} pages known, {self.waiting:,} still to be fetched"]
        if self.duplicates:
            found.append(f"{self.duplicates:,} results had been applied already and changed nothing")
        if self.damaged:
            found.append(f"{self.damaged:,} broken lines were skipped")
        if self.difference is not None:
            found += self.difference.lines()
        return found


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The live map was rebuilt under changed rules; the old one is at `kept`."""

    kept: MapPlace
    report: ReplayReport


def replay(
    config: Config,
    into: MapPlace,
    *,
    until: str | None = None,
    run: int | None = None,
    progress: Progress | None = None,
    compare: MapPlace | None = None,
    logs: LogFolder | None = None,
    is_redrawn: bool = False,
    renew: Renew | None = None,
) -> ReplayReport:
    """Build the map of the workspace's result spools in a new database.

    `logs`: write the page logs that the config asks for there. `is_redrawn`: both will take the place of others.
    `until` leaves out results recorded after that time (RFC 3339), `run` those of all other runs. With `compare`, the
    report lists the differences from that map. `renew` changes the results of visits before they are applied. A crawl
    can go on from the new map.
    """
    if whole_maps.exists(into):
        raise ReplayError(f"{into} exists already; name another place, replay never overwrites a map")
    workspace = open_workspace(config)
    workspace.check_format()
    results = workspace.results
    writers = results.writers()
    if not writers:
        raise ReplayError(
            f"there are no result spools in {workspace.name}; has anything been crawled in this workspace?"
        )
    ends = {writer: results.end(writer) for writer in writers}
    with whole_maps.scratch_of(into) as scratch:
        report = _build(config, workspace, scratch, ends, until, run, progress, compare, logs, is_redrawn, renew)
        whole_maps.put_in_place(scratch, into)
    return report


def rebuild(config: Config) -> Rebuilt:
    """Rebuild the live map under the config as it is now. The old file is kept under a dated name."""
    place = config.map_place
    fresh = place.beside("redrawn") if isinstance(place, EngineMap) else place.with_name(place.name + ".redrawn")
    whole_maps.discard(fresh)
    try:
        logs = redrawn_folder(open_workspace(config).logs)
        report = replay(config, fresh, compare=place, logs=logs, is_redrawn=True)
    except (ReplayError, ArchiveAway) as problem:
        raise StoreError(
            f"the rules changed since {place} was built, and it cannot be rebuilt ({problem}); "
            "put the old rules back, or start from nothing with --fresh"
        ) from None
    kept = whole_maps.aside(place, datetime.now(UTC).strftime("%Y%m%d-%H%M%S"))
    whole_maps.put_in_place(fresh, place, kept)
    return Rebuilt(kept, report)


def _build(
    config: Config,
    workspace: Workspace,
    path: MapPlace,
    ends: dict[str, Cursor],
    until: str | None,
    run: int | None,
    progress: Progress | None,
    compare: MapPlace | None,
    logs: LogFolder | None,
    is_redrawn: bool,
    renew: Renew | None,
) -> ReplayReport:
    results = workspace.results
    store = Store(path, config)
    try:
        store.begin_bulk()
        updater = MapUpdater(config, store)
        page_log: PageLog | None = None
        if logs is not None and config.logs.has_page_log:
            page_log = PageLog(config.logs, logs, store, is_bulk=True, is_redrawn=is_redrawn)
            updater.before_commit = page_log.write
        damaged: list[tuple[str, Damage]] = []
        total = sum(results.segment_bytes(writer, n) for writer in ends for n in results.segments(writer))
        batch: list[tuple[Result, bytes]] = []
        taken = read = characters = strays = 0
        recorded = recorded_runs(workspace, is_live_only=False)
        longest = longest_key(config.traps.max_url_length)
        for result, line in _in_order(results, list(ends), damaged):
            read += len(line) + 1
            if (until is not None and result.at > until) or (run is not None and result.run != run):
                continue
            if result.run not in recorded and result.run > max(updater.run, 0) + 1 and updater.run:
                strays += 1  # of a run that the scheduler never started: the ingest sets such a result aside
                continue
            if renew is not None and isinstance(result, PageResult):
                result = renew(result)
                line = dump(result)
            batch.append((result, line))
            if isinstance(result, PageResult):
                characters += weight_of(result.base or "", result.hrefs, longest, result.texts)
            if len(batch) >= BATCH or characters >= CHARACTERS:
                updater.apply_batch(batch)
                updater.commit()
                taken += len(batch)
                batch = []
                characters = 0
                if progress is not None:
                    progress(read, total)
        if taken + len(batch) == 0 and (run is not None or until is not None):
            raise ReplayError(_nothing_found(results, list(ends), until, run))
        updater.apply_batch(batch)
        store.changes.positions.update(ends)
        store.changes.damage.extend(damaged)
        updater.commit()
        if page_log is not None:
            page_log.finish()
            updater.commit()
        if store.counts["frontier"]:
            # These rules want more pages than were fetched: a run that was over is not, and can be resumed.
            store.reopen_run(updater.run)
        if progress is not None:
            progress(total, total)
        store.end_bulk()
        difference = store.compare(compare) if compare is not None and is_there(compare) else None
        return ReplayReport(
            taken + len(batch),
            updater.duplicates,
            len(damaged) + strays,
            len(store.index),
            store.counts["frontier"],
            difference,
        )
    finally:
        store.close()


def _nothing_found(results: ResultLogs, writers: list[str], until: str | None, run: int | None) -> str:
    """The sentence for a replay without a single result: the runs and times that there are."""
    runs: set[int] = set()
    first = ""
    for result, _ in _in_order(results, writers, []):
        runs.add(result.run)
        first = min(first or result.at, result.at)
    known = ", ".join(str(number) for number in sorted(runs)) or "none"
    if run is not None and run not in runs:
        return f"the spools hold no result of run {run}; the runs there are: {known}"
    return f"the spools hold no result up to {until}; the first one is of {first}"


Key = tuple[int, bool, str]  # run, is it the record that the run is finished, clock


def _in_order(
    results: ResultLogs, writers: list[str], damaged: list[tuple[str, Damage]]
) -> Iterator[tuple[Result, bytes]]:
    """Every result of every segment, by run and clock; the record that a run is finished after all others of it."""
    streams = [_stream(results, writer, damaged) for writer in writers]
    for _, result, line in heapq.merge(*streams, key=lambda item: item[0]):
        yield result, line


def _stream(results: ResultLogs, writer: str, damaged: list[tuple[str, Damage]]) -> Iterator[tuple[Key, Result, bytes]]:
    """One writer's results. Segments are ordered by their first line: copies may have any number."""
    latest: Key = (0, False, "")
    numbers = results.segments(writer)
    for _, number in sorted((_first_key(results, writer, number), number) for number in numbers):
        for record, line in _segment(results, writer, number, damaged):
            key = (record.run, isinstance(record, RunEvent) and record.event == "finished", record.at)
            latest = max(latest, key)  # a clock that was set back must not disturb the merge
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
