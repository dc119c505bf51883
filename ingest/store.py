"""The only writable connection to the map. Loads what a batch needs, and commits what it changed in one transaction
(`ingest.writing` knows how). Everything is asked for in batches: one statement for many pages.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import orjson

from crawler.classify import Classifier
from crawler.control import now_text
from crawler.errors import SumiError
from crawler.settings import Config
from crawler.spool import Cursor
from crawler.states import ERRORS, PageState
from crawler.traps import shape_error
from crawler.urls import hash64
from ingest.depth import NOWHERE, Distances, parse_reach
from ingest.known import Domain, Generations, Page
from ingest.plan import priority
from ingest.schema import READING_INDEXES, SCHEMA_VERSION, TABLES
from ingest.writing import Changes, ChangeWriter, json_list

_PAGE_COLUMNS = (
    "pages.id, url, url_hash, wire_url, domain_id, state, error_message, reach, depth, seen_run, visited_run,"
    " redirect_to, family, discovered_run"
)
# A list as one parameter: the statement is prepared once, whatever the number.
_PAGES_BY_HASH = f"SELECT {_PAGE_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN pages ON pages.url_hash = wanted.value"
_PAGES_BY_ID = f"SELECT {_PAGE_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN pages ON pages.id = wanted.value"
_OUT_LINKS = (
    "SELECT to_page_id, kind, reach FROM links CROSS JOIN pages ON pages.id = to_page_id"
    " WHERE links.id BETWEEN ? AND ? AND last_run = ?"
)
_CHUNK = 5000
GENERATION = 40_000  # pages kept in memory, twice, beside those of the batch at hand


class StoreError(SumiError):
    """The map cannot be used; the message says why and what to do."""


class Store:
    """The map on disk. One process has one of these; everyone else reads with `mode=ro`."""

    def __init__(self, path: Path, config: Config) -> None:
        self.path = path
        self.config = config
        self.db = _open(path)
        self.distances = Distances(config.crawler.max_depth, len(config.quality))
        self.classifier = Classifier(config)
        self.changes = Changes()
        self._pages: Generations[str, Page] = Generations(GENERATION)
        self._pages_by_id: Generations[int, Page] = Generations(GENERATION)
        # A page holds on to its domain; as long as one does, everybody must get that very object.
        self._domains: WeakValueDictionary[str, Domain] = WeakValueDictionary()
        self._domains_by_id: WeakValueDictionary[int, Domain] = WeakValueDictionary()
        self._recent_domains: Generations[str, Domain] = Generations(20_000)
        self._absent_domains: set[str] = set()  # looked for during this batch, and not there
        self._moved_hashes: dict[str, int] = {}  # keys whose first hash another page has already
        self.is_fresh = self._prepare()
        self._load_origins()
        self._next_page = self._first("SELECT coalesce(max(id), 0) + 1 FROM pages")
        self._next_domain = self._first("SELECT coalesce(max(id), 0) + 1 FROM domain_states")
        self.counts = self._load_counts()
        self._writer = ChangeWriter(self.db, self.distances, self._origins, self.counts)

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
        if version != str(SCHEMA_VERSION):
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
            "known": self._next_page - 1,
            "links": self._first("SELECT coalesce(sum(links), 0) FROM domain_links"),
            "frontier": self._first("SELECT count(*) FROM frontier"),
            "errors": failed,
        }

    def begin_counting(self) -> None:
        """A new run: what it has visited, what waits and what failed is counted from nothing."""
        self.counts |= {"pages": 0, "frontier": 0, "errors": 0}

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
        try:
            self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error:
            pass  # a reader is in the way; what is in the -wal is as safe there
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
        found = self._recent_domains.get(name) or self._domains.get(name)
        if found is None:
            if name not in self._absent_domains:
                self.fetch_domains([name])
                found = self._domains.get(name)
            if found is None:
                found = self._new_domain(name, run)
            self._domains[name] = self._domains_by_id[found.id] = found
            self._recent_domains.put(name, found)
            self._absent_domains.discard(name)
        if found.run < run:
            found.enter_run(run)
            self.changes.domains[found.id] = found
        return found

    def fetch_domains(self, names: Iterable[str]) -> None:
        """Bring these domains into memory, as far as they exist; the others are then known to be new."""
        missing = {name for name in names if name not in self._domains} - self._absent_domains
        if not missing:
            return
        wanted = orjson.dumps(sorted(missing)).decode()
        for row in self.db.execute(_DOMAINS_BY_NAME, (wanted,)).fetchall():
            found = self._domain_of_row(row)
            self._domains[found.name] = self._domains_by_id[found.id] = found
            self._recent_domains.put(found.name, found)
            missing.discard(found.name)
        self._absent_domains |= missing

    def _domain_by_id(self, number: int) -> Domain:
        found = self._domains_by_id.get(number)
        if found is None:
            row = self.db.execute(f"SELECT {_DOMAIN_COLUMNS} FROM domain_states WHERE id = ?", (number,)).fetchone()
            found = self._domain_of_row(row)
            self._domains[found.name] = self._domains_by_id[number] = found
            self._recent_domains.put(found.name, found)
        return found

    def _pin(self, origins: tuple[int, ...]) -> int:
        return self.distances.pack((origin, 0) for origin in origins)

    def _new_domain(self, name: str, run: int) -> Domain:
        verdict = self.classifier.classify(name)
        made = Domain(self._next_domain, name, verdict.klass, self._pin(verdict.origins), run)
        self._next_domain += 1
        self.changes.domains[made.id] = made
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

    @property
    def young_pages(self) -> dict[str, Page]:
        """Pages asked for lately, by key: a first, quick look before `known_page`."""
        return self._pages.young

    def known_page(self, key: str) -> Page | None:
        """A page that is in memory. After `fetch`, every page of the batch that exists at all is."""
        return self._pages.get(key)

    def fetch(self, wanted: dict[str, int]) -> None:
        """Bring these pages (key → hash) into memory, as far as they exist."""
        missing = {hash_: key for key, hash_ in wanted.items() if self._pages.get(key) is None}
        probe = 0
        while missing:
            collided: dict[int, str] = {}
            for chunk in _chunks(sorted(missing)):
                for row in self.db.execute(_PAGES_BY_HASH, (chunk,)).fetchall():
                    key = missing[row[2]]
                    if row[1] == key:
                        self._page_of_row(row)
                    else:  # two texts of one hash: the second stands under its next one
                        collided[hash64(key, probe + 1)] = key
                        self._moved_hashes[key] = hash64(key, probe + 1)
            missing, probe = collided, probe + 1

    def pages_by_id(self, numbers: Iterable[int]) -> list[Page]:
        """Pages by their numbers, in any order; every number must exist."""
        found: list[Page] = []
        missing: list[int] = []
        in_young, anywhere = self._pages_by_id.young.get, self._pages_by_id.get
        for number in numbers:
            page = in_young(number) or anywhere(number)
            if page is None:
                missing.append(number)
            else:
                found.append(page)
        for chunk in _chunks(sorted(missing)):
            found += [self._page_of_row(row) for row in self.db.execute(_PAGES_BY_ID, (chunk,)).fetchall()]
        return found

    def new_page(self, key: str, hash_: int, wire: str | None, domain: Domain, run: int, at: str) -> Page:
        made = Page(self._next_page, key, self._moved_hashes.pop(key, hash_), wire, domain, run, at)
        self._next_page += 1
        self.changes.new_pages.append(made)
        self._pages.put(key, made)
        self._pages_by_id.put(made.id, made)
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
        known = self._pages_by_id.get(number) or self._pages.get(key)
        if known is not None:  # forgotten under one name only: there is one object for a page, whoever asks
            self._pages.put(key, known)
            self._pages_by_id.put(number, known)
            return known
        page = Page(number, key, hash_, wire, self._domain_by_id(domain_id), first, "")
        page.state = page.stored_state = PageState(state)
        page.error = error
        page.reach = page.stored_reach = parse_reach(reach)
        page.depth = depth
        page.seen_run = seen
        page.visited_run = page.stored_visited_run = visited
        page.redirect_to = redirect
        page.family = family
        if page.state is PageState.QUEUED and depth is not None:
            page.stored_priority = priority(depth, page.domain.klass)
        page.trap = shape_error(key, self.config.traps) if not page.domain.is_listed else None
        if visited is not None and visited == seen:
            if redirect is not None:
                page.visited = PageState.PROCESSED
                page.redirect_error = error if page.state is PageState.FAILED else None
            else:
                page.visited, page.visit_error = page.state, error
        self._pages.put(key, page)
        self._pages_by_id.put(number, page)
        return page

    def touch(self, page: Page) -> None:
        """This page has changed: it is to be written with the next commit."""
        if page.stored_state is not None:
            self.changes.pages[page.id] = page

    # -- links ---------------------------------------------------------------------------------------

    def out_links(self, page: Page, run: int) -> tuple[int, list[tuple[int, int]]]:
        """The kind of the links that this run's visit of the page recorded (all are of one), and for each target
        its number and its reach as it is stored: what is in memory may know better.
        """
        pending = self.changes.links.get(page.id)
        if pending is not None:
            return (pending[0][1] if pending else 0), [(target, NOWHERE) for target, _ in pending]
        first = page.id << 32
        rows = self.db.execute(_OUT_LINKS, (first, first + 0xFFFFFFFF, run)).fetchall()
        return (rows[0][1] if rows else 0), [(target, parse_reach(reach)) for target, _, reach in rows]

    def page_in_memory(self, number: int) -> Page | None:
        return self._pages_by_id.get(number)

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

    def commit(self, run: int, extra: Sequence[tuple[str, tuple[Any, ...]]] = ()) -> Changes:
        """Write everything that changed, in one transaction, and return what it was."""
        done, self.changes = self.changes, Changes()
        db = self.db
        db.execute("BEGIN IMMEDIATE")
        try:
            self._writer.write(done, run)
            for sql, parameters in extra:
                db.execute(sql, parameters)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        self._settle_memory(done)
        return done

    def _settle_memory(self, done: Changes) -> None:
        """After a commit: what was written is what is stored; and the oldest memories may go."""
        for page in [*done.new_pages, *done.pages.values()]:
            was_error = page.stored_state in ERRORS and not page.is_reentered
            self.counts["errors"] += (page.state in ERRORS) - was_error
            if page.visit is not None:
                self.counts["pages"] += 1
                page.stored_visited_run = page.visited_run
                page.visit = None
            page.stored_state = page.state
            page.stored_reach = page.reach
            page.is_reentered = False
        self._absent_domains.clear()
        self.counts["known"] = self._next_page - 1
        self.counts["links"] += sum(done.domain_links.values())
        self._pages.age()
        self._pages_by_id.age()
        self._recent_domains.age()


_DOMAIN_COLUMNS = (
    "domain_states.id, domain, run, closed_reason, closed_at_request, request_count, lost_requests, robots_fetched_at,"
    " robots_outcome, robots_status, crawl_delay, first_seen_run"
)

_DOMAINS_BY_NAME = (
    f"SELECT {_DOMAIN_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN domain_states ON domain = wanted.value"
)


def _chunks(items: Sequence[int]) -> Iterator[str]:
    """The numbers as JSON lists of bounded length."""
    for start in range(0, len(items), _CHUNK):
        yield json_list(items[start : start + _CHUNK])


def _open(path: Path) -> sqlite3.Connection:
    """Connect for writing. Raises StoreError with the way out where the file cannot be used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, isolation_level=None, timeout=30, cached_statements=256)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA cache_size = -98304")  # 96 MB
        db.execute("PRAGMA wal_autocheckpoint = 50000")  # 200 MB: what is written often goes to the file once
        db.execute("PRAGMA temp_store = MEMORY")
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
