"""Rows of `revisits`: what each page's last visit found, and when the next one is due.

Only where `[revisit] schedule` asks for a plan. A row is of use while its `run` is the page's `visited_run`: a visit of
another schedule leaves it behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import UNSET

from crawler.model.records import PageResult
from crawler.model.settings import RevisitSettings
from crawler.model.states import PageState
from crawler.model.urls import hash64
from crawler.rules.revisit_interval import (
    ANSWERS,
    PROOF_RUNS,
    PROOFS,
    after,
    due_with_sitemap,
    hurried,
    is_proof,
    next_interval,
)
from ingest.memory.changes import Changes
from ingest.memory.map_rows import MapPage
from ingest.memory.page_index import PageIndex
from ingest.writing.engine import MapConnection
from ingest.writing.schema import id_lists

_BEFORE = (
    "SELECT revisits.id, revisits.run, visited_at, interval, print, changed_at FROM json_each(?) AS wanted"
    " CROSS JOIN revisits ON revisits.id = wanted.value"
)
_ROW = "INSERT OR REPLACE INTO revisits VALUES (?, ?, ?, nullif(?, ''), ?, ?, ?, ?, nullif(?, 0), ?, ?, ?)"
_CARRIED = (
    "INSERT INTO revisits (id, run, outcome, error, visited_at, interval, next_crawl_at, changed_at, carried_run)"
    " VALUES (?1, ?2, ?3, nullif(?4, ''), ?5, ?6, ?7, ?5, ?2)"
    " ON CONFLICT(id) DO UPDATE SET run = excluded.run, carried_run = excluded.carried_run"
)
_FORETOLD = (
    "SELECT p.domain_id, e.lastmod, r.previous_at, r.is_changed FROM sitemap_entries e"
    " CROSS JOIN revisits r ON r.id = e.id CROSS JOIN pages p ON p.id = e.id"
    " WHERE e.run = ?1 AND e.lastmod IS NOT NULL AND r.run = ?1 AND r.carried_run IS NOT ?1"
    " AND r.previous_at IS NOT NULL AND p.visited_run = ?1"
)
_DATED = (
    "SELECT r.id, p.domain_id, e.lastmod, r.visited_at, r.interval, r.next_crawl_at FROM sitemap_entries e"
    " CROSS JOIN revisits r ON r.id = e.id CROSS JOIN pages p ON p.id = e.id"
    " WHERE e.lastmod IS NOT NULL AND r.run = ?1 AND p.visited_run = ?1 AND r.next_crawl_at IS NOT NULL"
)


class _Before(NamedTuple):
    """What is known of a page from its visit before."""

    run: int
    visited_at: str
    interval: int
    print: int | None
    changed_at: str


class RevisitWriter:
    """Writes inside the store's transaction."""

    def __init__(self, db: MapConnection, index: PageIndex, settings: RevisitSettings) -> None:
        self._db = db
        self._index = index
        self._settings = settings

    def write(self, done: Changes) -> None:
        """The visits of a batch. Before its pages are written: `stored_visited_run` is that of the visit before."""
        carried = [page for page in done.done if page.visit is not None and page.visit.is_carried]
        self._db.executemany(_CARRIED, [_carried_row(page, page.visit) for page in carried if page.visit is not None])
        if not self._settings.plans:
            return
        visited = [page for page in done.done if page.visit is not None and not page.visit.is_carried]
        before = self._rows_before([page.id for page in visited if page.stored_visited_run is not None])
        self._db.executemany(_ROW, [self._row(page, done, before.get(page.id)) for page in visited])

    def _rows_before(self, pages: list[int]) -> dict[int, _Before]:
        rows = [row for chunk in id_lists(sorted(pages)) for row in self._db.execute(_BEFORE, (chunk,))]
        return {row[0]: _Before(*row[1:]) for row in rows}

    def _row(self, page: MapPage, done: Changes, before: _Before | None) -> tuple[object, ...]:
        result = page.visit
        assert result is not None
        if before is not None and before.run != page.stored_visited_run:
            before = None
        found = self._print(result, done.links[page.id][1])
        is_changed = before is None or before.print != found
        interval = next_interval(self._settings, before.interval if before is not None else None, is_changed)
        is_answer = PageState(result.state) in ANSWERS and not result.is_rejected and not result.truncated
        return (
            *(page.id, result.run, result.state, result.error or "", result.at),
            before.visited_at if before is not None else None,
            interval,
            after(result.at, interval) if is_answer else None,
            found,
            result.at if before is None or is_changed else before.changed_at,
            None if before is None else int(is_changed),
            None,
        )

    def _print(self, result: PageResult, targets: list[int]) -> int:
        """The same for visits that found the same: outcome, text and links."""
        hashes = sorted([self._index.hashes[number] for number in targets])
        text = (result.text_hash or result.text_print) if result.state == PageState.PROCESSED else None
        return hash64(f"{result.state}\n{result.redirect}\n{result.title}\n{text}\n{hashes}")

    # -- sitemaps ------------------------------------------------------------------------------------

    def plan_by_sitemaps(self, run: int) -> None:
        """The run is over, and so all that its sitemaps said is known, in whatever order it came in."""
        if self._settings.schedule != "adaptive":
            return
        self._write_proofs(run)
        proved = self._proved_domains(run)
        self._db.executemany("UPDATE revisits SET next_crawl_at = ? WHERE id = ?", list(self._dated(run, proved)))

    def _write_proofs(self, run: int) -> None:
        counts: dict[int, list[int]] = {}
        for domain, lastmod, previous_at, is_changed in self._db.execute(_FORETOLD, (run,)):
            said = hurried(lastmod, previous_at) is not None
            if (proof := is_proof(said_changed=said, was_changed=bool(is_changed))) is not None:
                counts.setdefault(domain, [0, 0])[0 if proof else 1] += 1
        self._db.execute("DELETE FROM lastmod_proofs WHERE run = ?", (run,))
        rows = [(domain, run, *found) for domain, found in counts.items()]
        self._db.executemany("INSERT INTO lastmod_proofs VALUES (?, ?, ?, ?)", rows)

    def _proved_domains(self, run: int) -> set[int]:
        sql = (
            "SELECT domain_id FROM lastmod_proofs WHERE run > ? GROUP BY domain_id"
            " HAVING sum(foretold) >= ? AND sum(missed) = 0"
        )
        return {number for (number,) in self._db.execute(sql, (run - PROOF_RUNS, PROOFS))}

    def _dated(self, run: int, proved: set[int]) -> Iterator[tuple[str, int]]:
        for number, domain, lastmod, visited_at, interval, known in self._db.execute(_DATED, (run,)).fetchall():
            plain = after(visited_at, interval)
            due = due_with_sitemap(self._settings, lastmod, visited_at, plain, has_proved_right=domain in proved)
            if due != known:
                yield due, number


def _carried_row(page: MapPage, result: PageResult) -> tuple[object, ...]:
    carried = result.carried
    assert carried is not UNSET
    return (
        *(page.id, result.run, result.state, result.error or "", carried.visited_at),
        *(carried.interval, carried.due),
    )
