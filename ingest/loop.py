"""The ingest stage: result spools in, one transaction a batch, hints out to the scheduler.

Invariants:
- the place in every result spool is committed together with the effects of the results before it;
- a result is durable in its spool before it is committed (`LogReader.sync`), so the spools hold all of the map; the
  pages that it names as stored are durable before it is;
- hints are written after the commit; if they are lost, the next start says `resync`.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import get_args

from crawler.database.map_errors import MapLost, StoreError
from crawler.model import recorded_settings
from crawler.model.errors import sentence
from crawler.model.page_claims import MOST_CHARACTERS, longest_key, weight_of
from crawler.model.records import Feed, PageResult, RecordError, Result, RunEvent, SitemapResult, dump
from crawler.model.settings import Config
from crawler.resilience.stalls import Work
from crawler.store.file_store import FileStore, open_store
from crawler.workspace.atomic import free_bytes
from crawler.workspace.control import StageControl, wait_for_role
from crawler.workspace.door import LeaseLost, StoppedWhileAway, Unreachable, Workspace
from crawler.workspace.log import Cursor, Damage, LogError, LogReader
from crawler.workspace.opening import open_workspace
from crawler.workspace.reading import record_of
from crawler.workspace.runs import RunStatus, read_run, recorded_runs
from crawler.workspace.unapplied import progress_facts
from ingest.ahead import WorkAhead
from ingest.apply import MapUpdater
from ingest.left_estimate import LeftEstimate
from ingest.memory.changes import Changes
from ingest.page_log import PageLog
from ingest.replay import Rebuilt, rebuild
from ingest.rule_changes import can_differ, changed_rules
from ingest.run_metrics import RunMetrics
from ingest.upkeep.retention import archive_old_results, drop_old_results
from ingest.visit_counters import VisitCounters
from ingest.writing.engine import CopyNotMade
from ingest.writing.store import Store

log = logging.getLogger("sumi.ingest")

BATCH = 2500  # results to a commit, at most: the more there are, the fewer rows are written twice
_LINKS = 140_000  # … or that many links: they take the memory …
_CHARACTERS = 8 * MOST_CHARACTERS  # … or addresses of so many characters: ordinary ones have a quarter of it
_SHARE = 150  # results that are read from one spool before the next has its turn
_GATHER = 0.05  # seconds that results may gather while many come in: large batches cost less a page …
_GATHER_LONG = 2.0  # … and while there is plenty to do without them
_GATHER_LAST = 0.2  # … but at the end of a run so much …
_PARTS_OF_REST = 4  # … and before it one part of so many of what is left
_ENOUGH = 1024 * 1024  # bytes of results that make a batch large enough
_LOOK_EVERY = 0.05  # seconds: results that have not become more since the last look are applied
_PLENTY = 10_000  # pages in the frontier …
_GROWING = 1.2  # … unless a batch made it so much larger: then many domains have only just been found
_BUSY = 15  # results in a batch that make it "many"; fewer are applied at once, because fetchers wait for their links
_NAMED = 6  # changed rules that a message names
_RESULTS = get_args(Result)
EXIT_LOST = 70  # the supervisor may start another process, which waits for the engine
SCHEDULER = "scheduler"  # as a result writer: its record that a run is finished must be read last


class Ingest:
    """The constructor initialises; `step` until nothing is left; `shutdown`."""

    def __init__(self, config: Config, control: StageControl) -> None:
        self.config = config
        self.workspace = control.workspace
        self.control = control
        self.rebuilt: Rebuilt | None = None
        self.store = self._open_store()
        if not config.discovery.sitemaps:
            self.store.forget_waiting_sitemaps()
        self.updater = MapUpdater(config, self.store, self._keep_completed_map)
        self._page_log, self._metrics = self._open_logs()
        self._counters = VisitCounters(self.store)
        self.updater.before_commit = self._write_logs
        self.updater.on_first_seeds = partial(control.ring, "scheduler")
        self._put_copy_aside_if_completed()  # a kill may have come between the end of a run and that
        self.readers: dict[str, LogReader] = {}
        self._positions = self._sound_positions()
        self._damage: list[tuple[str, Damage]] = []
        self._feed = self.workspace.feed.writer(segment_bytes=4 * 1024 * 1024, durable=True)
        self._feed.append(dump(Feed(self.updater.run, resync=True)))
        # Hints from before a `resync` are of no use: the frontier table holds the same and more.
        self.workspace.feed.remove_before(self._feed.end.segment)
        self._taken = 0
        self._read_bytes = 0  # of the results taken
        self._blobs: FileStore | None = None  # opened with the first result that names a blob
        self.left = LeftEstimate(config, self.store)
        self.ahead = WorkAhead(self.store, self.left)
        self._has_read = False  # the last step found results
        self._later_runs: set[int] = set()  # runs with results that have to wait
        self._looked_for_writers = 0.0
        control.facts = self.facts
        control.work = self.work
        control.ring("scheduler")

    def facts(self) -> dict[str, object]:
        return {
            **self.store.counts,
            "run": self.updater.run,
            "taken": self._taken,
            "duplicates": self.updater.duplicates,
            "backlog": self.unread_bytes(),
            **progress_facts(self._positions, self._read_bytes / max(self._taken, 1), self._free_bytes()),
            "left": asdict(self.left.known) if self.left.known else None,
            "answers": self._counters.counts.answers(),
        }

    def work(self) -> Work:
        """For the heartbeat: results that could be read are work; a torn tail, or results of a later run, are none."""
        return Work(self._taken, self._has_read)

    def _free_bytes(self) -> int | None:
        place = self.config.map_place
        return free_bytes(place) if isinstance(place, Path) else None  # the engine looks after its own disk

    def waits_for_disk(self) -> bool:
        """Is there so little room that a commit may fail soon? The fetchers wait long before."""
        free, floor = self._free_bytes(), self.config.spool.min_free_disk
        is_low = free is not None and free < floor // 2
        self._has_read = self._has_read and not is_low  # waiting is no standing still
        return is_low

    def unread_bytes(self) -> int:
        """Bytes of results that wait to be applied."""
        return sum(reader.unread_bytes() for reader in self.readers.values())

    def _open_store(self) -> Store:
        store = Store(self.config.map_place, self.config)
        built_under = store.meta("map_hash")
        if built_under == self.config.map_hash or store.last_run()[0] == 0:
            if built_under != self.config.map_hash or store.meta("map_settings") is None:
                store.adopt_rules()
            if store.is_fresh:
                log.info("Creating new database at %s", store.place)
            return store
        before = recorded_settings.read(store.meta("map_settings") or "")
        names = f" ({'; '.join(_some(changed_rules(before, self.config)))})" if before is not None else ""
        if before is not None and not can_differ(store, before, self.config):
            log.info("The rules changed%s; nothing in this map can differ, so it is kept.", names)
            store.adopt_rules()
            return store
        kept_from = store.meta("results_kept_from_run")
        store.close()
        if kept_from is not None:
            raise StoreError(
                f"the rules changed{names} since {store.place} was built, and the results before run #{kept_from} are "
                "gone ([spool] results), so it cannot be rebuilt; put the old rules back, or start with --fresh"
            )
        log.warning("The rules changed%s since this map was built: rebuilding it from the result spools.", names)
        self.rebuilt = rebuild(self.config)
        for line in self.rebuilt.report.lines():
            log.warning("  %s", line)
        log.warning("The old map is kept at %s", self.rebuilt.kept)
        return Store(self.config.map_place, self.config)

    def _open_logs(self) -> tuple[PageLog | None, RunMetrics | None]:
        settings, folder, store = self.config.logs, self.workspace.logs, self.store
        page_log = PageLog(settings, folder, store) if settings.has_page_log else None
        return page_log, RunMetrics(settings, folder, store, self._gauges) if settings.metrics else None

    def _gauges(self) -> dict[str, int]:
        counts = self.store.counts
        return {
            "pages_known": counts["known"],
            "pages_waiting": counts["frontier"],
            "links": counts["links"],
            "backlog_bytes": self.unread_bytes(),
        }

    def _write_logs(self, run: int) -> None:
        self._counters.count()
        if self._page_log is not None:
            self._page_log.write(run)
        if self._metrics is not None:
            self._metrics.count(run)

    def write_metrics(self) -> None:
        """The counters, if it is time for them."""
        if self._metrics is not None:
            self._metrics.flush_if_due(time.monotonic(), time.time())

    def _sound_positions(self) -> dict[str, Cursor]:
        """The places to read on from. A place past the end of its spool belongs to a workspace that is gone."""
        positions = self.store.positions()
        for writer, cursor in list(positions.items()):
            if cursor > self.workspace.results.end(writer):
                log.warning("The result spool %s was replaced; reading it from its start.", writer)
                positions[writer] = Cursor()
        return positions

    # -- one batch -----------------------------------------------------------------------------------

    def step(self) -> int:
        """Apply one batch, if there is anything to read; returns the number of its lines."""
        batch, positions, readers = self._gather()
        self._has_read = bool(batch)
        if not positions and not self._damage:
            return 0
        self._sync_blobs(batch)
        for reader in readers:
            reader.sync()
        self.updater.apply_batch(batch)
        changes = self.store.changes
        changes.positions.update(positions)
        changes.damage.extend(self._damage)
        self._damage = []
        done = self.updater.commit()
        self._positions.update(positions)
        self._taken += len(batch)
        self._read_bytes += sum(len(line) for _, line in batch)
        self.left.update(self.updater.run, time.monotonic())
        self.ahead.look(self.updater.run, time.monotonic())
        self._write_feed(done, _bytes_of(batch))
        if any(isinstance(result, RunEvent) and result.event == "finished" for result, _ in batch):
            self._put_copy_aside_if_completed()
            self._drop_old_results()
            self._archive_old_results()
            if self._metrics is not None:
                self._metrics.flush(time.time(), is_last=True)
        return max(len(batch), 1)

    def _sync_blobs(self, batch: list[tuple[Result, bytes]]) -> None:
        """Make the pages durable that these results name as stored, before the results are.

        What was confirmed or carried is durable already: the map would not know it otherwise.
        """
        if any(isinstance(result, PageResult) and result.stored and result.was_sent for result, _ in batch):
            if self._blobs is None:
                self._blobs = open_store(self.config)
            with suppress(FileNotFoundError):  # somebody removed the store
                self._blobs.sync()

    def _gather(self) -> tuple[list[tuple[Result, bytes]], dict[str, Cursor], list[LogReader]]:
        """The results that can be read now, the places after them, and the readers they came from."""
        self._find_writers()
        found = self._read_all(self.updater.run)
        if not found[1] and self._later_runs:
            # All results of this run were read, the scheduler's log among them. Either the record that the next run has
            # started is lost, or these results belong to no run: then they must not begin one.
            following = min(self._later_runs)
            if self._may_begin(following):
                found = self._read_all(following)
            else:
                found = self._read_all(self.updater.run, strays=frozenset(self._later_runs))
        if not found[1]:
            self._looked_for_writers = 0.0  # the next bell may be that of a new writer
        return found

    def _may_begin(self, run: int) -> bool:
        """Can a result of this run begin it? The scheduler recorded the run, or it follows one that is completed."""
        current, status = self.store.last_run()
        recorded = recorded_runs(self.workspace)
        is_next = run == current + 1 and (status in ("", RunStatus.COMPLETED) or not recorded)
        return is_next or run in recorded

    def _read_all(
        self, run: int, strays: frozenset[int] = frozenset()
    ) -> tuple[list[tuple[Result, bytes]], dict[str, Cursor], list[LogReader]]:
        """A share of every spool, up to `run`: results of a later run wait until this one is read to its end.

        Results of the runs `strays` are set aside.
        """
        batch: list[tuple[Result, bytes]] = []
        positions: dict[str, Cursor] = {}
        self._later_runs = set()
        links = characters = 0
        longest = longest_key(self.config.traps.max_url_length)
        waiting = sorted(self.readers, key=lambda name: (name == SCHEDULER, name))
        while waiting and len(batch) < BATCH and links < _LINKS:  # a long spool takes the room that others leave
            with_more: list[str] = []
            for writer in waiting:
                if characters >= _CHARACTERS:
                    return batch, positions, [self.readers[writer] for writer in positions]
                reader = self.readers[writer]
                before = place = reader.cursor
                lines = reader.read(_SHARE)
                for line in lines:
                    try:
                        result: Result = record_of(line, *_RESULTS)
                    except RecordError as problem:
                        self._quarantine(writer, reader.damage(line, str(problem)))
                    else:
                        if result.run in strays:
                            reason = f"a result of run {result.run}, which the scheduler never started"
                            self._quarantine(writer, reader.damage(line, reason))
                            place = line.end
                            continue
                        if self._must_wait(result, run, bool(positions.keys() - {writer})):
                            reader.cursor = place  # to be read again then
                            break
                        run = max(run, result.run)
                        batch.append((result, line.body))
                        if isinstance(result, SitemapResult):
                            links += len(result.urls)
                            characters += sum(map(len, result.urls))
                        if isinstance(result, PageResult):
                            links += len(result.hrefs)
                            characters += weight_of(result.base or "", result.hrefs, longest, result.texts)
                            if characters >= _CHARACTERS:
                                reader.cursor = line.end  # the rest is for the next batch
                                break
                    place = line.end
                else:
                    if len(lines) == _SHARE:
                        with_more.append(writer)
                if reader.cursor != before:
                    positions[writer] = reader.cursor
            waiting = with_more
        return batch, positions, [self.readers[writer] for writer in positions]

    def _must_wait(self, result: Result, run: int, others_had_more: bool) -> bool:
        """Is this of a later run, or the end of one, while results of the run before may be unread?"""
        if isinstance(result, RunEvent):
            if result.event == "finished":
                return others_had_more or any(later <= result.run for later in self._later_runs)
            return result.run > run and (others_had_more or any(later < result.run for later in self._later_runs))
        if result.run > run:
            self._later_runs.add(result.run)
            return True
        return False

    def _find_writers(self) -> None:
        """Find the spools of new fetchers. That costs a directory listing, so it is not done with every batch."""
        now = time.monotonic()
        if now - self._looked_for_writers < 0.25 and self._looked_for_writers:
            return
        self._looked_for_writers = now
        for writer in self.workspace.results.writers():
            if writer not in self.readers:
                self.readers[writer] = self.workspace.results.reader(
                    writer,
                    self._positions.get(writer, Cursor()),
                    partial(self._quarantine, writer),
                    will_sync=True,
                )

    def _quarantine(self, writer: str, damage: Damage) -> None:
        place = self.workspace.results.quarantine(writer, damage)
        log.warning(
            "Set aside a broken line of %s (%s, %d bytes): %s", damage.place, damage.reason, len(damage.raw), place
        )
        self._damage.append((writer, damage))

    # -- feed ----------------------------------------------------------------------------------------

    def _write_feed(self, done: Changes, size: int) -> None:
        gone: dict[str, list[int]] = {}
        for page in done.done:
            gone.setdefault(page.domain.name, []).append(page.id)
        for sitemap in done.done_sitemaps:
            gone.setdefault(sitemap.domain.name, []).append(-sitemap.id)
        feed = Feed(
            run=self.updater.run,
            work=tuple(self.store.best_work(done).items()),
            done=tuple((name, tuple(ids)) for name, ids in gone.items()),
            closed=tuple(domain.name for domain in done.closed_domains.values()),
            bytes=size,
            carried=sum(page.visit is not None and page.visit.is_carried for page in done.done),
        )
        self._feed.append(dump(feed))
        self.control.ring("scheduler")

    # -- between two runs ----------------------------------------------------------------------------

    def _keep_completed_map(self, following: int) -> None:
        """A run begins: readers go on with a copy of the map as the run before left it."""
        run, status = self.store.last_run()
        if status != RunStatus.COMPLETED:
            return
        try:
            self.store.keep_copy(lambda: self.control.beat(f"keeping the map of run {run} for readers"))
        except CopyNotMade as problem:
            log.warning("The map of run #%d is not kept while run #%d is under way: %s", run, following, problem)

    def _put_copy_aside_if_completed(self) -> None:
        if self.store.last_run()[1] == RunStatus.COMPLETED:
            self.store.put_copy_aside()

    def _drop_old_results(self) -> None:
        """Keep the results of as many runs as `[spool] results` says; by default of all."""
        keep = self.config.spool.results
        if keep and self.updater.run - keep >= 1:
            keep_from = self.updater.run - keep + 1
            self.store.set_meta("results_kept_from_run", str(keep_from))
            dropped = drop_old_results(self.workspace.results, keep_from)
            log.info("Dropped %d result segments of runs before #%d", dropped, keep_from)

    def _archive_old_results(self) -> None:
        """Keep the results of as many runs in the engine as `[engine] results` says; older ones go to the archive."""
        keep = self.config.engine.results
        if not keep or self.updater.run - keep < 1:
            return
        keep_from = self.updater.run - keep + 1
        moved = 0
        try:
            for _ in archive_old_results(self.workspace.results, keep_from, self._positions):
                moved += 1
                self.control.beat(f"moving results of runs before {keep_from} to the archive")
        except LogError as problem:  # they are where they were, and the next run's end tries again
            log.warning("Results of runs before #%d are not archived: %s", keep_from, problem)
        if moved:
            log.info("Moved %d result segments of runs before #%d to the archive", moved, keep_from)

    def shutdown(self) -> None:
        if self._page_log is not None:
            self._page_log.close()
        if self._metrics is not None:
            self._metrics.flush(time.time(), is_last=True)
        for reader in self.readers.values():
            reader.close()
        self._feed.close()
        self.store.close()


def _bytes_of(batch: list[tuple[Result, bytes]]) -> int:
    """Bytes of the bodies that came with these results."""
    return sum(result.bytes_sent for result, _ in batch if isinstance(result, PageResult))


def _some(lines: list[str]) -> list[str]:
    return lines if len(lines) <= _NAMED else [*lines[:_NAMED], f"and {len(lines) - _NAMED} more"]


def calm_collector() -> None:
    """Collect garbage rarely: a batch makes tens of thousands of objects and no cycles; searching took 3 to 8 %."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(1_000_000, 50, 50)


