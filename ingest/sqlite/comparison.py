"""The difference between two maps in files, in figures."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ingest.writing.engine import Difference


def compare_maps(db: sqlite3.Connection, other: Path) -> Difference:
    """The difference between the map in `db` and the older one in `other`."""
    db.execute("ATTACH DATABASE ? AS old", (str(other),))
    try:

        def first(sql: str) -> int:
            return int(db.execute(sql).fetchone()[0])

        # The +: the index of hashes is small, the one of URLs is not.
        same = "main.pages n JOIN old.pages o ON o.url_hash = n.url_hash AND +o.url = +n.url"
        shared = first(f"SELECT count(*) FROM {same}")
        states = db.execute(
            f"SELECT o.state, n.state, count(*) AS c FROM {same} WHERE o.state <> n.state"
            " GROUP BY 1, 2 ORDER BY c DESC, 1, 2"
        ).fetchall()
        classes = db.execute(
            "SELECT o.class, n.class, count(*) AS c FROM main.domain_states n JOIN old.domain_states o USING (domain)"
            " WHERE o.class <> n.class GROUP BY 1, 2 ORDER BY c DESC, 1, 2"
        ).fetchall()
        return Difference(
            first("SELECT count(*) FROM old.pages") - shared,
            first("SELECT count(*) FROM main.pages") - shared,
            tuple(states),
            first(f"SELECT count(*) FROM {same} WHERE o.depth IS NOT n.depth"),
            tuple(classes),
            first("SELECT count(*) FROM main.frontier"),
        )
    finally:
        db.execute("DETACH DATABASE old")
