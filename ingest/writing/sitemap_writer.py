"""Rows of `sitemaps` and `sitemap_entries`, and the rows of `frontier` under which a sitemap waits."""

from __future__ import annotations

from crawler.database.format import SITEMAP_PRIORITY, SITEMAP_TURN
from crawler.workspace.clock import now_text
from ingest.memory.changes import Changes
from ingest.writing.engine import MapConnection
from ingest.writing.schema import json_list

_IS_NEWER = "coalesce(excluded.lastmod, '') >= coalesce(sitemap_entries.lastmod, '')"


class SitemapWriter:
    """Writes inside the store's transaction. Keeps `counts` up to date."""

    def __init__(self, db: MapConnection, counts: dict[str, int]) -> None:
        self._db = db
        self._counts = counts

    def write(self, done: Changes, run: int) -> None:
        if done.sitemaps:
            self._write_sitemaps(done, run)
        if done.sitemap_entries:
            self._db.executemany(
                "INSERT INTO sitemap_entries VALUES (?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET run = excluded.run,"
                f" sitemap_id = CASE WHEN {_IS_NEWER} THEN excluded.sitemap_id ELSE sitemap_entries.sitemap_id END,"
                f" lastmod = CASE WHEN {_IS_NEWER} THEN excluded.lastmod ELSE sitemap_entries.lastmod END",
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