def run_ingest(
    config: Config,
    *,
    drain: bool = False,
    is_supervised: bool = False,
    on_control: Callable[[StageControl], None] | None = None,
) -> int:
    """The stage as a process, until its run is over, a stop is asked for, or (drain) nothing is left to read.

    `on_control` gets the control of a stage in a thread, in place of signals.
    """
    workspace = open_workspace(config)
    workspace.prepare()
    is_alone = not is_supervised and not drain and on_control is None
    role = wait_for_role(workspace, "ingest") if config.engine.url and is_alone else workspace.take_role("ingest")
    if role is None:
        return 0
    control = StageControl(workspace, "ingest", is_supervised=is_supervised)
    (on_control or StageControl.install_signals)(control)
    try:
        ingest = Ingest(config, control)
        if on_control is None:
            calm_collector()
        try:
            _work(ingest, control, workspace, drain)
        finally:
            ingest.shutdown()
    except MapLost as problem:
        if control.signals:
            raise StoppedWhileAway(str(problem)) from None
        log.warning("%s", problem)
        return EXIT_LOST
    except (LogError, StoreError) as problem:
        log.error("%s", problem)
        return 1
    except (LeaseLost, Unreachable):
        raise  # a new process has a lease of its own
    except OSError as problem:
        log.error("the ingest stopped: %s; repair that and start again, nothing is lost", sentence(problem))
        return 1
    finally:
        control.close()
        role.release()
    return control.exit_code if control.is_replaced and not drain else 0


