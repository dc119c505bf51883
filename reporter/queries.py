"""The reporter's only door to the database: every statement it asks, read-only (`mode=ro`), in one snapshot.

    open_map(database)            a context manager: a connection inside one read transaction
    NoDatabase, NotAMap           there is no such file; it is not a map (or a newer one); both are MapError
    NoSuchRun                     the map does not hold the run that was asked for (a NotAMap)

What keeps this fast on millions of pages: `pages` is scanned from end to end at most twice, `links` is only read
forwards (a page's out-links are one range of `links.id`), and sums by domain come from `domain_links`. Nothing
here needs the ingest's READING_INDEXES, which do not exist while a run is under way.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from crawler.model.errors import SumiError
from crawler.model.states import PageState
from crawler.model.urls import hash64

OLDEST, SCHEMA_VERSION = 2, 3  # what this reporter can read
LINK_FOLLOWED, LINK_NOT_FOLLOWED, LINK_REDIRECT = 0, 1, 2
_LOW = 0xFFFFFFFF


class MapError(SumiError):
    """The database cannot be read as a map; the message is one sentence for a person."""


class NoDatabase(MapError):
    """There is no file there."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"there is no database at {path}: nothing has been crawled yet")
        self.path = path


class NotAMap(MapError):
    """There is a file, but not a Sumi-Ripple database that this version can read."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} is not a Sumi-Ripple database that can be read: {why}")
        self.path = path


class NoSuchRun(NotAMap):
    """The map is fine, but it does not show the run that was asked for."""

    def __init__(self, path: Path, why: str) -> None:
        MapError.__init__(self, f"{path}: {why}")
        self.path = path


class RunRow(NamedTuple):
    id: int
    started_at: str
    finished_at: str | None
    status: str


class DomainRow(NamedTuple):
    id: int
    domain: str
    klass: str
    run: int
    request_count: int
    rate_limited: int
    closed_reason: str | None
    closed_at_request: int | None
    robots_outcome: str | None
    crawl_delay: float | None
    lost_requests: int


class PageRow(NamedTuple):
    id: int
    url: str
    wire_url: str | None
    domain: str
    domain_id: int
    state: str
    title: str | None
    status_code: int | None
    content_type: str | None
    visited_at: str | None
    discovered_at: str
    discovered_run: int
    seen_run: int
    visited_run: int | None
    error_message: str | None
    retry_count: int
    depth: int | None
    redirect_to: int | None
    nofollow: int
    links_cut: int


class BrokenLink(NamedTuple):
    """One target (dead, or moved for good) that pages of one quality domain link to."""

    domain_id: int
    target: int
    pages: int
    examples: tuple[int, ...]


# What scanning `pages` counts: (domain_id, state, depth, slug of the error).
PageCounts = Counter[tuple[int, str, int | None, str | None]]


@contextmanager
def open_map(database: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection inside one transaction: whatever is asked, it is asked of one moment."""
    database = Path(database)
    if not database.is_file():
        if database.exists():
            raise NotAMap(database, "it is not a file")
        raise NoDatabase(database)
    connection = _connect(database)
    try:
        _check(connection, database)
        yield connection
    except sqlite3.DatabaseError as problem:
        raise NotAMap(database, str(problem)) from problem
    finally:
        connection.close()


def _connect(database: Path) -> sqlite3.Connection:
    uri = database.absolute().as_uri()
    try:
        return _begin(f"{uri}?mode=ro", database)
    except sqlite3.OperationalError as problem:
        # On a read-only medium WAL has nowhere to put its index; without a -wal file nothing is missed.
        wal = database.with_name(database.name + "-wal")
        if wal.exists() and wal.stat().st_size:
            raise NotAMap(database, str(problem)) from None
    try:
        return _begin(f"{uri}?mode=ro&immutable=1", database)
    except sqlite3.OperationalError as problem:
        raise NotAMap(database, str(problem)) from None


def _begin(uri: str, database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30)
    try:
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute("PRAGMA automatic_index = OFF")  # it would copy all links rather than read a range of them
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        raise
    except sqlite3.DatabaseError as problem:
        connection.close()
        raise NotAMap(database, str(problem)) from None
    return connection


