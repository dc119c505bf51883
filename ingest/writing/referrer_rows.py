"""The page whose link made a page known first in the run, for the page logs: kept until that page is visited.

The table is there only where logs are written. It depends on the order of results, so no digest counts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from crawler.database.ids import PAIR_BITS, PAIR_LOW, pair_id
from ingest.writing.engine import MapEngine, PackedRows
from ingest.writing.schema import id_lists

_TABLE = (
    "CREATE TABLE IF NOT EXISTS page_referrers (id INTEGER PRIMARY KEY, referrer INTEGER NOT NULL)"  # both pages.id
)
_SQL = f"INSERT OR IGNORE INTO page_referrers SELECT value >> {PAIR_BITS}, value & {PAIR_LOW} FROM json_each(:rows)"


def _lines(pairs: Sequence[int], values: Mapping[str, Any]) -> Iterator[str]:
    for pair in pairs:
        yield f"{pair >> PAIR_BITS}\t{pair & PAIR_LOW}\n"


_NEW = PackedRows("page_referrers", "id, referrer", _SQL, _lines)


class ReferrerRows:
    """Rows are written in the transaction of the batch."""

    def __init__(self, engine: MapEngine) -> None:
        self._engine = engine
        self._db = engine.db
        self._db.execute(_TABLE)

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
        pairs = [pair_id(page, referrer) for page, referrer in sorted(found.items())]
        self._engine.add_packed(_NEW, pairs, {})
        for chunk in id_lists(list(visited)):
            self._db.execute("DELETE FROM page_referrers WHERE id IN (SELECT value FROM json_each(?))", (chunk,))

    def clear(self) -> None:
        self._db.execute("DELETE FROM page_referrers")