def _work(ingest: Ingest, control: StageControl, workspace: Workspace, drain: bool) -> None:
    saw_running = False
    while True:
        if control.is_paused() and not drain:
            control.wait_while_paused()
        if not drain and ingest.waits_for_disk() and not control.should_stop():
            control.beat("waiting: the disk of the map is almost full")
            control.wait(1.0)
            continue
        started, frontier = time.monotonic(), ingest.store.counts["frontier"]
        taken = ingest.step()
        ingest.write_metrics()
        control.beat("running" if taken else "waiting")
        if control.is_replaced and not drain:
            return  # under another config the rest may be another batch
        if taken:
            if _BUSY <= taken < BATCH // 2:
                left = ingest.left.seconds(time.monotonic())
                until = started + gathering_time(frontier, ingest.store.counts["frontier"], left)
                if time.monotonic() >= until or not ingest.ahead.step(time.monotonic()):
                    let_gather(ingest.unread_bytes, control, until)
            continue
        if drain or control.should_stop():
            return
        run = read_run(workspace)
        saw_running = saw_running or (run is not None and run.status is RunStatus.RUNNING)
        # Only the map knows whether a run is over: the document may be damaged.
        if saw_running and run is not None and run.is_over and ingest.store.last_run()[1] == run.status:
            return
        if not ingest.ahead.step(time.monotonic()):
            control.wait(1.0)


