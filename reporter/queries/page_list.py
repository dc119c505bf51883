"""Pages by filters, a few at a time, in the order of their numbers.

The list goes on after a number, so that every part of it costs the same. A part looks at LOOKED pages at most: where
the filters pass few of them, it may be short, or empty, and the list goes on all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from crawler.database.reader import MapReader, Row
from crawler.model.states import ERRORS

LOOKED = 50_000  # pages that one part looks at


class ListedPage(NamedTuple):
    id: int
    url: str
    domain: str
    klass: str
    state: str
    title: str | None
    status: int | None
    depth: int | None
    error: str | None
    origin: str
    visited_at: str | None
    content_type: str | None


@dataclass(frozen=True, slots=True)
class PageFilters:
    """Empty or None: any. `state` may be `errors`; `error` is the beginning of the message: a slug."""

    state: str = ""
    domain_id: int | None = None
    klass: str = ""
    depth: int | None = None
    status: int | None = None
    error: str = ""
    origin: str = ""


_COLUMNS = (
    "p.id, p.url, p.domain, d.class, p.state, p.title, p.status_code, p.depth, p.error_message, {origin},"
    " p.visited_at, p.content_type"
)


def list_pages(
    reader: MapReader, run: int, filters: PageFilters, after: int, limit: int
) -> tuple[list[ListedPage], int | None]:
    """At most `limit` pages that `run` saw, after this number; and the number to go on from, None at the end."""
    found: list[ListedPage] = []
    end: Row | None = None
    for looked in (min(4 * limit, LOOKED), LOOKED):  # mostly the first few pass
        window = _window(reader, filters, looked)
        values = {**_values(filters), "run": run, "after": after, "limit": limit}
        rows = reader.all(
            f"SELECT {_columns(reader)} FROM ({window}) looked CROSS JOIN pages p ON p.id = looked.id"
            f" CROSS JOIN domain_states d ON d.id = p.domain_id WHERE p.seen_run = :run{_narrowing(filters, 'p.')}"
            f"{_rest(filters)}{reader.ordered('p.id')} LIMIT :limit",
            values,
        )
        found = [ListedPage(*row) for row in rows]
        if len(found) == limit:
            return found, found[-1].id
        end = reader.first(f"SELECT max(id), count(*) FROM ({window}) looked", values)
        if end is None or end[1] < looked:
            return found, None
    return found, int(end[0]) if end else None


def _window(reader: MapReader, filters: PageFilters, looked: int) -> str:
    """The next so many pages, in their order, as an index has them; where there is none, as the table has them.

    A window that an index does not serve is not narrowed: it would read on and on for pages that pass.
    """
    order = f"ORDER BY id LIMIT {looked}"
    if filters.domain_id is not None and reader.has("idx_pages_domain_id"):
        return f"SELECT id FROM pages WHERE domain_id = :domain_id AND id > :after {order}"
    if not filters.state or filters.domain_id is not None or not reader.has("idx_pages_state"):
        return f"SELECT id FROM pages WHERE id > :after {order}"
    if filters.state != "errors":
        return f"SELECT id FROM pages WHERE state = :state AND id > :after {order}"
    each = (
        f"SELECT * FROM (SELECT id FROM pages WHERE state = '{state}' AND id > :after {order}) s_{state}"
        for state in ERRORS
    )
    return f"SELECT id FROM ({' UNION ALL '.join(each)}) each_state {order}"


def pages_among(reader: MapReader, run: int, pages: list[int], filters: PageFilters) -> list[ListedPage]:
    """Those of these pages that pass the filters, in their order."""
    sql = (
        f"SELECT {_columns(reader)} FROM pages p CROSS JOIN domain_states d ON d.id = p.domain_id"
        f" WHERE p.id = :id AND p.seen_run = :run{_narrowing(filters, 'p.')}{_rest(filters)}"
    )
    found = (reader.first(sql, {"id": page, "run": run, **_values(filters)}) for page in pages)
    return [ListedPage(*row) for row in found if row is not None]


def _columns(reader: MapReader) -> str:
    return _COLUMNS.format(origin="p.origin" if reader.has_column("pages", "origin") else "'linked'")


def _narrowing(filters: PageFilters, page: str) -> str:
    """The filters that an index may serve."""
    where = ""
    if filters.state == "errors":
        where += f" AND {page}state IN ({', '.join(repr(str(state)) for state in sorted(ERRORS))})"
    elif filters.state:
        where += f" AND {page}state = :state"
    if filters.domain_id is not None:
        where += f" AND {page}domain_id = :domain_id"
    return where


def _values(filters: PageFilters) -> dict[str, object]:
    return {
        "state": filters.state,
        "domain_id": filters.domain_id,
        "klass": filters.klass,
        "depth": filters.depth,
        "status": filters.status,
        "error": filters.error,
        "origin": filters.origin,
    }


def _rest(filters: PageFilters) -> str:
    """The other filters."""
    where = ""
    if filters.klass:
        where += " AND d.class = :klass"
    if filters.depth is not None:
        where += " AND p.depth = :depth"
    if filters.status is not None:
        where += " AND p.status_code = :status"
    if filters.error:
        where += " AND instr(p.error_message, :error) = 1"
    if filters.origin:
        where += " AND p.origin = :origin"
    return where
