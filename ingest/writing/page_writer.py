"""Rows of `pages`: new ones, changed ones, and those of which only the depths changed."""

from __future__ import annotations

from typing import Any

from crawler.model.origins import Origin
from crawler.model.states import PageState
from crawler.rules.page_priority import KIND_BITS, OUTSIDE, PageKind, rank_of
from ingest.memory.changes import Changes
from ingest.memory.map_rows import MapPage
from ingest.memory.page_index import FIXED, QUEUED, PageIndex
from ingest.rules.depth import Distances, reach_bytes
from ingest.rules.page_state import far_state
from ingest.writing.depth_writer import DepthWriter
from ingest.writing.engine import MapEngine
from ingest.writing.schema import json_list

NEW_COLUMNS = (  # of a new row of `pages`
    *("id", "url", "domain", "state", "discovered_at", "discovered_run", "error_message", "url_hash", "wire_url"),
    *("domain_id", "depth", "reach", "seen_run", "family", "origin", "page_type", "class"),
)
_ORIGINS = {origin: origin.value for origin in Origin}
_TEXTS = {state: state.value for state in PageState}  # as sqlite3 binds it without an adapter


class PageWriter:
    """Writes inside the store's transaction."""

    def __init__(
        self, engine: MapEngine, index: PageIndex, distances: Distances, depths: DepthWriter, *, by_level: bool
    ) -> None:
        self._engine = engine
        self._db = engine.db
        self._by_level = by_level
        self._index = index
        self._distances = distances
        self._depths = depths

    def write(self, done: Changes) -> None:
        self._engine.add_pages(
            # a generator: all of these rows at once would be a good part of a batch's memory
            (
                p.id,
                p.key,
                p.domain.name,
                _TEXTS[p.state],
                p.at,
                p.discovered_run,
                p.error or "",
                p.hash,
                p.wire or "",
                p.domain.id,
                p.depth,
                reach_bytes(p.reach),
                p.seen_run,
                p.family or 0,
                _ORIGINS[p.origin],
                p.page_type,
                p.klass.value if p.domain.parts and p.klass is not p.domain.klass else "",
            )
            for p in done.new_pages
        )
        self._db.executemany("INSERT OR IGNORE INTO cap_pages VALUES (?, ?)", done.cap_pages)
        dirty = sorted(done.pages.values(), key=_by_id)
        self._db.executemany(
            "UPDATE pages SET origin = ? WHERE id = ?",
            [(_ORIGINS[p.origin], p.id) for p in dirty if p.origin is not p.stored_origin],
        )
        self._write_standings([p for p in dirty if p.visit is None])
        self._db.executemany(
            "UPDATE pages SET redirect_to = NULL WHERE id = ?",
            [(p.id,) for p in dirty if p.stored_redirect is not None and p.redirect_to is None],
        )
        visited = [p for p in dirty if p.visit is not None] + [p for p in done.new_pages if p.visit is not None]
        self._db.executemany(
            "UPDATE pages SET state = ?, error_message = nullif(?, ''), depth = ?, reach = ?, seen_run = ?,"
            " redirect_to = nullif(?, 0),"
            " title = ?, status_code = ?, content_type = ?, last_modified = ?, visited_at = ?, retry_count = ?,"
            " visited_run = ?, nofollow = ?, links_cut = ?, bytes = ?, truncated = ?, validation = nullif(?, ''),"
            " rejection_reason = nullif(?, ''), text_print = nullif(?, 0), links_print = nullif(?, 0) WHERE id = ?",
            [
                (
                    _TEXTS[p.state],
                    p.error or "",
                    p.depth,
                    reach_bytes(p.reach),
                    p.seen_run,
                    p.redirect_to or 0,
                    p.visit.title,
                    p.visit.status,
                    p.visit.content_type,
                    p.visit.last_modified,
                    p.visit.visited_at,
                    p.visit.retries,
                    p.visit.run,
                    int(p.visit.nofollow),
                    p.visit.links_cut,
                    p.visit.bytes,
                    int(p.visit.truncated),
                    p.visit.validation or "",
                    p.visit.rejection_reason or "",
                    p.visit.text_print or 0,
                    p.links_print,
                    p.id,
                )
                for p in visited
                if p.visit is not None
            ],
        )
        self._depths.write(done.new_pages, dirty)
        self._write_entered(done)

    def _write_standings(self, pages: list[MapPage]) -> None:
        """Pages that changed without a visit. By far the most frequent change, so it touches no index.

        Pages with equal values are written by one statement; single ones go one by one.
        """
        groups: dict[tuple[str, str | None, int | None, int, int], list[int]] = {}
        for page in pages:
            same = (_TEXTS[page.state], page.error, page.depth, page.reach, page.seen_run)
            groups.setdefault(same, []).append(page.id)
        sql = "UPDATE OR ROLLBACK pages SET state = ?, error_message = ?, depth = ?, reach = ?, seen_run = ? WHERE id "
        single: list[tuple[Any, ...]] = []
        for (state, error, depth, reach, seen), numbers in groups.items():
            values = (state, error, depth, reach_bytes(reach), seen)
            if len(numbers) < 4:
                single += [(*values, number) for number in numbers]
            else:
                self._db.execute(sql + "IN (SELECT value FROM json_each(?))", (*values, json_list(numbers)))
        self._db.executemany(sql + "= ?", single)

    def _write_entered(self, done: Changes) -> None:
        """Pages that entered the run without their rows: depths, and the state where it follows from them."""
        index, nearest = self._index, self._distances.nearest
        depths: dict[tuple[int, int], list[int]] = {}  # (reach before, reach now) → pages
        fixed: dict[int, list[int]] = {}  # reach → pages whose state stays
        far: dict[int, list[int]] = {}
        for number, before in done.entered.items():
            after = index.reaches[number]
            found = fixed if index.entries[number] == FIXED else far
            found.setdefault(after, []).append(number)
            if before != after:
                depths.setdefault((index.values[before], index.values[after]), []).append(number)
        for after, numbers in fixed.items():
            reach = index.values[after]
            self._db.execute(
                "UPDATE OR ROLLBACK pages SET depth = ?, reach = ?, seen_run = ?"
                " WHERE id IN (SELECT value FROM json_each(?))",
                (nearest(reach), reach_bytes(reach), done.entered_run, json_list(sorted(numbers))),
            )
        for after, numbers in far.items():
            reach = index.values[after]
            self._db.execute(
                "UPDATE OR ROLLBACK pages SET state = ?, error_message = NULL, depth = ?, reach = ?, seen_run = ?"
                " WHERE id IN (SELECT value FROM json_each(?))",
                (
                    *(_TEXTS[far_state(nearest(reach))], nearest(reach), reach_bytes(reach), done.entered_run),
                    json_list(sorted(numbers)),
                ),
            )
        self._depths.replace(depths)

    def write_moves(self, done: Changes) -> None:
        """Pages of which nothing but the depths changed, however many. Empties `done.moves`."""
        index, nearest = self._index, self._distances.nearest
        groups: dict[tuple[int, int], list[int]] = {}  # (reach before, reach now) → pages
        for number, before in done.moves.items():
            groups.setdefault((before, index.reaches[number]), []).append(number)
        standings: dict[int, list[int]] = {}  # reach → pages
        ranks: dict[int, list[int]] = {}  # depth → pages
        depths: dict[tuple[int, int], list[int]] = {}  # (reach before, reach now) → pages
        for (was, now), numbers in groups.items():
            before, after = index.values[was], index.values[now]
            standings.setdefault(after, []).extend(numbers)
            depths[before, after] = numbers
            depth = nearest(after)
            if depth is not None and depth != nearest(before):
                waiting = [number for number in numbers if index.standings[number] == QUEUED]
                ranks.setdefault(depth, []).extend(waiting)
                for domain in {index.domains[number] for number in waiting}:
                    done.moved_up[domain] = min(depth, done.moved_up.get(domain, depth))
        self._db.executemany(
            "UPDATE OR ROLLBACK pages SET depth = ?, reach = ? WHERE id IN (SELECT value FROM json_each(?))",
            [(nearest(reach), reach_bytes(reach), json_list(sorted(found))) for reach, found in standings.items()],
        )
        self._depths.insert(depths)
        self._db.executemany(
            # Kind and class stay: the last bits of the rank (`crawler.rules.page_priority`).
            "UPDATE OR ROLLBACK frontier SET priority ="
            f" CASE priority & {KIND_BITS} WHEN 0 THEN ? WHEN 1 THEN ? ELSE ? END + (priority & {OUTSIDE})"
            " WHERE id IN (SELECT value FROM json_each(?))",
            [(*self._ranks(depth), json_list(sorted(found))) for depth, found in ranks.items() if found],
        )
        done.moves.clear()

    def _ranks(self, depth: int) -> list[int]:
        """The ranks of pages of quality domains at this depth, by kind."""
        return [rank_of(kind, depth, is_quality=True, by_level=self._by_level) for kind in PageKind]


def _by_id(page: MapPage) -> int:
    return page.id