def gathering_time(before: int, after: int, left: float | None = None) -> float:
    """Seconds from one batch to the next, at most, from the number of waiting pages before and after the batch, and the
    seconds that the run may last.

    The more pages wait, the less urgent are new ones. But while they are few and becoming more, the crawl has only
    begun: they belong to few domains, and most of those will soon have no known page left to visit. Towards the end
    batches become smaller, so that the last one, which the user waits for, is not a long one.
    """
    if after > (_GROWING * before if after >= _PLENTY else before):
        return _GATHER
    longest = _GATHER_LONG if left is None else min(_GATHER_LONG, max(_GATHER_LAST, left / _PARTS_OF_REST))
    return max(_GATHER, min(after / _PLENTY, 1.0) * longest)


def let_gather(unread_bytes: Callable[[], int], control: StageControl, until: float) -> None:
    """Sleep until then, even if the bell rings; but not once there is enough to do, or nothing more comes in.

    The end of a run waits for the results that gathered last.
    """
    before = unread_bytes()
    look_at = time.monotonic() + _LOOK_EVERY
    while before < _ENOUGH and (left := min(until, look_at) - time.monotonic()) > 0 and not control.should_stop():
        control.wait(left)
        if time.monotonic() >= look_at:
            unread = unread_bytes()
            if unread == before:
                return
            before, look_at = unread, time.monotonic() + _LOOK_EVERY
