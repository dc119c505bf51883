"""The page whose link made a page known first in the run, for the page logs: kept until that page is visited.

The table is there only where logs are written. It depends on the order of results, so no digest counts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ingest.writing.engine import MapConnection
from ingest.writing.schema import id_lists

_TABLE = (
    "CREATE TABLE IF NOT EXISTS page_referrers (id INTEGER PRIMARY KEY, referrer INTEGER NOT NULL)"  # both pages.id
)


class ReferrerRows:
    """Rows are written in the transaction of the batch."""

    def __init__(self, db: MapConnection) -> None:
        self._db = db
        db.execute(_TABLE)

    def urls(self, pages: Iterable[int]) -> dict[int, str]:
        """Page → address of its referrer, as far as one is kept."""
        found: dict[int, str] = {}
        for chunk in id_lists(sorted(pages)):
            found.update(
                self._db.execute(
                    "SELECT kept.id, pages.url FROM page_referrers AS kept JOIN pages ON pages.id = kept.referrer"
                    " WHERE kept.id IN (SELECT value FROM json_each(?))",
                    (chunk,),
                )
            )
        return found

    def write(self, found: Mapping[int, int], visited: Iterable[int]) -> None:
        self._db.executemany("INSERT OR IGNORE INTO page_referrers VALUES (?, ?)", found.items())
        for chunk in id_lists(list(visited)):
            self._db.execute("DELETE FROM page_referrers WHERE id IN (SELECT value FROM json_each(?))", (chunk,))

    def clear(self) -> None:
        self._db.execute("DELETE FROM page_referrers")
