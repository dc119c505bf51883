"""The only writable connection to the map. Loads what a batch needs, and commits what it changed in one transaction
(`ingest.sqlite.change_writer` knows how). Everything is asked for in batches: one statement for many pages.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from crawler.model.errors import SumiError
from crawler.model.settings import Config
from crawler.model.states import ERRORS, PageState
from crawler.model.urls import Link
from crawler.rules.lists import Classifier
from crawler.rules.traps import shape_error
from crawler.workspace.clock import now_text
from crawler.workspace.log import Cursor
from ingest.map_rows import Domain, Generations, Page
from ingest.page_index import OTHER, Register, standing_of
from ingest.rules.depth import Distances, parse_reach
from ingest.rules.page_state import priority
from ingest.sqlite.change_writer import Changes, ChangeWriter
from ingest.sqlite.checkpoint import Checkpoints
from ingest.sqlite.domain_sums import DomainSums
from ingest.sqlite.schema import READING_INDEXES, SCHEMA_VERSION, SINCE_FORMAT_2, TABLES, json_list

# A list as one parameter: the statement is prepared once, whatever the number.
_PAGES = (
    "SELECT pages.id, url, url_hash, wire_url, domain_id, state, error_message, reach, depth, seen_run, visited_run,"
    " redirect_to, family, discovered_run FROM json_each(?) AS wanted CROSS JOIN pages ON pages.id = wanted.value"
)
# One row for all of a page's links: half of what it costs to fetch them one by one.
_OUT_LINKS = "SELECT max(kind), json_group_array(to_page_id) FROM links WHERE id BETWEEN ? AND ? AND last_run = ?"
_CHUNK = 5000
_QUEUED = PageState.QUEUED
_MOVES = 50_000  # changes of depth alone that may gather before they are written; a shorter way can make millions


Statement = tuple[str, tuple[Any, ...]]  # with its parameters


class StoreError(SumiError):
    """The map cannot be used; the message says why and what to do."""


class Store:
    """The map on disk. One process has one of these; everyone else reads with `mode=ro`."""

    def __init__(self, path: Path, config: Config) -> None:
        self.path = path
        self.config = config
        self.db = _open(path)
        self._checkpoints = Checkpoints(path)
        self.distances = Distances(config.crawler.max_depth, len(config.quality))
        self.classifier = Classifier(config)
        self.changes = Changes()
        self.in_hand: dict[int, Page] = {}  # what the batch changes, and what it had to look at for that
        self._domains: Generations[int, Domain] = Generations(40_000)
        self.is_fresh = self._prepare()
        self._load_origins()
        self.register = Register(self.distances)
        self._is_loaded = self._is_bulk = False
        self.counts = self._load_counts()
        self._sums = DomainSums(self.db)
        self._writer = ChangeWriter(self.db, self.register, self.distances, self._origins, self._sums, self.counts)

    # -- opening -------------------------------------------------------------------------------------

    def _prepare(self) -> bool:
        """Make the tables where there are none; refuse what is not ours. True if the map is new."""
        tables = {row[0] for row in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables:
            # One transaction: tables without their version would be nobody's.
            self.db.executescript("BEGIN;" + TABLES + "".join(f"{sql};" for sql in READING_INDEXES.values()))
            for name, value in (
                ("schema_version", str(SCHEMA_VERSION)),
                ("map_id", uuid.uuid4().hex),
                ("map_hash", self.config.map_hash),
                ("made_at", now_text()),
            ):
                self.set_meta(name, value)
            self.db.execute("COMMIT")
            return True
        if "meta" not in tables or "spool_positions" not in tables:
            raise StoreError(f"{self.path} is a database of another program; choose another database-path")
        version = self.meta("schema_version")
        if version == "2":
            self.db.executescript("BEGIN;" + SINCE_FORMAT_2)
            self.set_meta("schema_version", str(SCHEMA_VERSION))
            self.db.execute("COMMIT")
        elif version != str(SCHEMA_VERSION):
            raise StoreError(
                f"{self.path} has map format {version}, this program reads {SCHEMA_VERSION}; "
                f"draw it anew from the spools with: sumi-ripple replay CONFIG --into new.db"
            )
        return False

    def _load_origins(self) -> None:
        """Number the quality entries as the config lists them; other lists make another map (see `map_hash`)."""
        self._origins = [entry.domain for entry in self.config.quality]
        self.db.execute("BEGIN")
        self.db.execute("DELETE FROM origins")
        self.db.executemany("INSERT INTO origins VALUES (?, ?)", enumerate(self._origins))
        self.db.execute("COMMIT")

    def _load_counts(self) -> dict[str, int]:
        """Figures for the heartbeat, of the newest run, kept up from here on."""
        run, _ = self.last_run()
        errors = orjson.dumps([state.value for state in ERRORS]).decode()
        visited, failed = self.db.execute(
            "SELECT coalesce(sum(visited_run = ?1), 0), coalesce(sum(seen_run = ?1 AND state IN"
            " (SELECT value FROM json_each(?2))), 0) FROM pages",
            (run, errors),
        ).fetchone()
        return {
            "pages": visited,
            "known": self._first("SELECT coalesce(max(id), 0) FROM pages"),
            "links": self._first("SELECT coalesce(sum(links), 0) FROM domain_links")
            + self._first("SELECT coalesce(sum(links), 0) FROM unsummed_visits"),
            "frontier": self._first("SELECT count(*) FROM frontier"),
            "errors": failed,
        }

    def begin_run(self) -> None:
        """A new run: what it has seen, visited, what waits and what failed begins from nothing."""
        self.register.begin_run()
        self.counts |= {"pages": 0, "frontier": 0, "errors": 0}

    def load(self) -> None:
        """Fill the register, once: seconds on a large map, which a start need not wait for."""
        if not self._is_loaded:
            self._is_loaded = True
            self.register.load(self.db, self.last_run()[0])

    def _first(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        return int(self.db.execute(sql, parameters).fetchone()[0])

    def meta(self, name: str) -> str | None:
        row = self.db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, name: str, value: str) -> None:
        self.db.execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    def close(self) -> None:
        """Let go, with everything in the one file: people copy databases without their -wal."""
        self._checkpoints.finish()
        try:
            if not self.db.in_transaction:  # or else a batch was given up halfway
                self._settle_sums()
            self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error:
            pass  # a reader is in the way, or the disk is full; what was committed is as safe in the -wal
        self.db.close()

    # -- runs ----------------------------------------------------------------------------------------

    def last_run(self) -> tuple[int, str]:
        """The newest run's number and status; (0, "") before the first."""
        row = self.db.execute("SELECT id, status FROM runs ORDER BY id DESC LIMIT 1").fetchone()
        return (0, "") if row is None else (int(row[0]), str(row[1]))

    def positions(self) -> dict[str, Cursor]:
        return {w: Cursor(s, o) for w, s, o in self.db.execute("SELECT writer, segment, offset FROM spool_positions")}

    def held_hashes(self, run: int) -> set[int]:
        return {row[0] for row in self.db.execute("SELECT id FROM held_results WHERE run = ?", (run,))}

    def held_line(self, hash_: int) -> bytes:
        pending = self.changes.held.get(hash_)
        if pending is not None:
            return pending[1]
        return bytes(self.db.execute("SELECT line FROM held_results WHERE id = ?", (hash_,)).fetchone()[0])

    def closed_families(self, run: int) -> dict[int, tuple[str, frozenset[str]]]:
        return {
            number: (error, frozenset(orjson.loads(spare)))
            for number, error, spare in self.db.execute(
                "SELECT id, error, spare FROM closed_families WHERE run = ?", (run,)
            )
        }

    def is_event_applied(self, number: int) -> bool:
        return self.db.execute("SELECT 1 FROM applied_events WHERE id = ?", (number,)).fetchone() is not None

    # -- domains -------------------------------------------------------------------------------------

    def domain(self, name: str, run: int) -> Domain:
        """The domain of this name, as it stands in this run; made if it is new."""
        number = self.register.domain_numbers.get(name)
        if number is None:
            return self._new_domain(name, run)
        found = self._domains.get(number)
        if found is None:
            self._load_domains([number])
            found = self._domains.young[number]
        if found.run < run:
            found.enter_run(run)
            self.changes.domains[number] = found
        return found

    def _load_domains(self, numbers: Iterable[int]) -> None:
        """Bring these domains into memory; every number must exist."""
        missing = sorted({number for number in numbers if self._domains.get(number) is None})
        for chunk in _chunks(missing):
            for row in self.db.execute(_DOMAINS, (chunk,)):
                self._domains.put(row[0], self._domain_of_row(row))

    def fetch_domains(self, names: Iterable[str]) -> None:
        """Bring these domains into memory, as far as they exist."""
        known = self.register.domain_numbers
        self._load_domains([known[name] for name in names if name in known])

    def best_work(self, done: Changes) -> dict[str, int]:
        """Domain → priority of the best page among those that this commit queued or moved up."""
        ranks = [
            (page.domain.name, priority(page.depth, page.domain.klass))
            for page in [*done.new_pages, *done.pages.values()]
            if page.state is _QUEUED and page.depth is not None
        ]
        moved_up = [(self.register.domain_names[number], depth) for number, depth in done.moved_up.items()]
        ranks += [(name, priority(depth, self.classifier.classify(name).klass)) for name, depth in moved_up]
        found: dict[str, int] = {}
        for name, rank in ranks:
            if rank < found.get(name, rank + 1):
                found[name] = rank
        return found

    def _pin(self, origins: tuple[int, ...]) -> int:
        return self.distances.pack((origin, 0) for origin in origins)

    def _new_domain(self, name: str, run: int) -> Domain:
        verdict = self.classifier.classify(name)
        made = Domain(len(self.register.domain_names), name, verdict.klass, self._pin(verdict.origins), run)
        self.register.add_domain(made.id, name)
        self.changes.domains[made.id] = made
        self._domains.put(made.id, made)
        return made

    def _domain_of_row(self, row: tuple[Any, ...]) -> Domain:
        number, name, run, closed, closed_at, count, lost, at, outcome, status, delay, first = row
        verdict = self.classifier.classify(name)
        made = Domain(number, name, verdict.klass, self._pin(verdict.origins), run)
        made.closed, made.closed_at_request, made.request_count, made.lost_requests = (
            closed,
            closed_at,
            count,
            lost,
        )
        made.robots_at, made.robots_outcome, made.robots_status = at, outcome, status
        made.crawl_delay, made.first_seen_run = delay, first
        return made

    # -- pages ---------------------------------------------------------------------------------------

    def pages(self, numbers: Iterable[int]) -> list[Page]:
        """Pages by their numbers, in any order; every number must exist."""
        found: list[Page] = []
        missing: list[int] = []
        for number in numbers:
            page = self.in_hand.get(number)
            if page is None:
                missing.append(number)
            else:
                found.append(page)
        for chunk in _chunks(sorted(missing)):
            rows = self.db.execute(_PAGES, (chunk,)).fetchall()
            self._load_domains([row[4] for row in rows])
            found += [self._page_of_row(row) for row in rows]
        return found

    def page(self, number: int) -> Page:
        return self.in_hand.get(number) or self.pages([number])[0]

    def new_page(self, link: Link, hash_: int, domain: Domain, run: int, at: str) -> Page:
        """A page that is not known yet, to be found by this hash."""
        number = self.register.add(hash_, domain.id)
        made = Page(number, link.key, hash_, link.wire if link.wire != link.key else None, domain, run, at)
        self.changes.new_pages.append(made)
        self.in_hand[number] = made
        return made

    def _page_of_row(self, row: tuple[Any, ...]) -> Page:
        (
            number,
            key,
            hash_,
            wire,
            domain_id,
            state,
            error,
            reach,
            depth,
            seen,
            visited,
            redirect,
            family,
            first,
        ) = row
        domain = self._domains.get(domain_id)
        assert domain is not None
        page = Page(number, key, hash_, wire, domain, first, "")
        page.state = page.stored_state = PageState(state)
        page.error = error
        page.reach = page.stored_reach = parse_reach(reach)
        page.depth = depth
        page.seen_run = seen
        page.visited_run = page.stored_visited_run = visited
        page.redirect_to = redirect
        page.family = family
        if page.state is _QUEUED and depth is not None:
            page.stored_priority = priority(depth, page.domain.klass)
        page.trap = shape_error(key, self.config.traps) if not page.domain.is_listed else None
        if visited is not None and visited == seen:
            if redirect is not None:
                page.visited = PageState.PROCESSED
                page.redirect_error = error if page.state is PageState.FAILED else None
            else:
                page.visited, page.visit_error = page.state, error
        self.in_hand[number] = page
        if number in self.changes.moves:  # its depth has changed already; from here on the page says so itself
            del self.changes.moves[number]
            page.reach = self.register.values[self.register.reaches[number]]
            page.depth = self.distances.nearest(page.reach)
            self.touch(page)
        return page

    def reach_of(self, number: int) -> int:
        """A page's reach as it is now."""
        kept = self.register.reaches[number]
        return self.register.values[kept] if kept else self.page(number).reach

    def set_reach(self, page: Page, reach: int) -> None:
        page.reach = reach
        self.register.reaches[page.id] = self.register.reach_number(reach)

    def move(self, number: int, reach: int) -> None:
        """A page that is not in hand has this reach (by its number) now, and nothing else of it changes."""
        moves = self.changes.moves
        if number not in moves:
            moves[number] = self.register.reaches[number]
        self.register.reaches[number] = reach

    def touch(self, page: Page) -> None:
        """This page has changed: it is to be written with the next commit."""
        if page.stored_state is not None:
            self.changes.pages[page.id] = page

    # -- links ---------------------------------------------------------------------------------------

    def out_links(self, number: int, run: int) -> tuple[int, list[int]]:
        """The kind of the links that this run's visit of the page recorded (all are of one), and their targets."""
        pending = self.changes.links.get(number)
        if pending is not None:
            return pending
        first = number << 32
        kind, targets = self.db.execute(_OUT_LINKS, (first, first + 0xFFFFFFFF, run)).fetchone()
        return kind or 0, orjson.loads(targets)

    def linked_before(self, page: Page) -> set[int]:
        """Targets that earlier visits recorded already."""
        if page.stored_visited_run is None:
            return set()
        first = page.id << 32
        return {
            row[0]
            for row in self.db.execute(
                "SELECT to_page_id FROM links WHERE id BETWEEN ? AND ?", (first, first + 0xFFFFFFFF)
            )
        }

    def redirecting_to(self, page: Page, run: int) -> set[int]:
        """Pages whose visit in this run was redirected to this one."""
        found = {
            row[0]
            for row in self.db.execute("SELECT id FROM pages WHERE redirect_to = ? AND visited_run = ?", (page.id, run))
        }
        return found | self.changes.redirects.get(page.id, set())

    # -- writing -------------------------------------------------------------------------------------

    def do_now(self, statements: Iterable[Statement]) -> None:
        """In the transaction that the next commit ends."""
        with self._writing():
            for sql, parameters in statements:
                self.db.execute(sql, parameters)

    def commit(self, run: int, extra: Sequence[Statement] = ()) -> Changes:
        """Write everything that changed, in one transaction, and return what it was."""
        done, self.changes = self.changes, Changes()
        with self._writing():
            self._writer.write(done, run)
            for sql, parameters in extra:
                self.db.execute(sql, parameters)
            if not self._is_bulk:
                self.db.execute("COMMIT")
        self._settle_memory(done)
        self._checkpoints.look(self.db)
        return done

    def begin_bulk(self) -> None:
        """Draw a whole map: nobody reads it before it is whole, and a crash just means doing it again.

        So there is no journal, nothing is synced, all commits are one transaction, and what is written often goes to
        the file when the cache is full.
        """
        self._is_bulk = True
        for sql in (
            "PRAGMA journal_mode = OFF",
            "PRAGMA synchronous = OFF",
            "PRAGMA cache_size = -262144",
        ):
            self.db.execute(sql)

    def end_bulk(self) -> None:
        """The map is whole: from here on it is one like any other."""
        self._is_bulk = False
        self._settle_sums()
        if self.db.in_transaction:
            self.db.execute("COMMIT")
        self.db.execute("PRAGMA synchronous = NORMAL")
        self.db.execute("PRAGMA journal_mode = WAL")

    def make_room(self) -> None:
        """Write the moves, if there are many: into the transaction that the next commit ends."""
        if len(self.changes.moves) < _MOVES:
            return
        with self._writing():
            self._writer.write_moves(self.changes)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Inside a transaction, begun already or not. What goes wrong in here takes all of it back."""
        if not self.db.in_transaction:
            self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._sums.forget()
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise

    def _settle_sums(self) -> None:
        """Before the map is left alone: whoever reads it then has nothing to add up."""
        if self._sums:
            with self._writing():
                self._sums.settle()
                self.db.execute("COMMIT")

    def _settle_memory(self, done: Changes) -> None:
        """After a commit: what was written is what is stored, and nothing is in hand."""
        standings, errors = self.register.standings, self.counts["errors"]
        for page in [*done.new_pages, *done.pages.values()]:
            was_error = page.stored_state in ERRORS and not page.is_reentered
            errors += (page.state in ERRORS) - was_error
            if page.visit is not None:
                self.counts["pages"] += 1
            standings[page.id] = standing_of(page.state, page.visited is not None)
        for number in done.closed_pages:  # of some the page in hand did not know
            standings[number] = OTHER
        self.counts["errors"] = errors
        self.counts["known"] += len(done.new_pages)
        self.counts["links"] += done.new_links
        self.in_hand.clear()
        self.register.settle_reaches()
        self._domains.age()


_DOMAIN_COLUMNS = (
    "domain_states.id, domain, run, closed_reason, closed_at_request, request_count, lost_requests, robots_fetched_at,"
    " robots_outcome, robots_status, crawl_delay, first_seen_run"
)

_DOMAINS = (
    f"SELECT {_DOMAIN_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN domain_states ON domain_states.id = wanted.value"
)


def _chunks(items: Sequence[int]) -> Iterator[str]:
    """The numbers as JSON lists of bounded length."""
    for start in range(0, len(items), _CHUNK):
        yield json_list(items[start : start + _CHUNK])


def _open(path: Path) -> sqlite3.Connection:
    """Connect for writing. Raises StoreError with the way out where the file cannot be used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # An index over millions of links is sorted in a file, beside the map, where there is room for such things.
        # In memory it takes longer, too (4 million links: 3.2 s against 1.9 s, and 80 MB).
        os.environ.setdefault("SQLITE_TMPDIR", str(path.parent))
        db = sqlite3.connect(path, isolation_level=None, timeout=30, cached_statements=256)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        # No PRAGMA foreign_keys: the ingest numbers runs and domains itself, and to look every one up took 1 %.
        db.execute("PRAGMA cache_size = -40960")  # 40 MB: a batch goes all over a large map, more gains nothing
        db.execute("PRAGMA wal_autocheckpoint = 0")  # see ingest/sqlite/checkpoint.py
        db.execute("PRAGMA journal_size_limit = 0")  # a log that begins anew begins as an empty file
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return db
    except OSError as problem:
        raise StoreError(f"the database {path} cannot be opened: {problem.strerror}") from None
    except sqlite3.DatabaseError as problem:
        raise StoreError(describe(problem, path)) from None


def describe(problem: sqlite3.Error, path: Path) -> str:
    """A database error in one sentence, with what to do."""
    text = str(problem)
    if "not a database" in text or "malformed" in text or "corrupt" in text:
        return (
            f"the database {path} is damaged ({text}); move it aside and draw it anew from the spools with: "
            "sumi-ripple replay CONFIG --into new.db"
        )
    if "disk I/O error" in text:
        return f"the disk under {path} has no room or fails ({text}); mend that and start again, nothing is lost"
    if "full" in text:
        return f"the disk is full: {path} cannot be written; make room and start again, nothing is lost"
    if "readonly" in text or "unable to open" in text:
        return f"the database {path} cannot be written ({text}); mend its permissions and start again"
    return f"the database {path} failed: {text}"
