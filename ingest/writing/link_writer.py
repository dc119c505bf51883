"""Rows of `links`, and the references to blacklisted and stubbed pages."""

from __future__ import annotations

from collections import Counter
from itertools import chain

from crawler.database.ids import pair_id, pair_sql
from ingest.memory.changes import Changes
from ingest.memory.page_index import BLACKLISTED, STUBBED
from ingest.writing.domain_sums import DomainSums
from ingest.writing.engine import MapEngine
from ingest.writing.schema import json_list


class LinkWriter:
    """Writes inside the store's transaction."""

    def __init__(self, engine: MapEngine, sums: DomainSums) -> None:
        self._engine = engine
        self._db = engine.db
        self._sums = sums

    def write_links(self, done: Changes, run: int) -> None:
        found = [(source, kind, sorted(targets)) for source, (kind, targets) in sorted(done.links.items()) if targets]
        known = done.relinked | done.confirmed.keys()
        self._engine.add_links([each for each in found if each[0] not in known], run)
        self._engine.renew_links([each for each in found if each[0] in done.relinked], run)
        confirmed = [(source, done.confirmed[source], kind) for source, kind, _ in found if source in done.confirmed]
        self._engine.confirm_links(confirmed, run)
        self._write_contexts(done, known)
        self._sums.add_visits(done.visits)
        if done.ends_run:
            self._sums.write_all()

    def _write_contexts(self, done: Changes, known: set[int]) -> None:
        """The texts of a page's links replace those of its visit before; links that are gone keep theirs."""
        if not done.link_contexts:
            return
        self._db.executemany(
            f"DELETE FROM link_texts WHERE id IN (SELECT {pair_sql('?1', 'value')} FROM json_each(?2))",
            [
                (source, json_list(sorted(done.links[source][1])))
                for source in sorted(done.link_contexts.keys() & known)
            ],
        )
        self._db.executemany(
            "INSERT INTO link_texts VALUES (?, nullif(?, ''), nullif(?, ''))",
            [
                (pair_id(source, target), *context)
                for source, contexts in sorted(done.link_contexts.items())
                for target, context in sorted(contexts.items())
            ],
        )

    def write_references(self, done: Changes, run: int) -> None:
        for listed, urls, referrers in (
            (BLACKLISTED, "blacklisted_urls", "blacklisted_referrers"),
            (STUBBED, "stubbed_urls", "stubbed_referrers"),
        ):
            by_referrer = done.references[listed]
            if not by_referrer:
                continue
            counts = Counter(chain.from_iterable(by_referrer.values()))
            self._db.executemany(
                f"INSERT INTO {urls} VALUES (?, ?, ?, ?, ?)",
                [(p.id, p.key, p.domain.name, more, run) for p in done.new_pages if (more := counts.pop(p.id, 0))],
            )
            again: dict[int, list[int]] = {}  # references more → pages that were known before
            for number, more in sorted(counts.items()):
                again.setdefault(more, []).append(number)
            for more, found in again.items():
                numbers = json_list(found)
                counted = self._db.execute(
                    f"UPDATE {urls} SET reference_count = reference_count + ?"
                    " WHERE id IN (SELECT value FROM json_each(?))",
                    (more, numbers),
                ).rowcount
                if counted < len(found):  # a seed on a listed domain is a page before any link to it
                    self._db.execute(
                        f"INSERT OR IGNORE INTO {urls} SELECT id, url, domain, ?, ? FROM pages"
                        " WHERE id IN (SELECT value FROM json_each(?))",
                        (more, run, numbers),
                    )
            self._db.executemany(
                f"INSERT OR IGNORE INTO {referrers} SELECT {pair_sql('?1', 'value')}, value, ?1, ?2 FROM json_each(?3)",
                [(source, run, json_list(sorted(found))) for source, found in sorted(by_referrer.items())],
            )
