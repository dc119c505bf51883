"""Pages by filters, a few at a time, in the order of their numbers.

The list goes on after a number, so that every part of it costs the same. A part looks at LOOKED pages at most: where
the filters pass few of them, it may be short, or empty, and the list goes on all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from crawler.database.reader import MapReader
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
    where, values = _narrowing(filters)
    window = f"SELECT id FROM pages WHERE id > :after{where} ORDER BY id LIMIT {LOOKED}"
    rows = reader.all(
        f"SELECT {_columns(reader)} FROM ({window}) looked CROSS JOIN pages p ON p.id = looked.id"
        f" CROSS JOIN domain_states d ON d.id = p.domain_id WHERE p.seen_run = :run{_rest(filters)} LIMIT :limit",
        {"run": run, "after": after, "limit": limit, **values},
    )
    found = [ListedPage(*row) for row in rows]
    if len(found) == limit:
        return found, found[-1].id
    looked = reader.first(f"SELECT max(id), count(*) FROM ({window})", {"after": after, **values})
    return found, int(looked[0]) if looked and looked[1] == LOOKED else None


def pages_among(reader: MapReader, run: int, pages: list[int], filters: PageFilters) -> list[ListedPage]:
    """Those of these pages that pass the filters, in their order."""
    where, values = _narrowing(filters, "p.")
    sql = (
        f"SELECT {_columns(reader)} FROM pages p CROSS JOIN domain_states d ON d.id = p.domain_id"
        f" WHERE p.id = :id AND p.seen_run = :run{where}{_rest(filters)}"
    )
    found = (reader.first(sql, {"id": page, "run": run, **values}) for page in pages)
    return [ListedPage(*row) for row in found if row is not None]


def _columns(reader: MapReader) -> str:
    return _COLUMNS.format(origin="p.origin" if reader.has_column("pages", "origin") else "'linked'")


def _narrowing(filters: PageFilters, page: str = "") -> tuple[str, dict[str, object]]:
    """The filters that an index may serve."""
    where, values = "", _values(filters)
    if filters.state == "errors":
        where += f" AND {page}state IN ({', '.join(repr(str(state)) for state in sorted(ERRORS))})"
    elif filters.state:
        where += f" AND {page}state = :state"
    if filters.domain_id is not None:
        where += f" AND {page}domain_id = :domain_id"
    return where, values


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
