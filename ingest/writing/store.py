"""The map for its one writer. Loads the rows that a batch needs, and commits its changes in one transaction.

Everything is asked for in lists: one statement for many pages. The engine's errors are StoreError: methods that are
called for every page leave that to the caller's `with store.errors()`, all others do it themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any

import orjson

from crawler.database.format import SITEMAP_PRIORITY
from crawler.database.map_errors import StoreError
from crawler.model.map_place import MapPlace
from crawler.model.origins import Origin, nearer
from crawler.model.settings import Config
from crawler.model.states import ERRORS, PageState
from crawler.model.urls import Link
from crawler.rules.lists import Classifier, DomainClass
from crawler.rules.time_left import DomainLeft
from crawler.workspace.log import Cursor
from ingest.memory.changes import Changes, Reopening
from ingest.memory.map_rows import MapDomain, MapPage
from ingest.memory.page_index import BY_DEPTH, BY_ROW, OTHER, PageIndex, entry_of, standing_of
from ingest.rules.depth import Distances
from ingest.rules.page_state import CLOSING_ERRORS, far_state, priority
from ingest.writing import rule_effects, run_rows, setup
from ingest.writing.change_writer import ChangeWriter
from ingest.writing.domain_rows import DomainRows
from ingest.writing.domain_sums import DomainSums
from ingest.writing.engine import Difference
from ingest.writing.engines import engine_of
from ingest.writing.order_rows import prepare_orders
from ingest.writing.page_rows import PAGES, domain_of_row, page_of_row
from ingest.writing.plain_errors import raises_store_error
from ingest.writing.referrer_rows import ReferrerRows
from ingest.writing.schema import id_lists
from ingest.writing.transactions import Transactions
from ingest.writing.visit_counts import prepare_counts
from ingest.writing.waiting_ranks import rank_waiting

__all__ = ["Difference", "Store", "StoreError"]

from ingest.writing.reopening_rows import prepare_reopenings, read_reopenings

_ENDED = (
    "SELECT id FROM pages WHERE domain_id = ?1 AND seen_run = ?2 AND visited_run IS NOT ?2"
    " AND error_message IN (SELECT value FROM json_each(?3) AS words) ORDER BY id"
)
_LEFT = (
    "SELECT domain_states.id, CASE WHEN run = ?2 THEN request_count ELSE 0 END, class, crawl_delay"
    " FROM json_each(?1) AS wanted CROSS JOIN domain_states ON domain_states.id = wanted.value"
)
_QUEUED, _PROCESSED = PageState.QUEUED, PageState.PROCESSED
_SEEDS_DUE = "seeds_due"
_MOVES = 50_000  # changes of depth alone that may gather before they are written; a shorter path can make millions


class Store:
    """The map on disk. One process has one of these; all others read (`crawler.database`)."""

    def __init__(self, place: MapPlace, config: Config) -> None:
        self.place = place
        self.config = config
        self.engine = engine_of(place)
        self.db = self.engine.db
        self.distances = Distances(config.crawler.max_depth, len(config.quality))
        self.classifier = Classifier(config)
        self.changes = Changes()
        self.loaded: dict[int, MapPage] = {}  # pages of the batch: those that change, and those that decide how
        self.index = PageIndex(self.distances)
        self._is_index_filled = False
        self.nears_end = False  # there may soon be nothing more to write
        self._domains = DomainRows(self.db, self.classifier, self.distances)
        self._sums = DomainSums(self.db)
        self._transactions = Transactions(self.engine, on_rollback=self._on_rollback)
        origins = [entry.name for entry in config.quality]
        try:
            self.is_fresh = self._prepare(origins)
        except BaseException:
            self.engine.close()
            raise
        self._referrers: ReferrerRows | None = None
        self._by_level = config.crawler.order == "priority"
        self._writer = ChangeWriter(self.engine, self.index, self.distances, origins, self._sums, self.counts, config)

    def _prepare(self, origins: list[str]) -> bool:
        """Make or upgrade the tables, and count. True: the map is new."""
        with self.errors():
            is_fresh = setup.prepare_tables(self.engine, self.config)
            prepare_counts(self.engine)
            prepare_orders(self.db)
            prepare_reopenings(self.db)
            setup.number_origins(self.db, origins)
            rank_waiting(self.db, self.config, self.classifier)
            self.counts = setup.count_rows(self.db)
        return is_fresh

    def errors(self) -> AbstractContextManager[None]:
        """Errors of the engine inside the block become StoreError."""
        return self.engine.errors()

    def close(self) -> None:
        """Close. Where something cannot be written any more, commits are as safe without it."""
        with suppress(StoreError), self.errors():
            if not self.db.in_transaction:  # or else a batch was given up halfway
                self._write_sums()
                self._complete_reading_aids()
        self.engine.close()

    @raises_store_error
    def meta(self, name: str) -> str | None:
        return setup.meta(self.db, name)

    @raises_store_error
    def set_meta(self, name: str, value: str) -> None:
        setup.set_meta(self.db, name, value)

    @raises_store_error
    def adopt_rules(self) -> None:
        """Note that the map is as this config's rules make it."""
        setup.note_rules(self.db, self.config)

    @raises_store_error
    def keep_referrers(self) -> None:
        """From now on keep the page that made each page known, until that is visited: for the page logs."""
        self._referrers = ReferrerRows(self.engine)

    @property
    def keeps_referrers(self) -> bool:
        return self._referrers is not None

    def referrers_of(self, pages: Iterable[MapPage]) -> dict[int, str]:
        """Page → address of the page that made it known in this run; seeds and the like have none."""
        new = self.changes.referrers
        found = {page.id: self.page(new[page.id]).key for page in pages if page.id in new}
        kept = self._referrers.urls([page.id for page in pages if page.id not in new]) if self._referrers else {}
        return kept | found

    # -- traces of the rules ---------------------------------------------------------------------------

    def domain_names(self) -> Iterator[str]:
        return rule_effects.domain_names(self.db)

    def page_keys(self) -> Iterator[str]:
        return rule_effects.keys(self.db)

    @raises_store_error
    def has_closure(self, reason: str) -> bool:
        return rule_effects.has_closure(self.db, reason)

    @raises_store_error
    def has_traps(self) -> bool:
        return rule_effects.has_traps(self.db)

    # -- the map as a whole ----------------------------------------------------------------------------

    @raises_store_error
    def positions(self) -> dict[str, Cursor]:
        """The place up to which each result log was applied."""
        return {w: Cursor(s, o) for w, s, o in self.db.execute("SELECT writer, segment, offset FROM spool_positions")}

    @raises_store_error
    def compare(self, older: MapPlace) -> Difference:
        """The difference between this map and an older one, wherever that is."""
        return self.engine.compare(older)

    def keep_copy(self, on_step: Callable[[], None]) -> None:
        """Keep a copy for readers, before a run changes the map. Raises CopyNotMade."""
        self.engine.keep_copy(on_step)

    def put_copy_aside(self) -> None:
        """The map itself shows a completed run again."""
        self.engine.put_copy_aside()

    # -- runs ----------------------------------------------------------------------------------------

    @raises_store_error
    def last_run(self) -> tuple[int, str]:
        """The newest run's number and status; (0, "") before the first."""
        return run_rows.last_run(self.db)

    def begin_run(self, run: int, at: str, config_hash: str) -> None:
        """A new run, in the transaction that the next commit ends: nothing seen, visited, waiting or failed yet."""
        with self._transactions.writing():
            run_rows.begin_run(self.engine, run, at, config_hash)
            if self._referrers is not None:
                self._referrers.clear()
        self.index.begin_run()
        self._writer.waiting.clear()
        self.counts |= dict.fromkeys(("pages", "crawled", "known", "links", "frontier", "errors"), 0)

    @raises_store_error
    def seeds_due(self) -> str | None:
        """The start of the newest run, if not all of its seeds have been entered."""
        return setup.meta(self.db, _SEEDS_DUE)

    def note_seeds_due(self, at: str) -> None:
        """The next commit holds only a part of the run's seeds; `note_seeds` follows."""
        with self._transactions.writing():
            setup.set_meta(self.db, _SEEDS_DUE, at)

    def note_seeds(self, pages: Iterable[int]) -> None:
        """The pages that the run starts from, all of them, in the transaction that the next commit ends."""
        with self._transactions.writing():
            setup.set_meta(self.db, "seeds", orjson.dumps(list(dict.fromkeys(pages))).decode())
            setup.remove_meta(self.db, _SEEDS_DUE)

    @raises_store_error
    def reopen_run(self, run: int) -> None:
        """A finished run has pages to visit again: it is marked as interrupted, and can be resumed."""
        run_rows.reopen_run(self.db, run)

    @raises_store_error
    def domains_left(self, run: int) -> list[DomainLeft]:
        """Every domain with waiting pages. The first question counts all rows of the frontier, later ones do not."""
        waiting = self._writer.waiting
        if not waiting.is_loaded:
            waiting.load(self.db.execute("SELECT domain_id, count(*) FROM frontier WHERE id > 0 GROUP BY domain_id"))
        found: list[DomainLeft] = []
        pages = waiting.by_domain()
        for chunk in id_lists(list(pages)):
            rows = self.db.execute(_LEFT, (chunk, run))
            found += [DomainLeft(pages[number], sent, klass == "quality", delay) for number, sent, klass, delay in rows]
        return found

    def held_hashes(self, run: int) -> set[int]:
        return {row[0] for row in self.db.execute("SELECT id FROM held_results WHERE run = ?", (run,))}

    def held_line(self, hash_: int) -> bytes:
        pending = self.changes.held.get(hash_)
        if pending is not None:
            return pending[1]
        return bytes(self.db.execute("SELECT line FROM held_results WHERE id = ?", (hash_,)).fetchone()[0])

    def closed_families(self, run: int) -> dict[int, tuple[str, frozenset[str]]]:
        """Family → (error of its further pages, keys that are spared)."""
        return {
            number: (error, frozenset(orjson.loads(spare)))
            for number, error, spare in self.db.execute(
                "SELECT id, error, spare FROM closed_families WHERE run = ?", (run,)
            )
        }

    def closed_subdomains(self, run: int) -> dict[str, tuple[str, frozenset[str]]]:
        """Registered domain → (error of the pages of its further hosts, hosts that are spared)."""
        sql = "SELECT domain, error, spare FROM closed_families WHERE run = ? AND family = '*.' || domain"
        rows = self.db.execute(sql, (run,))
        return {domain: (error, frozenset(orjson.loads(spare))) for domain, error, spare in rows}

    def reopenings(self, run: int) -> dict[int, Reopening]:
        """By domain, of those that were reset in this run or are closed for two reasons."""
        return read_reopenings(self.db, run)

    def pages_ended_by_closure(self, domain: MapDomain, run: int) -> list[int]:
        """Pages of a domain that were not visited in this run because it was closed. Reads all pages, without an index.

        Those of the batch that is being applied are among `loaded`.
        """
        rows = self.db.execute(_ENDED, (domain.id, run, orjson.dumps(CLOSING_ERRORS).decode()))
        return [number for (number,) in rows]

    def is_event_applied(self, number: int) -> bool:
        return self.db.execute("SELECT 1 FROM applied_events WHERE id = ?", (number,)).fetchone() is not None

    # -- domains -------------------------------------------------------------------------------------

    def domain(self, name: str, run: int) -> MapDomain:
        """The domain of this name, as it is in this run; made if it is new."""
        number = self.index.domain_numbers.get(name)
        if number is None:
            return self._new_domain(name, run)
        found = self._domains.get(number)
        if found is None:
            self._domains.load([number])
            found = self._domains.young[number]
        if found.run < run:
            found.enter_run(run)
            self.changes.domains[number] = found
            self._note_entered(found)
        return found

    def load_domains(self, names: Iterable[str]) -> None:
        """Bring these domains into memory, as far as they exist."""
        known = self.index.domain_numbers
        self._domains.load([known[name] for name in names if name in known])

    def _new_domain(self, name: str, run: int) -> MapDomain:
        made = self._domains.make(len(self.index.domain_names), name, run)
        self.index.add_domain(made.id, name)
        self.changes.domains[made.id] = made
        self._domains.put(made.id, made)
        self._note_entered(made)
        return made

    def _note_entered(self, domain: MapDomain) -> None:
        if domain.klass is DomainClass.QUALITY:
            self.changes.entered_domains.append(domain)

    def best_work(self, done: Changes) -> dict[str, int]:
        """Domain → priority of the best page among those that this commit queued or moved up."""
        ranks = [
            (page.domain.name, page.stored_priority)
            for page in [*done.new_pages, *done.pages.values()]
            if page.state is _QUEUED
        ]
        moved_up = [(self.index.domain_names[number], depth) for number, depth in done.moved_up.items()]
        ranks += [
            (name, priority(depth, self.classifier.classify(name).klass, by_level=self._by_level))
            for name, depth in moved_up
        ]
        ranks += [
            (sitemap.domain.name, SITEMAP_PRIORITY) for sitemap in done.sitemaps.values() if sitemap.state == "waiting"
        ]
        found: dict[str, int] = {}
        for name, rank in ranks:
            if rank < found.get(name, rank + 1):
                found[name] = rank
        return found

    # -- pages ---------------------------------------------------------------------------------------

    def fill_index(self) -> None:
        """Fill the index, once: seconds on a large map, and a start need not wait for it."""
        if not self._is_index_filled:
            self._is_index_filled = True
            setup.fill_index(self.engine, self.index)

    def pages(self, numbers: Iterable[int]) -> list[MapPage]:
        """Pages by their numbers, in any order; every number must exist."""
        found: list[MapPage] = []
        missing: list[int] = []
        for number in numbers:
            page = self.loaded.get(number)
            if page is None:
                missing.append(number)
            else:
                found.append(page)
        for chunk in id_lists(sorted(missing)):
            rows = self.db.execute(PAGES, (chunk,)).fetchall()
            self._domains.load([domain_of_row(row) for row in rows])
            found += [self._load_page(row) for row in rows]
        return found

    def page(self, number: int) -> MapPage:
        return self.loaded.get(number) or self.pages([number])[0]

    def new_page(
        self, link: Link, hash_: int, domain: MapDomain, run: int, at: str, origin: Origin = Origin.LINKED
    ) -> MapPage:
        """A page that is not known yet, to be found by this hash."""
        number = self.index.add(hash_, domain.id)
        made = MapPage(number, link.key, hash_, link.wire if link.wire != link.key else None, domain, run, at)
        if origin is not made.origin:
            made.origin = origin
            self.index.set_linked(number, origin.is_linked)
        self.changes.new_pages.append(made)
        self.loaded[number] = made
        return made

    def _load_page(self, row: tuple[Any, ...]) -> MapPage:
        domain = self._domains.get(domain_of_row(row))
        assert domain is not None
        page = page_of_row(row, domain, self.config.traps, self.distances, by_level=self._by_level)
        self.loaded[page.id] = page
        if self.changes.entered.pop(page.id, None) is not None:
            self._enter_loaded(page)
        elif page.id in self.changes.moves:  # its depth has changed already; from here on the page itself has it
            del self.changes.moves[page.id]
            page.reach = self.index.values[self.index.reaches[page.id]]
            page.depth = self.distances.nearest(page.reach)
            self.touch(page)
        return page

    def _enter_loaded(self, page: MapPage) -> None:
        """A page that entered the run without its row is needed after all."""
        page.enter_run(self.changes.entered_run)
        page.reach = self.index.values[self.index.reaches[page.id]]
        page.depth = self.distances.nearest(page.reach)
        if self.index.entries[page.id] == BY_DEPTH:
            page.state, page.error = far_state(page.depth), None
        self.touch(page)

    def reach_of(self, number: int) -> int:
        """A page's reach as it is now."""
        kept = self.index.reaches[number]
        return self.index.values[kept] if kept else self.page(number).reach

    def move(self, number: int, reach: int) -> None:
        """A page that is not loaded has this reach (by its number) now, and nothing else of it changes."""
        moves = self.changes.moves
        if number not in moves:
            moves[number] = self.index.reaches[number]
        self.index.reaches[number] = reach

    def touch(self, page: MapPage) -> None:
        """This page has changed: write it with the next commit."""
        if page.stored_state is not None:
            self.changes.pages[page.id] = page

    def set_origin(self, page: MapPage, origin: Origin) -> None:
        """One more way to this page; of several, the nearest counts."""
        origin = nearer(page.origin, origin)
        if origin is not page.origin:
            page.origin = origin
            self.index.set_linked(page.id, origin.is_linked)
            self.touch(page)

    # -- sitemaps --------------------------------------------------------------------------------------

    def sitemap_numbers(self) -> list[tuple[int, str, int, str]]:
        """(number, url, run, domain that announced it) of every sitemap."""
        return self.db.execute("SELECT id, url, run, announced_by FROM sitemaps").fetchall()

    @raises_store_error
    def forget_waiting_sitemaps(self) -> None:
        """None is to be read any more."""
        gone = self.db.execute("DELETE FROM frontier WHERE id < 0")
        self.counts["frontier"] -= gone.rowcount

    def open_guesses(self, run: int) -> set[int]:
        """Pages that this run tried without a link, and whose visit has not been applied."""
        sql = "SELECT id FROM guesses WHERE run = ? AND found IS NULL AND way <> 'sitemap'"
        return {row[0] for row in self.db.execute(sql, (run,))}

    def tried_pages(self, run: int) -> set[int]:
        """Pages that this run decided to visit though no followed path leads there."""
        return {row[0] for row in self.db.execute("SELECT id FROM guesses WHERE run = ?", (run,))}

    def archive_hashes(self) -> set[int]:
        """Of the keys of archives that links show."""
        return {row[0] for row in self.db.execute("SELECT id FROM archive_pages")}

    # -- links ---------------------------------------------------------------------------------------

    def out_links(self, number: int, run: int) -> tuple[int, list[int]]:
        """The kind of the links that this run's visit of the page recorded (all are of one), and their targets."""
        pending = self.changes.links.get(number)
        if pending is not None:
            return pending
        return self.engine.out_links(number, run)

    def linked_before(self, page: MapPage) -> set[int]:
        """Targets that earlier visits recorded already."""
        if page.stored_visited_run is None:
            return set()
        return self.engine.linked_ever(page.id)

    def redirecting_to(self, page: MapPage, run: int) -> set[int]:
        """Pages whose visit in this run was redirected to this one."""
        sql = "SELECT id FROM pages WHERE redirect_to = ? AND visited_run = ?"
        found = {row[0] for row in self.db.execute(sql, (page.id, run))}
        return found | self.changes.redirects.get(page.id, set())

    # -- writing -------------------------------------------------------------------------------------

    @raises_store_error
    def commit(self, run: int) -> Changes:
        """Write everything that changed, in one transaction, and return it."""
        done, self.changes = self.changes, Changes()
        with self._transactions.writing():
            self._writer.write(done, run)
            if self._referrers is not None:
                self._referrers.write(done.referrers, [page.id for page in done.done])
            for name, value in done.meta.items():
                setup.set_meta(self.db, name, value)
            self._transactions.commit()
        self._remember_as_stored(done)
        self._after_commit(is_near_end=self.nears_end)
        return done

    @raises_store_error
    def make_index_ahead(self) -> bool:
        """Make one index for readers before the run has ended. False: there is none to make."""
        return self._make_index(is_ahead=True)

    def _make_index(self, *, is_ahead: bool) -> bool:
        with self._transactions.writing():
            is_made = self.engine.make_index(is_ahead=is_ahead)
            self.db.execute("COMMIT")
        self._after_commit(is_near_end=True)
        return is_made

    def _after_commit(self, *, is_near_end: bool) -> None:
        """Near the end there may soon be nothing more to write. But once no page waits, the run's end is about to be
        recorded: that waits for a disk which is busy with the log.
        """
        if not self.counts["frontier"]:
            is_near_end = run_rows.last_run(self.db)[1] == "completed"
        self.engine.after_commit(is_last=is_near_end)

    @raises_store_error
    def drop_indexes_ahead(self) -> None:
        """The run goes on: such indexes would cost more than they save."""
        with self._transactions.writing():
            self.engine.drop_indexes_ahead()
            self.db.execute("COMMIT")

    def flush_moves(self) -> None:
        """Write the moves, if there are many: into the transaction that the next commit ends."""
        if len(self.changes.moves) < _MOVES:
            return
        with self._transactions.writing():
            self._writer.write_moves(self.changes)

    @raises_store_error
    def begin_bulk(self) -> None:
        """Build a whole map, in one transaction until `end_bulk`. After a crash in between it is built again."""
        self._transactions.begin_bulk()

    @raises_store_error
    def end_bulk(self) -> None:
        with self._transactions.writing():
            self._sums.write_all()
            run_rows.complete_reading_aids(self.engine)
        self._transactions.end_bulk()

    def _on_rollback(self) -> None:
        self._sums.forget()
        self._writer.waiting.forget()

    def _write_sums(self) -> None:
        """Before the map is closed: its readers then have nothing to add up."""
        if self._sums:
            with self._transactions.writing():
                self._sums.write_all()
                self.db.execute("COMMIT")

    def _complete_reading_aids(self) -> None:
        if run_rows.last_run(self.db)[1] == "completed":
            while self._make_index(is_ahead=False):
                pass  # each in a transaction of its own: a checkpoint takes it into the file while the next is made
        with self._transactions.writing():
            run_rows.complete_reading_aids(self.engine)
            self.db.execute("COMMIT")

    def _remember_as_stored(self, done: Changes) -> None:
        """After a commit: index and counts agree with the rows, and no page is loaded."""
        standings, errors, crawled = self.index.standings, self.counts["errors"], self.counts["crawled"]
        entries, reaches = self.index.entries, self.index.reaches
        for page in [*done.new_pages, *done.pages.values()]:
            was_error = page.stored_state in ERRORS and not page.is_reentered
            errors += (page.state in ERRORS) - was_error
            was_crawled = page.stored_state is _PROCESSED and not page.is_reentered
            crawled += (page.state is _PROCESSED) - was_crawled
            if page.visit is not None and not page.visit.is_carried:
                self.counts["pages"] += 1
            self.counts["known"] += page.stored_state is None or page.is_reentered
            standings[page.id] = standing_of(page.state, page.visited is not None, page.origin.is_linked)
            entry = entry_of(page.state, page.error, page.visited_run is not None, page.origin.is_linked)
            entries[page.id] = entry if reaches[page.id] or not page.reach else BY_ROW
        self.counts["known"] += len(done.entered)
        for number in done.closed_pages:  # of some the loaded page did not know
            standings[number] = OTHER
        self.counts["errors"], self.counts["crawled"] = errors, crawled
        self.counts["links"] += sum(len(targets) for _, targets in done.links.values())
        self.loaded.clear()
        self.index.drop_unused_reaches()
        self._domains.age()
