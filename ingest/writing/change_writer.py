"""A batch's changes become rows, in the order of the trees they go into.

Rows of one page lie together, sorted keys visit each leaf of an index once, and long lists go in as one parameter
(`json_each`): binding a parameter costs more than writing a small row, most of all None and bytes, for which the
sqlite3 module looks for an adapter every time (hence `nullif` and bytearrays where it is done often).

A statement that writes many rows says how it ends if one of them cannot be written: OR ROLLBACK, as an error takes the
whole batch back anyway, or OR IGNORE. Otherwise SQLite would first copy every page that the statement touches into a
file, to be able to take back this statement alone: that was more than everything that went into the log.
"""

from __future__ import annotations

from crawler.model.settings import Config
from ingest.memory.changes import Changes
from ingest.memory.page_index import PageIndex
from ingest.rules.depth import Distances
from ingest.writing.depth_writer import DepthWriter
from ingest.writing.domain_sums import DomainSums
from ingest.writing.engine import MapEngine
from ingest.writing.fact_writer import write_facts
from ingest.writing.frontier_writer import FrontierWriter
from ingest.writing.guess_writer import write_guesses
from ingest.writing.link_writer import LinkWriter
from ingest.writing.next_page_writer import write_next_pages
from ingest.writing.order_rows import write_orders
from ingest.writing.page_writer import PageWriter
from ingest.writing.reopening_rows import write_reopenings
from ingest.writing.revisit_writer import RevisitWriter
from ingest.writing.run_rows import write_run_events
from ingest.writing.sitemap_writer import SitemapWriter
from ingest.writing.visit_counts import write_counts


class ChangeWriter:
    """Writes changes through the store's connection, inside the store's transaction. Keeps `counts` up to date."""

    def __init__(
        self,
        engine: MapEngine,
        index: PageIndex,
        distances: Distances,
        origins: list[str],
        sums: DomainSums,
        counts: dict[str, int],
        config: Config,
    ) -> None:
        db = self._db = engine.db
        self._engine = engine
        by_level = config.crawler.order == "priority"
        self._pages = PageWriter(engine, index, distances, DepthWriter(engine, distances, origins), by_level=by_level)
        self._revisits = RevisitWriter(db, index, config.revisit)
        self._links = LinkWriter(engine, sums)
        self._sums = sums
        self._frontier = FrontierWriter(engine, counts, config)
        self.waiting = self._frontier.waiting
        self._sitemaps = SitemapWriter(db, counts)

    def write(self, done: Changes, run: int) -> None:
        """Write everything that a batch changed. Later statements rely on the rows of earlier ones."""
        self._write_domains(done)
        self._pages.write(done)
        write_facts(self._db, done)
        write_counts(self._db, done)
        self.write_moves(done)
        self._links.write_links(done, run)
        self._revisits.write(done)
        self._links.write_references(done, run)
        self._frontier.write(done, run)
        self._sitemaps.write(done, run)
        write_next_pages(self._db, done, run)
        write_guesses(self._db, done, run)
        self._frontier.write_closures(done, run)
        write_orders(self._db, done.orders)
        write_reopenings(self._db, done.reopenings, run)
        self._write_notes(done)
        write_run_events(self._engine, done.run_events)
        finished = [event.run for event in done.run_events if event.event == "finished"]
        if finished:
            self._sitemaps.drop_waiting()
            self._revisits.plan_by_sitemaps(finished[-1])
            self._sums.write_all()  # the summary has nothing to add up, and is written while no row changes

    def write_moves(self, done: Changes) -> None:
        self._pages.write_moves(done)

    def _write_domains(self, done: Changes) -> None:
        rows = [
            (
                d.klass.value,
                d.run,
                d.request_count,
                d.lost_requests,
                int(d.closed == "rate-limited"),
                d.closed or "",
                -1 if d.closed_at_request is None else d.closed_at_request,
                d.robots_at or "",
                d.robots_outcome or "",
                d.robots_status or 0,
                -1 if d.crawl_delay is None else d.crawl_delay,
                d.first_seen_run,
                d.name,
                d.id,
            )
            for d in done.domains.values()
        ]
        self._db.executemany(
            "INSERT INTO domain_states (class, run, request_count, lost_requests, rate_limited, closed_reason,"
            " closed_at_request, robots_fetched_at, robots_outcome, robots_status, crawl_delay, first_seen_run, domain,"
            " id) VALUES (?, ?, ?, ?, ?, nullif(?, ''), nullif(?, -1), nullif(?, ''), nullif(?, ''), nullif(?, 0),"
            " nullif(?, -1), ?, ?, ?)"
            " ON CONFLICT(id) DO UPDATE SET class = excluded.class, run = excluded.run,"
            " request_count = excluded.request_count, lost_requests = excluded.lost_requests,"
            " rate_limited = excluded.rate_limited, closed_reason = excluded.closed_reason,"
            " closed_at_request = excluded.closed_at_request, robots_fetched_at = excluded.robots_fetched_at,"
            " robots_outcome = excluded.robots_outcome, robots_status = excluded.robots_status,"
            " crawl_delay = excluded.crawl_delay",
            rows,
        )
        self._db.executemany(
            "UPDATE domain_states SET robots_txt = ? WHERE id = ?",
            [(body, number) for number, body in done.robots.items()],
        )

        self._db.executemany(
            # Changes are numbered: those of one domain may be read in any order.
            "INSERT INTO breakers VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET run = excluded.run,"
            " state = excluded.state, changes = excluded.changes, changed_at = excluded.changed_at,"
            " detail = excluded.detail WHERE (excluded.run, excluded.changes) > (breakers.run, breakers.changes)",
            [
                (number, event.run, event.event.removeprefix("breaker-"), event.count, event.at, event.detail)
                for number, event in done.breakers
            ],
        )

    def _write_notes(self, done: Changes) -> None:
        """Held results, applied events, damaged lines, and the place in every result log."""
        self._db.executemany(
            "INSERT OR IGNORE INTO held_results VALUES (?, ?, ?)",
            [(number, held_run, line) for number, (held_run, line) in done.held.items()],
        )
        self._db.executemany("DELETE FROM held_results WHERE id = ?", [(number,) for number in done.unheld])
        self._db.executemany("INSERT OR IGNORE INTO applied_events VALUES (?)", [(number,) for number in done.events])
        self._db.executemany(
            "INSERT OR IGNORE INTO quarantine VALUES (?, ?, ?, ?, ?)",
            [(w, d.segment, d.offset, d.reason, len(d.raw)) for w, d in done.damage],
        )
        self._db.executemany(
            "INSERT INTO spool_positions VALUES (?, ?, ?) ON CONFLICT(writer) DO UPDATE SET"
            " segment = excluded.segment, offset = excluded.offset",
            [(writer, cursor.segment, cursor.offset) for writer, cursor in done.positions.items()],
        )
