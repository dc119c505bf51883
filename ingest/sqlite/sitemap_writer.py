"""Rows of `sitemaps` and `sitemap_entries`, and the rows of `frontier` under which a sitemap waits."""

from __future__ import annotations

import sqlite3

from crawler.database.format import SITEMAP_PRIORITY, SITEMAP_TURN
from crawler.workspace.clock import now_text
from ingest.memory.changes import Changes
from ingest.sqlite.schema import json_list


class SitemapWriter:
    """Writes inside the store's transaction. Keeps `counts` up to date."""

    def __init__(self, db: sqlite3.Connection, counts: dict[str, int]) -> None:
        self._db = db
        self._counts = counts

    def write(self, done: Changes, run: int) -> None:
        if done.sitemaps:
            self._write_sitemaps(done, run)
        if done.sitemap_entries:
            self._db.executemany(
                "INSERT INTO sitemap_entries VALUES (?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET run = excluded.run,"
                " sitemap_id = iif(coalesce(excluded.lastmod, '') >= coalesce(lastmod, ''), excluded.sitemap_id,"
                " sitemap_id), lastmod = nullif(max(coalesce(excluded.lastmod, ''), coalesce(lastmod, '')), '')",
                [(page, sitemap, date, run) for page, (sitemap, date) in sorted(done.sitemap_entries.items())],
            )

    def _write_sitemaps(self, done: Changes, run: int) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO sitemaps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    *(s.id, s.url, s.wire, s.domain.id, s.announced_by, s.level, run, s.state, s.form),
                    *(s.entries, s.left_out, int(s.is_cut), s.status, s.error, s.read_at),
                )
                for s in done.sitemaps.values()
            ],
        )
        waiting = [s for s in done.sitemaps.values() if s.state == "waiting" and s.domain.closed is None]
        added = self._db.executemany(
            "INSERT OR IGNORE INTO frontier (id, page_id, priority, added_at, domain_id, turn)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [
                (-s.id, -s.id, SITEMAP_PRIORITY + s.level, done.latest or now_text(), s.domain.id, SITEMAP_TURN)
                for s in waiting
            ],
        )
        self._counts["frontier"] += max(added.rowcount, 0)
        read = json_list([-s.id for s in done.sitemaps.values() if s.state != "waiting"])
        gone = self._db.execute("DELETE FROM frontier WHERE id IN (SELECT value FROM json_each(?))", (read,))
        self._counts["frontier"] -= gone.rowcount

    def drop_waiting(self) -> None:
        """The run is finished: in a replay, sitemaps may wait that the crawl did not come to."""
        gone = self._db.execute("DELETE FROM frontier WHERE id < 0")
        self._counts["frontier"] -= gone.rowcount
