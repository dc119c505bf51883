"""Runs, domains, and counts over all pages."""

from __future__ import annotations

from collections import Counter
from itertools import chain

from crawler.database.map_errors import NoSuchRun
from crawler.database.reader import MapReader
from crawler.model.states import PageState
from reporter.queries.rows import DOMAIN_COLUMNS, DomainRow, RunRow

# (domain_id, state, depth, slug of the error) → pages
PageCounts = Counter[tuple[int, str, int | None, str | None]]

_STATES: tuple[str, ...] = ("queued", "depth_exceeded", "processed")  # most of a large map, so they are compared first
_STATES += tuple(str(state) for state in PageState if state not in _STATES)
_STATE_NUMBER = "CASE state " + " ".join(f"WHEN '{name}' THEN {number}" for number, name in enumerate(_STATES)) + " END"
# Slugs that all waiting pages of a domain get at once: most of those with an error. 0 is none.
_SHARED_SLUGS: tuple[str | None, ...] = (None, "request-limit", "breaker-open", "rate-limited")
_SLUG = "substr(error_message, 1, instr(error_message || ':', ':') - 1)"
_SLUG_NUMBER = "CASE WHEN error_message IS NULL THEN 0 " + (  # ";" is the character after ":"
    " ".join(
        f"WHEN error_message >= '{slug}:' AND error_message < '{slug};' THEN {number}"
        for number, slug in enumerate(_SHARED_SLUGS)
        if slug
    )
    + " END"
)
# A page in one number while it is counted: domain, slug, state, depth + 1 (0: it has none).
_DOMAIN_SHIFT, _SLUG_SHIFT, _STATE_SHIFT = 30, 28, 24
_SLUG_LOW, _STATE_LOW = (1 << _DOMAIN_SHIFT - _SLUG_SHIFT) - 1, (1 << _SLUG_SHIFT - _STATE_SHIFT) - 1
_DEPTH_LOW = (1 << _STATE_SHIFT) - 1


def runs(reader: MapReader) -> list[RunRow]:
    """All runs, oldest first."""
    return [RunRow(*row) for row in reader.rows("SELECT id, started_at, finished_at, status FROM runs ORDER BY id")]


def shown_run(reader: MapReader, run: int | None) -> tuple[RunRow, bool]:
    """The run that the map shows, which is the newest, and whether it is the only one. Raises NoSuchRun."""
    known = runs(reader)
    if not known:
        raise NoSuchRun(reader.path, "no run has been started yet")
    newest = known[-1]
    if run is not None and run != newest.id:
        if all(row.id != run for row in known):
            raise NoSuchRun(reader.path, f"there is no run {run}; the newest is run {newest.id}")
        raise NoSuchRun(
            reader.path,
            f"it shows run {newest.id}; `sumi-ripple replay --run {run}` rebuilds run {run} from the spools",
        )
    return newest, len(known) == 1


def domains(reader: MapReader) -> dict[int, DomainRow]:
    """Every domain by its id."""
    return {row[0]: DomainRow(*row) for row in reader.rows(f"SELECT {DOMAIN_COLUMNS} FROM domain_states ORDER BY id")}


def breakers(reader: MapReader, run: int) -> dict[int, tuple[str, int, str]]:
    """By domain the state, changes and last words of the circuit breakers that moved in this run."""
    if not reader.has("breakers"):
        return {}
    rows = reader.rows(
        "SELECT id, state, changes, coalesce(detail, '') FROM breakers WHERE run = ? ORDER BY id", (run,)
    )
    return {number: (state, changes, detail) for number, state, changes, detail in rows}


def page_counts(reader: MapReader, run: int) -> PageCounts:
    """The number of pages that `run` saw, by (domain_id, state, depth, slug of the error).

    Nearly all pages have no error or that of a closed domain, and counting one number for each of those is cheaper than
    counting rows. The others (NULL) take a second scan, if there are any.
    """
    rows = reader.rows(
        f"SELECT ((domain_id << {_DOMAIN_SHIFT - _SLUG_SHIFT} | slug) << {_SLUG_SHIFT})"
        f" | (({_STATE_NUMBER}) << {_STATE_SHIFT}) | ifnull(depth + 1, 0)"
        f" FROM (SELECT domain_id, state, depth, {_SLUG_NUMBER} AS slug FROM pages WHERE seen_run = ?) seen",
        (run,),
    )
    packed: Counter[int | None] = Counter(chain.from_iterable(rows))
    others = packed.pop(None, 0)
    counts: PageCounts = Counter()
    for number, count in packed.items():
        assert number is not None
        depth = (number & _DEPTH_LOW) - 1
        state = _STATES[number >> _STATE_SHIFT & _STATE_LOW]
        slug = _SHARED_SLUGS[number >> _SLUG_SHIFT & _SLUG_LOW]
        counts[number >> _DOMAIN_SHIFT, state, depth if depth >= 0 else None, slug] = count
    if others:
        counts.update(
            reader.rows(
                f"SELECT domain_id, state, depth, {_SLUG} FROM pages"
                f" WHERE seen_run = ? AND error_message IS NOT NULL AND {_SLUG_NUMBER} IS NULL",
                (run,),
            )
        )
    return counts


def pages_in_all(reader: MapReader) -> int:
    """Every page ever seen, in any run."""
    return reader.number("SELECT count(*) FROM pages")


def links_in_run(reader: MapReader, run: int, is_only_run: bool) -> int:
    """The links that `run` saw. Links between the same two pages are one."""
    if is_only_run:
        return reader.number("SELECT count(*) FROM links")
    return reader.number("SELECT count(*) FROM links WHERE last_run = ?", (run,))


def most_referenced(reader: MapReader, table: str, run: int, is_only_run: bool, limit: int) -> list[tuple[str, int]]:
    """(URL, reference count) of the most linked-to rows of `blacklisted_urls` or `stubbed_urls`."""
    assert table in ("blacklisted_urls", "stubbed_urls")
    seen = "" if is_only_run else "JOIN pages p ON p.id = t.id AND p.seen_run = :run"
    rows = reader.rows(
        f"SELECT t.url, t.reference_count FROM {table} t {seen} ORDER BY t.reference_count DESC, t.url LIMIT :limit",
        {"run": run, "limit": limit},
    )
    return [(url, count) for url, count in rows]


def closed_families(reader: MapReader, run: int) -> list[tuple[str, str, str]]:
    """(domain, family, error) of the similar URLs whose visit limit is reached."""
    sql = "SELECT domain, family, error FROM closed_families WHERE run = ? ORDER BY domain, family"
    return [(domain, family, error) for domain, family, error in reader.rows(sql, (run,))]


def quarantined(reader: MapReader) -> list[tuple[str, str, int, int]]:
    """(writer, reason, lines, bytes) of spool lines that did not verify."""
    rows = reader.rows(
        "SELECT writer, reason, count(*), sum(length) FROM quarantine GROUP BY writer, reason ORDER BY 3 DESC, 1, 2"
    )
    return [(writer, reason, lines, length) for writer, reason, lines, length in rows]
