"""A batch's changes into the tables, in the order of the trees they go into.

Rows of one page lie together, sorted keys visit each leaf of an index once, and what can go in as a list does
(`json_each`): binding a parameter costs more than writing a small row, most of all None and bytes, for which the
sqlite3 module looks for an adapter every time (hence `nullif` and bytearrays where it is done often).

A statement that writes many rows says what is to happen if one of them cannot be written: OR ROLLBACK, as an error
takes the whole batch back anyway, or OR IGNORE. Otherwise SQLite would first copy every page that the statement touches
into a file, to be able to take back this statement alone: that was more than all that went into the log.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from itertools import chain
from typing import Any

import orjson

from crawler.model.states import ERRORS, PageState
from crawler.workspace.clock import now_text
from crawler.workspace.log import Cursor, Damage
from ingest.map_rows import Domain, Page
from ingest.page_index import BLACKLISTED, QUEUED, STUBBED, Register
from ingest.rules.depth import Distances, reach_bytes
from ingest.rules.page_state import CLOSED_AS, priority
from ingest.sqlite.domain_sums import DomainSums, Visit
from ingest.sqlite.schema import json_list

_TEXTS = {state: state.value for state in PageState}  # what sqlite3 binds as it is
_QUEUED = PageState.QUEUED
_DEEP = 0x7FFF  # depths beyond this do not fit beside a page's number and an origin's

_DEPTH_ROWS = (
    "INTO page_depths SELECT value >> 15, value >> 31, pattern, value & 0x7fff FROM json_each(?)"
    " CROSS JOIN origins ON origins.id = (value >> 15) & 0xffff"
)


class Changes:
    """What a batch did, beside the pages and domains themselves. Emptied by every commit."""

    def __init__(self) -> None:
        self.new_pages: list[Page] = []
        self.pages: dict[int, Page] = {}  # dirty ones that are in the database already
        self.domains: dict[int, Domain] = {}
        self.moves: dict[int, int] = {}  # pages whose depths alone changed → number of the reach they are stored with
        self.moved_up: dict[int, int] = {}  # domain → least depth among its waiting pages that moved
        self.closed_pages: list[int] = []  # what closures settled, known when they are written
        self.links: dict[int, tuple[int, list[int]]] = {}  # from page → (kind, to pages)
        self.relinked: set[int] = set()  # those of them that have had links before
        self.redirects: dict[int, set[int]] = {}  # target → pages redirected to it
        self.visits: list[Visit] = []
        self.ends_run = False
        self.new_links = 0
        # Standing → referrer → listed pages; new references only.
        self.references: dict[int, dict[int, list[int]]] = {BLACKLISTED: {}, STUBBED: {}}
        self.robots: dict[int, str | None] = {}  # domain → the text of its robots.txt
        self.closed_domains: dict[int, Domain] = {}
        self.closed_harder: set[int] = set()  # those that had been closed already, for a lesser reason
        self.closed_families: list[tuple[int, str, str, str, tuple[str, ...]]] = []
        self.held: dict[int, tuple[int, bytes]] = {}  # hash of the key → (run, line)
        self.unheld: list[int] = []
        self.events: list[int] = []
        self.positions: dict[str, Cursor] = {}
        self.damage: list[tuple[str, Damage]] = []
        self.done: list[Page] = []  # pages whose visit was taken in
        self.latest = ""  # the latest clock among the records


class ChangeWriter:
    """Writes changes through the store's connection, inside the store's transaction. `counts` are kept up."""

    def __init__(
        self,
        db: sqlite3.Connection,
        register: Register,
        distances: Distances,
        origins: list[str],
        sums: DomainSums,
        counts: dict[str, int],
    ) -> None:
        self._db = db
        self._register = register
        self._distances = distances
        self._origins = origins
        self._sums = sums
        self._counts = counts

    def write(self, done: Changes, run: int) -> None:
        """Everything that a batch changed. Later statements rely on the rows of earlier ones."""
        self._write_domains(done)
        self._write_pages(done)
        self.write_moves(done)
        self._write_links(done, run)
        self._write_references(done, run)
        self._write_frontier(done)
        self._write_closures(done, run)
        self._write_notes(done)

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

    def _write_pages(self, done: Changes) -> None:
        self._db.executemany(
            "INSERT INTO pages (id, url, domain, state, discovered_at, discovered_run, error_message, url_hash,"
            " wire_url, domain_id, depth, reach, seen_run, family)"
            " VALUES (?, ?, ?, ?, ?, ?, nullif(?, ''), ?, nullif(?, ''), ?, ?, ?, ?, nullif(?, 0))",
            (  # one by one: all of these rows at once would be a good part of a batch's memory
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
                )
                for p in done.new_pages
            ),
        )
        dirty = sorted(done.pages.values(), key=_by_id)
        self._write_standings([p for p in dirty if p.visit is None])
        self._db.executemany(
            "UPDATE pages SET redirect_to = NULL WHERE id = ?",
            [(p.id,) for p in dirty if p.is_reentered and p.redirect_to is None],
        )
        visited = [p for p in dirty if p.visit is not None] + [p for p in done.new_pages if p.visit is not None]
        self._db.executemany(
            "UPDATE pages SET state = ?, error_message = nullif(?, ''), depth = ?, reach = ?, seen_run = ?,"
            " redirect_to = nullif(?, 0),"
            " title = ?, status_code = ?, content_type = ?, last_modified = ?, visited_at = ?, retry_count = ?,"
            " visited_run = ?, nofollow = ?, links_cut = ?, bytes = ? WHERE id = ?",
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
                    p.visit.at,
                    p.visit.retries,
                    p.visit.run,
                    int(p.visit.nofollow),
                    p.visit.links_cut,
                    p.visit.bytes,
                    p.id,
                )
                for p in visited
                if p.visit is not None
            ],
        )
        self._write_depths(done.new_pages, dirty)

    def _write_standings(self, pages: list[Page]) -> None:
        """What pages have become without a visit. Far the most frequent change, so it stays off every index.

        Pages that became the same are written by one statement; what stands alone goes one by one.
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

    def _write_depths(self, fresh: list[Page], dirty: list[Page]) -> None:
        """Only what changed: within a run depths are lowered or added, and only a new run takes some away."""
        ways: dict[tuple[int, int], list[int]] = {}  # (reach before, reach now) → pages: few for many
        lost: list[int] = []
        for page in [*fresh, *dirty]:
            number, before, after = page.id, page.stored_reach, page.reach
            if before != after:
                ways.setdefault((before, after), []).append(number)
                if page.is_reentered:
                    lost += [number << 16 | origin for origin in self._distances.vanished(before, after)]
        if lost:
            self._db.execute("DELETE FROM page_depths WHERE id IN (SELECT value FROM json_each(?))", (json_list(lost),))
        self._insert_depths(ways)

    def _insert_depths(self, ways: dict[tuple[int, int], list[int]]) -> None:
        """(reach before, reach now) → pages. In the order of the table: new pages' rows all go to its end."""
        fresh: list[int] = []  # page (32 bits), origin (16) and depth (15) in one number
        nearer: dict[int, list[int]] = {}  # depth → page and origin, of rows that are there
        deep: list[tuple[int, int, str, int]] = []
        for (before, after), numbers in ways.items():
            for origin, depth in self._distances.differences(before, after):
                if depth > _DEEP:
                    deep += [(number << 16 | origin, number, self._origins[origin], depth) for number in numbers]
                elif self._distances.has_way(before, origin):
                    nearer.setdefault(depth, []).extend([number << 16 | origin for number in numbers])
                else:
                    place = origin << 15 | depth
                    fresh += [number << 31 | place for number in numbers]
        written = self._db.execute(f"INSERT OR IGNORE {_DEPTH_ROWS}", (json_list(sorted(fresh)),)).rowcount
        for depth, found in nearer.items():
            written += self._db.execute(
                "UPDATE OR ROLLBACK page_depths SET depth = ? WHERE id IN (SELECT value FROM json_each(?))",
                (depth, json_list(sorted(found))),
            ).rowcount
        otherwise = "ON CONFLICT(id) DO UPDATE SET depth = excluded.depth"
        self._db.executemany(f"INSERT INTO page_depths VALUES (?, ?, ?, ?) {otherwise}", deep)
        if written < len(fresh) + sum(map(len, nearer.values())):  # somebody has changed the table by hand
            everything = fresh + [place << 15 | depth for depth, found in nearer.items() for place in found]
            self._db.execute(f"INSERT {_DEPTH_ROWS} WHERE true {otherwise}", (json_list(everything),))

    def write_moves(self, done: Changes) -> None:
        """Pages of which nothing but the depths changed, however many. They are done with, then."""
        register, nearest = self._register, self._distances.nearest
        ways: dict[tuple[int, int], list[int]] = {}  # (reach before, reach now) → pages
        for number, before in done.moves.items():
            ways.setdefault((before, register.reaches[number]), []).append(number)
        standings: dict[int, list[int]] = {}  # reach → pages
        ranks: dict[int, list[int]] = {}  # depth → pages
        depths: dict[tuple[int, int], list[int]] = {}  # (reach before, reach now) → pages
        for (was, now), numbers in ways.items():
            before, after = register.values[was], register.values[now]
            standings.setdefault(after, []).extend(numbers)
            depths[before, after] = numbers
            depth = nearest(after)
            if depth is not None and depth != nearest(before):
                waiting = [number for number in numbers if register.standings[number] == QUEUED]
                ranks.setdefault(depth, []).extend(waiting)
                for domain in {register.domains[number] for number in waiting}:
                    done.moved_up[domain] = min(depth, done.moved_up.get(domain, depth))
        self._db.executemany(
            "UPDATE OR ROLLBACK pages SET depth = ?, reach = ? WHERE id IN (SELECT value FROM json_each(?))",
            [(nearest(reach), reach_bytes(reach), json_list(sorted(found))) for reach, found in standings.items()],
        )
        self._insert_depths(depths)
        self._db.executemany(
            # The last bit says whether the domain is a quality domain (`plan.priority`), and stays.
            "UPDATE OR ROLLBACK frontier SET priority = 2 * ? + (priority & 1)"
            " WHERE id IN (SELECT value FROM json_each(?))",
            [(depth, json_list(sorted(found))) for depth, found in ranks.items() if found],
        )
        done.moves.clear()

    def _write_links(self, done: Changes, run: int) -> None:
        # A page's links go in as one list: a third of the cost of binding them row by row (0.45 against 1.3 µs).
        found = [
            (source, run, kind, json_list(sorted(targets)))
            for source, (kind, targets) in sorted(done.links.items())
            if targets
        ]
        rows = "INTO links SELECT ?1 << 32 | value, ?1, value, ?2, ?2, ?3 FROM json_each(?4)"
        self._db.executemany(f"INSERT OR ROLLBACK {rows}", [row for row in found if row[0] not in done.relinked])
        self._db.executemany(
            f"INSERT {rows} WHERE true"
            " ON CONFLICT(id) DO UPDATE SET last_run = excluded.last_run, kind = excluded.kind",
            [row for row in found if row[0] in done.relinked],
        )
        self._sums.take(done.visits)
        if done.ends_run:
            self._sums.settle()

    def _write_references(self, done: Changes, run: int) -> None:
        for listed, urls, referrers in (
            (BLACKLISTED, "blacklisted_urls", "blacklisted_referrers"),
            (STUBBED, "stubbed_urls", "stubbed_referrers"),
        ):
            leading = done.references[listed]
            if not leading:
                continue
            counts = Counter(chain.from_iterable(leading.values()))
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
                if counted < len(found):  # a seed on a listed domain was a page before anybody linked to it
                    self._db.execute(
                        f"INSERT OR IGNORE INTO {urls} SELECT id, url, domain, ?, ? FROM pages"
                        " WHERE id IN (SELECT value FROM json_each(?))",
                        (more, run, numbers),
                    )
            self._db.executemany(
                f"INSERT OR IGNORE INTO {referrers} SELECT ?1 << 32 | value, value, ?1, ?2 FROM json_each(?3)",
                [(source, run, json_list(sorted(found))) for source, found in sorted(leading.items())],
            )

    def _write_frontier(self, done: Changes) -> None:
        added: dict[int, list[tuple[int, int]]] = {}  # priority → (domain, page): in the order of the index
        moved: dict[int, list[int]] = {}
        gone: list[int] = []
        for page in [*done.new_pages, *done.pages.values()]:
            is_queued = page.state is _QUEUED
            # The frontier of a new run begins empty: what the run before left waiting is not in it.
            was_queued = page.stored_state is _QUEUED and not page.is_reentered
            if is_queued:
                assert page.depth is not None
                rank = priority(page.depth, page.domain.klass)
                if not was_queued:
                    added.setdefault(rank, []).append((page.domain.id, page.id))
                elif rank != page.stored_priority:
                    moved.setdefault(rank, []).append(page.id)
                page.stored_priority = rank
            elif was_queued:
                gone.append(page.id)
        listed = "(SELECT value FROM json_each(?))"
        if gone:
            left = self._db.execute(f"DELETE FROM frontier WHERE id IN {listed}", (json_list(gone),))
            self._counts["frontier"] -= left.rowcount
        for rank, numbers in moved.items():
            sql = f"UPDATE OR ROLLBACK frontier SET priority = ? WHERE id IN {listed}"
            self._db.execute(sql, (rank, json_list(numbers)))
        for rank, places in added.items():
            joined = self._db.execute(
                "INSERT OR IGNORE INTO frontier (id, page_id, priority, added_at, domain_id)"
                " SELECT pages.id, pages.id, ?, ?, domain_id FROM json_each(?) AS wanted"
                " CROSS JOIN pages ON pages.id = wanted.value",
                (rank, done.latest or now_text(), json_list([number for _, number in sorted(places)])),
            )
            self._counts["frontier"] += joined.rowcount

    def _write_closures(self, done: Changes, run: int) -> None:
        """Closing a domain or a family settles all that waits in it, however much that is, without loading it.

        What is in memory may then lag behind the rows; the mapper settles a page that was not visited before it
        writes it. Families come first, as in `plan.settle`, and take over what their domain's closure had settled.
        """
        texts = orjson.dumps([error for _, error in CLOSED_AS.values()]).decode()
        unvisited = "seen_run = :run AND visited_run IS NOT :run"
        for number, domain_name, family, error, spare in done.closed_families:
            parameters = {"family": number, "run": run, "spare": orjson.dumps(spare).decode(), "texts": texts}
            self._db.execute(
                "INSERT OR REPLACE INTO closed_families VALUES (?, ?, ?, ?, ?, ?)",
                (number, run, domain_name, family, error, parameters["spare"]),
            )
            waiting = (
                f"SELECT id FROM pages WHERE family = :family AND {unvisited}"
                " AND (state = 'queued' OR error_message IN (SELECT value FROM json_each(:texts)))"
                " AND url NOT IN (SELECT value FROM json_each(:spare))"
            )
            gone = self._db.execute(f"DELETE FROM frontier WHERE id IN ({waiting})", parameters).rowcount
            done.closed_pages += [row[0] for row in self._db.execute(waiting, parameters)]
            self._db.execute(
                f"UPDATE pages SET state = 'failed', error_message = :error WHERE id IN ({waiting})",
                {**parameters, "error": error},
            )
            self._counts["frontier"] -= gone
            self._counts["errors"] += gone
        for domain in done.closed_domains.values():
            assert domain.closed is not None
            state, error = CLOSED_AS[domain.closed]
            waiting = "SELECT page_id FROM frontier WHERE domain_id = ?"
            done.closed_pages += [row[0] for row in self._db.execute(waiting, (domain.id,))]
            self._db.execute(
                f"UPDATE pages SET state = ?, error_message = ? WHERE id IN ({waiting})",
                (state.value, error, domain.id),
            )
            gone = self._db.execute("DELETE FROM frontier WHERE domain_id = ?", (domain.id,)).rowcount
            self._counts["frontier"] -= gone
            self._counts["errors"] += gone if state in ERRORS else 0
            if domain.id in done.closed_harder:
                self._db.execute(
                    f"UPDATE pages SET state = :state, error_message = :error WHERE domain_id = :domain AND {unvisited}"
                    " AND error_message IN (SELECT value FROM json_each(:texts))",
                    {"state": state.value, "error": error, "domain": domain.id, "run": run, "texts": texts},
                )

    def _write_notes(self, done: Changes) -> None:
        """What was held, taken in, set aside, and how far each spool was read."""
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


def _by_id(page: Page) -> int:
    return page.id