def _check(connection: sqlite3.Connection, database: Path) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"meta", "runs", "pages", "links", "domain_states"} <= tables:
        raise NotAMap(database, "it has none of the tables of one")
    row = connection.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchone()
    version = str(row[0]) if row else "missing"
    try:
        number = int(version)
    except ValueError:
        raise NotAMap(database, f"its schema version is {version}") from None
    if number < OLDEST:
        raise NotAMap(
            database,
            f"its schema version is {number}, and this program knows {SCHEMA_VERSION}; draw it anew from the spools"
            " with: sumi-ripple replay CONFIG --into new.db",
        )
    if number > SCHEMA_VERSION:
        raise NotAMap(
            database,
            f"its schema version is {number}, and this program knows {SCHEMA_VERSION}; use a newer Sumi-Ripple",
        )


# -- runs and domains -------------------------------------------------------------------------------------------


def runs(connection: sqlite3.Connection) -> list[RunRow]:
    """All runs, oldest first."""
    rows = connection.execute("SELECT id, started_at, finished_at, status FROM runs ORDER BY id")
    return [RunRow(*row) for row in rows]


def shown_run(connection: sqlite3.Connection, database: Path, run: int | None) -> tuple[RunRow, bool]:
    """The run that the map shows, which is the newest, and whether it is the only one. Raises NoSuchRun."""
    known = runs(connection)
    if not known:
        raise NoSuchRun(database, "no run has been started yet")
    newest = known[-1]
    if run is not None and run != newest.id:
        if all(row.id != run for row in known):
            raise NoSuchRun(database, f"there is no run {run}; the newest is run {newest.id}")
        raise NoSuchRun(
            database,
            f"it shows run {newest.id}; `sumi-ripple replay --run {run}` draws run {run} again from the spools",
        )
    return newest, len(known) == 1


def domains(connection: sqlite3.Connection) -> dict[int, DomainRow]:
    """Every domain by its id."""
    rows = connection.execute(
        "SELECT id, domain, class, run, coalesce(request_count, 0), coalesce(rate_limited, 0), closed_reason,"
        " closed_at_request, robots_outcome, crawl_delay, lost_requests FROM domain_states"
    )
    return {row[0]: DomainRow(*row) for row in rows}


# -- the scans over pages ---------------------------------------------------------------------------------------


_STATES: tuple[str, ...] = ("queued", "depth_exceeded", "processed")  # most of a large map, so they are compared first
_STATES += tuple(str(state) for state in PageState if state not in _STATES)
_STATE_NUMBER = "CASE state " + " ".join(f"WHEN '{name}' THEN {number}" for number, name in enumerate(_STATES)) + " END"


def page_counts(connection: sqlite3.Connection, run: int) -> PageCounts:
    """How many pages that `run` saw there are of each (domain_id, state, depth, slug of the error).

    Two scans: nearly all pages have no error, and counting one number for each of those is cheaper than counting rows.
    """
    packed = connection.execute(
        f"SELECT (domain_id << 28) | (({_STATE_NUMBER}) << 24) | ifnull(depth + 1, 0) FROM pages"
        " WHERE seen_run = ? AND error_message IS NULL",
        (run,),
    )
    counts: PageCounts = Counter()
    for number, count in Counter(chain.from_iterable(packed)).items():
        depth = (number & 0xFFFFFF) - 1
        counts[number >> 28, _STATES[number >> 24 & 15], depth if depth >= 0 else None, None] = count
    counts.update(
        connection.execute(
            "SELECT domain_id, state, depth, substr(error_message, 1, instr(error_message || ':', ':') - 1) FROM pages"
            " WHERE seen_run = ? AND error_message IS NOT NULL",
            (run,),
        )
    )
    return counts


def pages_in_all(connection: sqlite3.Connection) -> int:
    """Every page ever seen, in whatever run."""
    return int(connection.execute("SELECT count(*) FROM pages").fetchone()[0])


def links_in_run(connection: sqlite3.Connection, run: int, is_only_run: bool) -> int:
    """The links that `run` saw. Links between the same two pages are one."""
    if is_only_run:
        return int(connection.execute("SELECT count(*) FROM links").fetchone()[0])
    return int(connection.execute("SELECT count(*) FROM links WHERE last_run = ?", (run,)).fetchone()[0])


