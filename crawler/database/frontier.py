"""The map as the scheduler sees it: read-only, one question a method, never the whole frontier at once.

The ingest may not have made the database yet, or may put a newly drawn one in its place at any moment.
Whatever goes wrong with a question is `MapAway`: come back later, and look at everything afresh.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from crawler.model.records import Job
from crawler.workspace.log import Cursor

_CHUNK = 400

# One seek a domain: the next domain number above the last one, and there the best row. The index has it all.
_DOMAINS = """
WITH RECURSIVE waiting(domain_id) AS (
    SELECT min(domain_id) FROM frontier
    UNION ALL
    SELECT (SELECT min(domain_id) FROM frontier WHERE domain_id > waiting.domain_id)
    FROM waiting WHERE waiting.domain_id IS NOT NULL
)
SELECT s.domain, f.priority, f.id
FROM waiting CROSS JOIN domain_states s ON s.id = waiting.domain_id
CROSS JOIN frontier f ON f.id = (
    SELECT id FROM frontier WHERE domain_id = waiting.domain_id ORDER BY priority, id LIMIT 1
)
"""
_WINDOW = """
SELECT f.page_id, f.priority, p.url, p.wire_url, p.family
FROM frontier f INDEXED BY idx_frontier_domain CROSS JOIN pages p ON p.id = f.page_id
WHERE f.domain_id = ? ORDER BY f.priority, f.id LIMIT ?
"""


class MapAway(Exception):
    """The database is not there, not ready, or has just been replaced."""


class Waiting(NamedTuple):
    """A page that waits to be visited."""

    page: int
    priority: int
    key: str
    wire: str | None
    family: int | None


class DomainInLine(NamedTuple):
    """A domain with waiting pages, and where the best of them stands."""

    name: str
    priority: int
    row: int


class Frontier:
    """Read-only questions to the database at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.map_id: str | None = None
        self._db: sqlite3.Connection | None = None
        self._inode: tuple[int, int] | None = None

    @property
    def is_open(self) -> bool:
        return self._db is not None

    def open(self) -> None:
        """Connect, if the map is there and complete. Raises MapAway."""
        self.close()
        try:
            self._inode = _inode(self.path)
            address = f"file:{quote(str(self.path.absolute()))}?mode=ro"
            self._db = sqlite3.connect(address, uri=True, isolation_level=None, timeout=5, cached_statements=64)
            self._db.execute("PRAGMA cache_size = -8192")
            self.map_id = self.meta("map_id")
            self._ask("SELECT 1 FROM frontier LIMIT 1")
            if self.map_id is None or _inode(self.path) != self._inode:
                raise MapAway("the map is not ready")
        except (OSError, sqlite3.Error) as problem:
            self.close()
            raise MapAway(str(problem)) from None
        except MapAway:
            self.close()
            raise

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
        self._db = None

    def has_been_replaced(self) -> bool:
        """Is the file at the path another one, or another map, than the one that was opened?"""
        try:
            return _inode(self.path) != self._inode or self.meta("map_id") != self.map_id
        except OSError:
            return True

    # -- the map as a whole --------------------------------------------------------------------------

    def meta(self, name: str) -> str | None:
        rows = self._ask("SELECT value FROM meta WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def last_run(self) -> tuple[int, str] | None:
        """(number, status) of the newest run that the map knows."""
        rows = self._ask("SELECT id, status FROM runs ORDER BY id DESC LIMIT 1")
        return (int(rows[0][0]), str(rows[0][1])) if rows else None

    def positions(self) -> dict[str, Cursor]:
        """How far each result spool has been taken in."""
        rows = self._ask("SELECT writer, segment, offset FROM spool_positions")
        return {writer: Cursor(segment, offset) for writer, segment, offset in rows}

    # -- who waits -----------------------------------------------------------------------------------

    def is_empty(self) -> bool:
        return not self._ask("SELECT 1 FROM frontier LIMIT 1")

    def count(self) -> int:
        return int(self._ask("SELECT count(*) FROM frontier")[0][0])

    def domains(self) -> list[DomainInLine]:
        """Every domain with waiting pages, the ones to be served first in front."""
        return sorted(
            (DomainInLine(*row) for row in self._ask(_DOMAINS)), key=lambda found: (found.priority, found.row)
        )

    def domain_id(self, name: str) -> int | None:
        rows = self._ask("SELECT id FROM domain_states WHERE domain = ?", (name,))
        return int(rows[0][0]) if rows else None

    def window(self, domain_id: int, limit: int) -> list[Waiting]:
        """The first `limit` waiting pages of a domain, released or not."""
        return [Waiting(*row) for row in self._ask(_WINDOW, (domain_id, limit))]

    def still_waiting(self, pages: Iterable[int]) -> set[int]:
        """Those of these pages that have not been settled."""
        found: set[int] = set()
        numbers = sorted(pages)
        for start in range(0, len(numbers), _CHUNK):
            chunk = numbers[start : start + _CHUNK]
            marks = ",".join("?" * len(chunk))
            found.update(row[0] for row in self._ask(f"SELECT id FROM frontier WHERE id IN ({marks})", chunk))
        return found

    def waiting_pages(self, pages: Iterable[int]) -> list[Waiting]:
        """These pages, as far as they wait, in the order in which they would be released."""
        numbers = sorted(pages)
        marks = ",".join("?" * len(numbers))
        sql = (
            "SELECT f.page_id, f.priority, p.url, p.wire_url, p.family FROM frontier f JOIN pages p ON p.id = f.page_id"
            f" WHERE f.id IN ({marks}) ORDER BY f.priority, f.id"
        )
        return [Waiting(*row) for row in self._ask(sql, numbers)]

    def waiting_page(self, job: Job) -> tuple[int, int | None] | None:
        """(number, family) of the page of this job, if it waits."""
        rows = self._ask("SELECT url, family FROM pages WHERE id = ?", (job.page,))
        if rows and rows[0][0] == job.key:
            return (job.page, rows[0][1]) if self.still_waiting([job.page]) else None
        # A map that was drawn anew numbers its pages anew. While a run is under way no index knows them by their keys.
        found = self._ask(
            "SELECT p.id, p.family FROM domain_states d JOIN frontier f ON f.domain_id = d.id"
            " JOIN pages p ON p.id = f.id WHERE d.domain = ? AND p.url = ?",
            (job.domain, job.key),
        )
        return found[0] if found else None

    # -- families of look-alikes ---------------------------------------------------------------------

    def is_family_closed(self, family: int, run: int) -> bool:
        return bool(self._ask("SELECT 1 FROM closed_families WHERE id = ? AND run = ?", (family, run)))

    def visited_in_family(self, family: int, run: int) -> set[int]:
        """Pages of a family that were visited in this run."""
        return {row[0] for row in self._ask("SELECT id FROM pages WHERE family = ? AND visited_run = ?", (family, run))}

    def _ask(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if self._db is None:
            raise MapAway("the map is not open")
        try:
            return self._db.execute(sql, parameters).fetchall()
        except sqlite3.Error as problem:
            raise MapAway(str(problem)) from None


def _inode(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino
