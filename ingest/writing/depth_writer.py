"""Rows of `page_depths`: only those that changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crawler.database.ids import ORIGIN_BITS, ORIGIN_LOW
from ingest.memory.map_rows import MapPage
from ingest.rules.depth import Distances
from ingest.writing.engine import MapEngine, PackedRows
from ingest.writing.schema import json_list

# A row on its way into the table is one number: page, origin, depth.
_DEPTH_BITS = 15
_DEEPEST = (1 << _DEPTH_BITS) - 1  # greater depths do not fit, and are written one by one
_PAGE_SHIFT = ORIGIN_BITS + _DEPTH_BITS
_ROWS = (
    f"INTO page_depths SELECT value >> {_DEPTH_BITS}, value >> {_PAGE_SHIFT}, pattern, value & {_DEEPEST}"
    f" FROM json_each(:rows) CROSS JOIN origins ON origins.id = (value >> {_DEPTH_BITS}) & {ORIGIN_LOW}"
)


def _lines(numbers: Sequence[int], values: Mapping[str, Any]) -> Iterator[str]:
    patterns = values["patterns"]
    for value in numbers:
        origin = (value >> _DEPTH_BITS) & ORIGIN_LOW
        yield f"{value >> _DEPTH_BITS}\t{value >> _PAGE_SHIFT}\t{patterns[origin]}\t{value & _DEEPEST}\n"


_NEW = PackedRows("page_depths", "id, page_id, quality_origin, depth", f"INSERT OR IGNORE {_ROWS}", _lines)


class DepthWriter:
    """Writes inside the store's transaction."""

    def __init__(self, engine: MapEngine, distances: Distances, origins: list[str]) -> None:
        self._engine = engine
        self._db = engine.db
        self._distances = distances
        self._origins = origins

    def write(self, fresh: list[MapPage], dirty: list[MapPage]) -> None:
        """Within a run depths are lowered or added; only a new run removes some."""
        groups: dict[tuple[int, int], list[int]] = {}  # (reach before, reach now) → pages: few for many
        lost: list[int] = []
        for page in [*fresh, *dirty]:
            number, before, after = page.id, page.stored_reach, page.reach
            if before != after:
                groups.setdefault((before, after), []).append(number)
                if page.is_reentered:
                    lost += [number << ORIGIN_BITS | origin for origin in self._distances.vanished(before, after)]
        self._delete(lost)
        self.insert(groups)

    def replace(self, groups: dict[tuple[int, int], list[int]]) -> None:
        """The same as `insert` for pages that entered a run: some of their depths may be gone."""
        self._delete(
            [
                number << ORIGIN_BITS | origin
                for (before, after), numbers in groups.items()
                for origin in self._distances.vanished(before, after)
                for number in numbers
            ]
        )
        self.insert(groups)

    def _delete(self, rows: list[int]) -> None:
        if rows:
            self._db.execute("DELETE FROM page_depths WHERE id IN (SELECT value FROM json_each(?))", (json_list(rows),))

    def insert(self, groups: dict[tuple[int, int], list[int]]) -> None:
        """Write (reach before, reach now) → pages, in the order of the table: new pages' rows all go to its end."""
        fresh: list[int] = []
        nearer: dict[int, list[int]] = {}  # depth → page and origin, of rows that are there
        deep: list[tuple[int, int, str, int]] = []
        for (before, after), numbers in groups.items():
            for origin, depth in self._distances.differences(before, after):
                if depth > _DEEPEST:
                    deep += [
                        (number << ORIGIN_BITS | origin, number, self._origins[origin], depth) for number in numbers
                    ]
                elif self._distances.has_path(before, origin):
                    nearer.setdefault(depth, []).extend([number << ORIGIN_BITS | origin for number in numbers])
                else:
                    place = origin << _DEPTH_BITS | depth
                    fresh += [number << _PAGE_SHIFT | place for number in numbers]
        written = self._engine.add_packed(_NEW, sorted(fresh), {"patterns": self._origins})
        for depth, found in nearer.items():
            written += self._db.execute(
                "UPDATE OR ROLLBACK page_depths SET depth = ? WHERE id IN (SELECT value FROM json_each(?))",
                (depth, json_list(sorted(found))),
            ).rowcount
        otherwise = "ON CONFLICT(id) DO UPDATE SET depth = excluded.depth"
        self._db.executemany(f"INSERT INTO page_depths VALUES (?, ?, ?, ?) {otherwise}", deep)
        if written < len(fresh) + sum(map(len, nearer.values())):  # the table was changed by hand
            everything = fresh + [place << _DEPTH_BITS | depth for depth, found in nearer.items() for place in found]
            self._db.execute(f"INSERT {_ROWS} WHERE true {otherwise}", {"rows": json_list(everything)})