def cut_pages(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    """(page id, links left out) of pages with more links than the config allows. Needs `mark_broken`."""
    return [
        (page, cut)
        for page, cut in connection.execute("SELECT id, cut FROM temp.marked WHERE cut > 0 ORDER BY cut DESC, id")
    ]


def mark_broken(connection: sqlite3.Connection, run: int) -> None:
    """Set aside, in a temporary table, the pages that later questions are about: dead, moved for good, cut."""
    connection.execute("DROP TABLE IF EXISTS temp.marked")
    connection.execute(
        "CREATE TEMP TABLE marked (id INTEGER PRIMARY KEY, kind TEXT, status INTEGER, target INTEGER, cut INTEGER)"
    )
    connection.execute(
        "INSERT INTO temp.marked"
        " SELECT id, CASE WHEN state = 'dead_link' THEN 'dead' WHEN redirect_to IS NOT NULL THEN 'moved' END,"
        "  status_code, redirect_to, links_cut FROM pages"
        " WHERE seen_run = ? AND visited_run = seen_run AND (state = 'dead_link' OR links_cut > 0"
        "  OR (redirect_to IS NOT NULL AND status_code IN (301, 308) AND state = 'processed'))",
        (run,),
    )


def mark_quality(connection: sqlite3.Connection, rows: Iterable[DomainRow]) -> None:
    """Set aside the ids of quality domains for the questions that follow links from or to them."""
    connection.execute("DROP TABLE IF EXISTS temp.quality")
    connection.execute("CREATE TEMP TABLE quality (id INTEGER PRIMARY KEY)")
    connection.executemany("INSERT INTO temp.quality VALUES (?)", [(row.id,) for row in rows if row.klass == "quality"])


def broken_links(
    connection: sqlite3.Connection, run: int, examples: int = 3
) -> tuple[list[BrokenLink], list[BrokenLink]]:
    """Links on pages of quality domains, as `run` saw them, to dead pages and to pages that moved for good.

    Needs `mark_broken` and `mark_quality`. Both lists come by quality domain, most pages first.
    """
    rows = connection.execute(
        "SELECT m.kind, p.domain_id, l.to_page_id, l.from_page_id"
        f" FROM pages p CROSS JOIN links l ON l.id BETWEEN p.id << 32 AND (p.id << 32) + {_LOW}"
        " CROSS JOIN temp.marked m ON m.id = l.to_page_id"
        " WHERE p.domain_id IN (SELECT id FROM temp.quality) AND p.visited_run = ?1"
        " AND l.last_run = ?1 AND l.kind <> 2 AND m.kind IS NOT NULL",
        (run,),
    )
    found: dict[tuple[str, int, int], tuple[int, tuple[int, ...]]] = {}
    for kind, domain_id, target, page in rows:
        count, first = found.get((kind, domain_id, target), (0, ()))
        found[kind, domain_id, target] = (count + 1, (*first, page) if len(first) < examples else first)
    ranked = sorted(found.items(), key=lambda item: (item[0][1], -item[1][0], item[0][2]))
    dead, moved = (
        [BrokenLink(domain, target, *pages) for (kind, domain, target), pages in ranked if kind == wanted]
        for wanted in ("dead", "moved")
    )
    return dead, moved


def moved_to(connection: sqlite3.Connection, pages: Iterable[int]) -> dict[int, int]:
    """Where links to pages that moved for good should lead: the end of the permanent redirects (page id → page id)."""
    answer = {}
    for page in pages:
        passed = {page}
        here = page
        while True:
            row = connection.execute(
                "SELECT target FROM temp.marked WHERE id = ? AND kind = 'moved'", (here,)
            ).fetchone()
            if row is None or row[0] in passed or len(passed) > 10:
                break
            here = row[0]
            passed.add(here)
        answer[page] = here
    return answer


def urls_of(connection: sqlite3.Connection, pages: Iterable[int]) -> dict[int, tuple[str, str, int | None]]:
    """(URL, state, status) of pages, by id."""
    answer = {}
    for page in set(pages):
        row = connection.execute("SELECT url, state, status_code FROM pages WHERE id = ?", (page,)).fetchone()
        if row is not None:
            answer[page] = row
    return answer


# -- lists ------------------------------------------------------------------------------------------------------


def most_referenced(
    connection: sqlite3.Connection, table: str, run: int, is_only_run: bool, limit: int
) -> list[tuple[str, int]]:
    """(URL, reference count) of the most linked-to rows of `blacklisted_urls` or `stubbed_urls`."""
    assert table in ("blacklisted_urls", "stubbed_urls")
    seen = "" if is_only_run else "JOIN pages p ON p.id = t.id AND p.seen_run = :run"
    rows = connection.execute(
        f"SELECT t.url, t.reference_count FROM {table} t {seen} ORDER BY t.reference_count DESC, t.url LIMIT :limit",
        {"run": run, "limit": limit},
    )
    return rows.fetchall()


def linked_by_quality(connection: sqlite3.Connection) -> list[tuple[int, int, int]]:
    """(domain id, different quality domains that link there, links), by the former. Needs `mark_quality`."""
    _sum_up(connection)
    return connection.execute(
        "SELECT to_domain_id, count(DISTINCT from_domain_id), sum(links) FROM ("
        "  SELECT from_domain_id, to_domain_id, links FROM temp.quality q CROSS JOIN domain_links l"
        f" ON l.id BETWEEN q.id << 32 AND (q.id << 32) + {_LOW}"
        "  UNION ALL SELECT from_domain_id, to_domain_id, links FROM temp.quality q CROSS JOIN temp.recent l"
        f" ON l.id BETWEEN q.id << 32 AND (q.id << 32) + {_LOW})"
        " WHERE to_domain_id <> from_domain_id GROUP BY to_domain_id ORDER BY 2 DESC, 3 DESC, 1"
    ).fetchall()


def links_to_quality(connection: sqlite3.Connection) -> list[tuple[int, int, int]]:
    """(domain id, different quality domains it links to, links) for domains that are not quality themselves."""
    _sum_up(connection)
    of_interest = (
        "WHERE to_domain_id IN (SELECT id FROM temp.quality) AND from_domain_id NOT IN (SELECT id FROM temp.quality)"
    )
    return connection.execute(
        "SELECT from_domain_id, count(DISTINCT to_domain_id), sum(links) FROM ("
        f"  SELECT from_domain_id, to_domain_id, links FROM domain_links {of_interest}"
        f"  UNION ALL SELECT from_domain_id, to_domain_id, links FROM temp.recent {of_interest})"
        " GROUP BY from_domain_id ORDER BY 2 DESC, 3 DESC, 1"
    ).fetchall()


def domain_links(connection: sqlite3.Connection) -> Iterator[tuple[int, int, int]]:
    """(from domain, to domain, links), in the order of the numbers. One row is held at a time."""
    _sum_up(connection)
    rows = connection.execute(
        "SELECT id, links FROM domain_links UNION ALL SELECT id, links FROM temp.recent ORDER BY 1"
    )
    for pair, same in groupby(rows, key=itemgetter(0)):
        yield pair >> 32, pair & _LOW, sum(links for _, links in same)


def _sum_up(connection: sqlite3.Connection) -> None:
    """Set aside, once for a connection, the sums of those links that are too new to be in `domain_links`."""
    if connection.execute("SELECT 1 FROM temp.sqlite_master WHERE name = 'recent'").fetchone() is None:
        connection.execute(
            "CREATE TEMP TABLE recent (id INTEGER PRIMARY KEY, from_domain_id INTEGER, to_domain_id INTEGER,"
            " links INTEGER)"
        )
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'unsummed_links'").fetchone() is None:
            return  # a map of format 2, which has summed up everything
        connection.execute(
            "INSERT INTO temp.recent SELECT (from_domain_id << 32) | to_domain_id, from_domain_id, to_domain_id,"
            " count(*) FROM unsummed_links GROUP BY 1"
        )


def closed_families(connection: sqlite3.Connection, run: int) -> list[tuple[str, str, str]]:
    """(domain, family, error) of the look-alike URLs that have had their share."""
    return connection.execute(
        "SELECT domain, family, error FROM closed_families WHERE run = ? ORDER BY domain, family", (run,)
    ).fetchall()


def closed_family(connection: sqlite3.Connection, run: int, domain: str, family: str) -> str | None:
    """The error that further pages of a family get in this run; None while it is open."""
    row = connection.execute(
        "SELECT error FROM closed_families WHERE run = ? AND domain = ? AND family = ?", (run, domain, family)
    ).fetchone()
    return None if row is None else str(row[0])


def quarantined(connection: sqlite3.Connection) -> list[tuple[str, str, int, int]]:
    """(writer, reason, lines, bytes) of spool lines that did not verify."""
    return connection.execute(
        "SELECT writer, reason, count(*), sum(length) FROM quarantine GROUP BY writer, reason ORDER BY 3 DESC, 1, 2"
    ).fetchall()


# -- one page ---------------------------------------------------------------------------------------------------

_PAGE = (
    "SELECT id, url, wire_url, domain, domain_id, state, title, status_code, content_type, visited_at, discovered_at,"
    " discovered_run, seen_run, visited_run, error_message, retry_count, depth, redirect_to, nofollow, links_cut"
    " FROM pages"
)


def page_by_key(connection: sqlite3.Connection, key: str) -> PageRow | None:
    """The page with this key, if it was ever seen."""
    for probe in range(8):  # two keys with one hash are next to impossible, and sit on the next probe
        row = connection.execute(f"{_PAGE} WHERE url_hash = ?", (hash64(key, probe),)).fetchone()
        if row is None:
            return None
        if row[1] == key:
            return PageRow(*row)
    return None


def page_by_id(connection: sqlite3.Connection, page: int) -> PageRow | None:
    row = connection.execute(f"{_PAGE} WHERE id = ?", (page,)).fetchone()
    return PageRow(*row) if row else None


def depths_of(connection: sqlite3.Connection, page: int) -> list[tuple[int, str, int]]:
    """(origin number, origin, depth) of a page, nearest first."""
    return connection.execute(
        "SELECT id & 65535, quality_origin, depth FROM page_depths WHERE id BETWEEN ?1 << 16 AND (?1 << 16) + 65535"
        " ORDER BY depth, quality_origin",
        (page,),
    ).fetchall()


def depth_of(connection: sqlite3.Connection, page: int, origin: int) -> int | None:
    """A page's depth for one origin."""
    row = connection.execute("SELECT depth FROM page_depths WHERE id = ? << 16 | ?", (page, origin)).fetchone()
    return None if row is None else int(row[0])


def link_kind(connection: sqlite3.Connection, source: int, target: int, run: int) -> int | None:
    """What kind of link `run` saw from one page to another; None: none."""
    row = connection.execute(
        "SELECT kind FROM links WHERE id = (? << 32 | ?) AND last_run = ?", (source, target, run)
    ).fetchone()
    return None if row is None else int(row[0])


def linking_pages(
    connection: sqlite3.Connection, page: int, domain_id: int, run: int | None, max_depth: int | None = None
) -> Iterator[tuple[int, int]]:
    """(page id, kind of link) of the pages that link to this one, in `run` or ever; those of its own domain first.

    With `max_depth`, pages whose least depth is greater may be left out. Without `idx_links_to` this asks, of every
    visited page in the domains that link to this one's, whether there is such a link: memory stays small (a number or
    two for each visited page), and `links` is never read from end to end.
    """
    if has_reverse_index(connection):
        yield from connection.execute(
            "SELECT from_page_id, kind FROM links WHERE to_page_id = ?1 AND (?2 IS NULL OR last_run = ?2)", (page, run)
        )
        return
    _mark_visited(connection)
    _sum_up(connection)
    sources = [domain_id]
    sources += [
        source
        for (source,) in connection.execute(
            "SELECT from_domain_id FROM domain_links WHERE to_domain_id = ?1 AND from_domain_id <> ?1"
            " UNION SELECT from_domain_id FROM temp.recent WHERE to_domain_id = ?1 AND from_domain_id <> ?1",
            (domain_id,),
        )
    ]
    for source in sources:
        yield from connection.execute(
            "SELECT l.from_page_id, l.kind FROM temp.visited v CROSS JOIN links l ON l.id = (v.id << 32 | ?1)"
            " WHERE v.domain_id = ?2 AND (?3 IS NULL OR l.last_run = ?3) AND (?4 IS NULL OR v.depth <= ?4)",
            (page, source, run, max_depth),
        )


def _mark_visited(connection: sqlite3.Connection) -> None:
    """Set aside, by domain and once for a connection, the pages that can have links."""
    if connection.execute("SELECT 1 FROM temp.sqlite_master WHERE name = 'visited'").fetchone() is None:
        connection.execute(
            "CREATE TEMP TABLE visited (domain_id INTEGER, id INTEGER, depth INTEGER, PRIMARY KEY (domain_id, id))"
            " WITHOUT ROWID"
        )
        connection.execute(
            "INSERT INTO temp.visited SELECT domain_id, id, depth FROM pages WHERE visited_run IS NOT NULL"
        )


def has_reverse_index(connection: sqlite3.Connection) -> bool:
    """Can links be asked backwards?"""
    row = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = 'idx_links_to'").fetchone()
    return row is not None


def redirects_here(connection: sqlite3.Connection, page: int) -> list[int]:
    """The pages whose visits were redirected to this one."""
    rows = connection.execute(
        "SELECT id FROM pages WHERE redirect_to = ? AND redirect_to IS NOT NULL ORDER BY id", (page,)
    )
    return [row[0] for row in rows]


def domain_by_name(connection: sqlite3.Connection, domain: str) -> tuple[DomainRow, str | None, str | None] | None:
    """A domain with its robots.txt and when that was fetched."""
    row = connection.execute(
        "SELECT id, domain, class, run, coalesce(request_count, 0), coalesce(rate_limited, 0), closed_reason,"
        " closed_at_request, robots_outcome, crawl_delay, lost_requests, robots_txt, robots_fetched_at"
        " FROM domain_states WHERE domain = ?",
        (domain,),
    ).fetchone()
    return (DomainRow(*row[:11]), row[11], row[12]) if row else None
