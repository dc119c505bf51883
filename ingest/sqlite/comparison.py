"""The difference between two maps, in figures."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between a map and an older one."""

    only_before: int
    only_now: int
    states: tuple[tuple[str, str, int], ...]  # (state before, state now, pages), most first
    depths: int  # pages whose least depth changed
    classes: tuple[tuple[str, str, int], ...]  # (class before, class now, domains)
    waiting: int

    def lines(self) -> list[str]:
        found = [f"pages only in the old map: {self.only_before:,}; only in the new one: {self.only_now:,}"]
        found += [f"pages that went from {was} to {now}: {count:,}" for was, now, count in self.states]
        if self.depths:
            found.append(f"pages with another depth: {self.depths:,}")
        found += [f"domains that went from {was} to {now}: {count:,}" for was, now, count in self.classes]
        found.append(f"pages still to be fetched under these rules: {self.waiting:,}")
        return found


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
