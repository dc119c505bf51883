"""A handle on a map for Python programs: pages and links as dictionaries, and SQL for everything else."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crawler.database.dialect import Parameters
from crawler.database.digest import digest
from crawler.database.map_errors import BadQuery
from crawler.database.reader import MapReader, open_map
from crawler.model.map_place import EngineMap, MapPlace

_READ_ONLY = "25006"  # the SQLSTATE of PostgreSQL
_OF_THE_QUERY = ("SQLITE_ERROR", "SQLITE_READONLY", "SQLITE_MISUSE", "SQLITE_RANGE", "SQLITE_MISMATCH", "SQLITE_AUTH")

_PAGE_COLUMNS = (
    *("url", "domain", "state", "title", "status_code", "content_type", "depth", "error_message", "visited_at"),
    *("last_modified", "bytes", "origin", "seen_run", "visited_run"),
)


class Map:
    """A map on disk. Every question opens it anew, read-only, so a handle costs nothing and may outlive a crawl.

    `exit_code`: that of the crawl that returned it (0 done, 1 nothing was reached, 130 interrupted); None: none did.
    """

    def __init__(self, path: MapPlace, exit_code: int | None = None) -> None:
        self.path = path if isinstance(path, EngineMap) else Path(path)
        self.exit_code = exit_code

    def __repr__(self) -> str:
        return f"Map({str(self.path)!r})"

    @property
    def is_complete(self) -> bool:
        """Is the newest run completed?"""
        return self.run()[1] == "completed"

    def run(self) -> tuple[int, str]:
        """The newest run's number and status: running, interrupted or completed."""
        with open_map(self.path) as reader:
            row = reader.first("SELECT id, status FROM runs ORDER BY id DESC LIMIT 1")
        return (int(row[0]), str(row[1])) if row else (0, "")

    def digest(self) -> str:
        """A hash of the map, free of ids and clocks: equal maps have equal ones."""
        return digest(self.path)

    def states(self) -> dict[str, int]:
        """State → number of pages, of the newest run."""
        with open_map(self.path) as reader:
            rows = reader.all(
                "SELECT state, count(*) FROM pages WHERE seen_run = (SELECT max(id) FROM runs) GROUP BY state"
            )
        return dict(rows)

    def pages(self, *, state: str | None = None, domain: str | None = None) -> Iterator[dict[str, Any]]:
        """Every page, by its number: all of them, or those in a state or of a domain."""
        sql = f"SELECT {', '.join(_PAGE_COLUMNS)} FROM pages WHERE (?1 IS NULL OR state = ?1)"
        yield from self.query(f"{sql} AND (?2 IS NULL OR domain = ?2) ORDER BY id", (state, domain))

    def links(self, *, from_url: str | None = None) -> Iterator[dict[str, Any]]:
        """Every link, as `from_url`, `to_url`, `kind` (0 followed, 1 recorded only, 2 redirect) and `last_run`."""
        yield from self.query(
            "SELECT source.url AS from_url, target.url AS to_url, links.kind, links.last_run FROM links"
            " JOIN pages AS source ON source.id = links.from_page_id"
            " JOIN pages AS target ON target.id = links.to_page_id WHERE ?1 IS NULL OR source.url = ?1",
            (from_url,),
        )

    def query(self, sql: str, parameters: Parameters = ()) -> Iterator[dict[str, Any]]:
        """The rows of any SELECT, as dictionaries, from one snapshot of the map, which is only read.

        Raises BadQuery where the question is wrong, in the words of the database.
        """
        with open_map(self.path) as reader, _query_errors(reader):
            names, rows = reader.named_rows(sql, parameters)
            for row in rows:
                yield dict(zip(names, row, strict=True))


@contextmanager
def _query_errors(reader: MapReader) -> Iterator[None]:
    """What is wrong with a question inside the block becomes BadQuery; what is wrong with the map stays as it is."""
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning) as problem:
        name = getattr(problem, "sqlite_errorname", "SQLITE_ERROR")
        if not name.startswith(_OF_THE_QUERY):
            raise
        raise _bad_query(reader, str(problem), is_write=name.startswith("SQLITE_READONLY")) from None
    except Exception as problem:
        if not isinstance(reader.path, EngineMap):
            raise
        from crawler.database.map_session import EngineFault

        if not isinstance(problem, EngineFault) or problem.is_connection_lost:
            raise
        raise _bad_query(reader, str(problem), is_write=problem.state == _READ_ONLY) from None


def _bad_query(reader: MapReader, problem: str, *, is_write: bool) -> BadQuery:
    return BadQuery(reader.path, f"{problem}; the map is only read here" if is_write else problem)
