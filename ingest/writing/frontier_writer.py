"""Rows of `frontier`: pages begin to wait, move up, are visited, or are ended by a closure.

`turn` is the order inside a domain, so that a budget smaller than a site walks all of it over several runs: pages that
were never visited (0); where the budget ran out in the run before, pages that link to such pages (1), which a run has
to find again; then the page whose last visit is the most runs ago (1 + that run). Pages that were not due when the run
started go last: the scheduler carries them into the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from crawler.database.format import NOT_DUE_TURN
from crawler.database.ids import PAIR_BITS, PAIR_LOW, links_of
from crawler.model.settings import Config, RevisitSettings
from crawler.model.states import ERRORS, PageState
from crawler.rules.page_rules import CAP_REACHED
from crawler.rules.subdomains import is_subdomain_family, is_under
from crawler.workspace.clock import now_text
from ingest.memory.changes import Changes, ClosedFamily
from ingest.memory.waiting_counts import WaitingCounts
from ingest.rules.page_state import CLOSED_AS, CLOSING_ERRORS
from ingest.writing.engine import MapEngine, PackedRows
from ingest.writing.schema import id_lists, json_list

_QUEUED = PageState.QUEUED
_CLOSING_ERRORS = orjson.dumps(CLOSING_ERRORS).decode()
_NOT_DUE = f"""
     WHEN EXISTS (SELECT 1 FROM revisits WHERE revisits.id = pages.id AND revisits.run = pages.visited_run
                  AND next_crawl_at > (SELECT started_at FROM runs WHERE runs.id = :run)) THEN {NOT_DUE_TURN}
"""
_TURN = f"""
     WHEN EXISTS (SELECT 1 FROM domain_states WHERE id = pages.domain_id AND cut_run = :run - 1)
      AND EXISTS (SELECT 1 FROM links CROSS JOIN pages AS target ON target.id = links.to_page_id
                  WHERE {links_of("links", "pages.id")} AND target.domain_id = pages.domain_id
                  AND target.visited_run IS NULL AND target.state = 'request_limit_hit') THEN 1
     ELSE 1 + visited_run END
"""
_UNVISITED = "seen_run = :run AND visited_run IS NOT :run"
_INTO_FRONTIER = "INSERT OR IGNORE INTO frontier (id, page_id, priority, added_at, domain_id, turn) "
_FRESH = (  # nothing of a new page has to be read
    f"SELECT value & {PAIR_LOW}, value & {PAIR_LOW}, :rank, :at, value >> {PAIR_BITS}, 0 FROM json_each(:rows)"
)
_KNOWN = (
    "SELECT pages.id, pages.id, :rank, :at, domain_id, {turn} FROM json_each(:rows) AS wanted"
    f" CROSS JOIN pages ON pages.id = wanted.value & {PAIR_LOW}"
)


def _fresh_lines(pairs: Sequence[int], values: Mapping[str, Any]) -> Iterator[str]:
    rank, at = values["rank"], values["at"]
    for pair in pairs:
        page = pair & PAIR_LOW
        yield f"{page}\t{page}\t{rank}\t{at}\t{pair >> PAIR_BITS}\t0\n"


_NEW = PackedRows("frontier", "id, page_id, priority, added_at, domain_id, turn", _INTO_FRONTIER + _FRESH, _fresh_lines)


def _turn(settings: RevisitSettings) -> str:
    return f"CASE WHEN visited_run IS NULL THEN 0 {_NOT_DUE if settings.plans else ''} {_TURN}"


class FrontierWriter:
    """Writes inside the store's transaction. Keeps `counts` up to date."""

    def __init__(self, engine: MapEngine, counts: dict[str, int], config: Config) -> None:
        self._engine = engine
        self._db = engine.db
        self._by_level = config.crawler.order == "priority"
        self._turn = _turn(config.revisit)
        self._counts = counts
        self.waiting = WaitingCounts()

    def _remove(self, condition: str, parameters: Sequence[Any] | Mapping[str, Any]) -> int:
        """Delete rows; returns their number."""
        sql = f"DELETE FROM frontier WHERE {condition} RETURNING domain_id"
        domains = [number for (number,) in self._db.execute(sql, parameters)]
        self.waiting.add(domains, -1)
        self._counts["frontier"] -= len(domains)
        return len(domains)

    def write(self, done: Changes, run: int) -> None:
        fresh: dict[int, list[int]] = {}  # priority → domain and page of new pages
        added: dict[int, list[int]] = {}  # the same of pages that were known before
        moved: dict[int, list[int]] = {}
        gone: list[int] = []
        for page in [*done.new_pages, *done.pages.values()]:
            is_queued = page.state is _QUEUED
            # The frontier of a new run begins empty: pages left waiting by the run before are not in it.
            was_queued = page.stored_state is _QUEUED and not page.is_reentered
            if is_queued:
                rank = page.priority(by_level=self._by_level)
                if not was_queued:
                    places = fresh if page.stored_state is None else added
                    places.setdefault(rank, []).append(page.domain.id << PAIR_BITS | page.id)
                elif rank != page.stored_priority:
                    moved.setdefault(rank, []).append(page.id)
                page.stored_priority = rank
            elif was_queued:
                gone.append(page.id)
        listed = "(SELECT value FROM json_each(?))"
        if gone:
            self._remove(f"id IN {listed}", (json_list(gone),))
        for rank, numbers in moved.items():
            sql = f"UPDATE OR ROLLBACK frontier SET priority = ? WHERE id IN {listed}"
            self._db.execute(sql, (rank, json_list(numbers)))
        at = done.latest or now_text()
        for rank, pairs in fresh.items():
            pairs.sort()  # in the order of the index, here and below
            self._note_added(pairs, self._engine.add_packed(_NEW, pairs, {"rank": rank, "at": at}))
        known = _INTO_FRONTIER + _KNOWN.format(turn=self._turn)
        for rank, pairs in added.items():
            pairs.sort()
            values = {"rank": rank, "at": at, "run": run, "rows": json_list(pairs)}
            self._note_added(pairs, self._db.execute(known, values).rowcount)

    def _note_added(self, pairs: list[int], joined: int) -> None:
        """So many rows of these pages, each with its domain, were not there before."""
        self._counts["frontier"] += joined
        if joined == len(pairs):
            self.waiting.add(pair >> PAIR_BITS for pair in pairs)
        else:
            self.waiting.forget()

    def write_closures(self, done: Changes, run: int) -> None:
        """Close domains and families: all pages that wait in them end, however many, without being loaded. Sitemaps
        that wait in a domain end with it.

        Pages in memory may then be older than their rows; a page that was not visited is decided again before it is
        written. Families come first, as in `decide_state`, and take over pages that their domain's closure had ended.
        """
        for family in done.closed_families:
            if is_subdomain_family(family.domain, family.family):
                self._close_subdomains(done, family, run)
            elif family.error.startswith(CAP_REACHED):
                self._close_cap(done, family, run)
            else:
                self._close_family(done, family, run)
        closed: dict[str, list[int]] = {}  # reason → domains
        for domain in done.closed_domains.values():
            assert domain.closed is not None
            closed.setdefault(domain.closed, []).append(domain.id)
        self._drop_sitemaps(list(done.closed_domains))
        for reason, domains in closed.items():
            self._close_domains(done, reason, domains, run)

    def _close_family(self, done: Changes, closed: ClosedFamily, run: int) -> None:
        spare = orjson.dumps(closed.spare).decode()
        parameters = {"family": closed.number, "run": run, "spare": spare, "texts": _CLOSING_ERRORS}
        self._note_family(closed, run, spare)
        waiting = (
            f"SELECT id FROM pages WHERE family = :family AND {_UNVISITED}"
            " AND (state = 'queued' OR error_message IN (SELECT value FROM json_each(:texts) AS words)"
            f"  OR error_message LIKE '{CAP_REACHED}:%')"
            " AND url NOT IN (SELECT value FROM json_each(:spare) AS words)"
        )
        self._end_waiting(done, waiting, parameters, closed.error)

    def _close_cap(self, done: Changes, closed: ClosedFamily, run: int) -> None:
        """End the waiting pages of a unit. Families come before caps; of several caps, the first by its letters."""
        spare = orjson.dumps(closed.spare).decode()
        self._note_family(closed, run, spare)
        parameters = {"unit": closed.number, "run": run, "spare": spare, "texts": _CLOSING_ERRORS, "cap": closed.error}
        waiting = (
            f"SELECT id FROM cap_pages CROSS JOIN pages ON id = page_id WHERE unit = :unit AND {_UNVISITED}"
            " AND (state = 'queued' OR error_message IN (SELECT value FROM json_each(:texts) AS words)"
            f"  OR (error_message LIKE '{CAP_REACHED}:%' AND error_message > :cap))"
            " AND url NOT IN (SELECT value FROM json_each(:spare) AS words)"
        )
        self._end_waiting(done, waiting, parameters, closed.error)

    def _end_waiting(self, done: Changes, waiting: str, parameters: Mapping[str, Any], error: str) -> None:
        """The pages that `waiting` selects fail with this error."""
        gone = self._remove(f"id IN ({waiting})", parameters)
        done.closed_pages += [row[0] for row in self._db.execute(waiting, parameters)]
        self._db.execute(
            f"UPDATE pages SET state = 'failed', error_message = :error WHERE id IN ({waiting})",
            {**parameters, "error": error},
        )
        self._counts["errors"] += gone

    def _note_family(self, closed: ClosedFamily, run: int, spare: str) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO closed_families VALUES (?, ?, ?, ?, ?, ?)",
            (closed.number, run, closed.domain, closed.family, closed.error, spare),
        )

    def _close_subdomains(self, done: Changes, closed: ClosedFamily, run: int) -> None:
        """End the waiting pages of all hosts under a registered domain, except those that had been begun."""
        self._note_family(closed, run, orjson.dumps(closed.spare).decode())
        names = self._db.execute(
            "SELECT id, domain, (closed_reason IS NOT NULL AND run = ?3)"
            " OR EXISTS (SELECT 1 FROM closed_families f WHERE f.domain IN (d.domain, '') AND f.run = ?3)"
            " FROM domain_states d"
            " WHERE domain = ?1 OR domain LIKE ?2",  # more than those under it: is_under decides
            (closed.domain, f"%.{closed.domain}", run),
        ).fetchall()
        spared = frozenset(closed.spare)
        ended = [(n, is_closed) for n, host, is_closed in names if host not in spared and is_under(closed.domain, host)]
        self._drop_sitemaps([number for number, _ in ended])
        hosts = json_list([number for number, _ in ended])
        parameters = {"hosts": hosts, "run": run, "texts": _CLOSING_ERRORS, "error": closed.error}
        listed = "(SELECT value FROM json_each(:hosts))"
        waiting = f"SELECT page_id FROM frontier WHERE domain_id IN {listed}"
        done.closed_pages += [row[0] for row in self._db.execute(waiting, parameters)]
        self._db.execute(
            f"UPDATE pages SET state = 'failed', error_message = :error WHERE id IN ({waiting})", parameters
        )
        gone = self._remove(f"domain_id IN {listed}", parameters)
        self._counts["errors"] += gone
        if any(is_closed for _, is_closed in ended):  # this reason counts before those of the domain and its families
            self._db.execute(
                f"UPDATE pages SET state = 'failed', error_message = :error WHERE domain_id IN {listed}"
                f" AND {_UNVISITED} AND (error_message IN (SELECT value FROM json_each(:texts) AS words)"
                " OR error_message LIKE 'trap-query-variants:%' OR error_message LIKE 'trap-similar-paths:%'"
                f" OR error_message LIKE '{CAP_REACHED}:%')",
                parameters,
            )

    def _drop_sitemaps(self, domains: list[int]) -> None:
        """Sitemaps of these domains wait no longer: their domain is closed for this run."""
        gone = self._db.execute(
            "DELETE FROM frontier WHERE id < 0 AND domain_id IN (SELECT value FROM json_each(?))",
            (json_list(domains),),
        )
        self._counts["frontier"] -= gone.rowcount

    def _close_domains(self, done: Changes, reason: str, domains: list[int], run: int) -> None:
        """End the waiting pages of these domains. Together: pages that lie side by side are written once."""
        state, error = CLOSED_AS[reason]
        closed = json_list(domains)
        listed = "domain_id IN (SELECT value FROM json_each(?))"
        rows = self._db.execute(f"SELECT id, domain_id FROM frontier WHERE {listed}", (closed,)).fetchall()
        waiting = sorted([number for number, _ in rows])
        done.closed_pages += waiting
        for pages in id_lists(waiting):
            self._db.execute(
                "UPDATE OR ROLLBACK pages SET state = ?, error_message = ?"
                " WHERE id IN (SELECT value FROM json_each(?))",
                (state.value, error, pages),
            )
        if reason == "request-limit":
            sql = "UPDATE domain_states SET cut_run = ? WHERE id IN (SELECT value FROM json_each(?))"
            self._db.execute(sql, (run, closed))
        is_all = (
            len(waiting) == self._counts["frontier"]
            and not self._db.execute(
                "SELECT 1 FROM frontier WHERE domain_id NOT IN (SELECT value FROM json_each(?)) LIMIT 1", (closed,)
            ).fetchone()
        )
        if is_all:
            self._db.execute("DELETE FROM frontier")  # as a whole, which costs nothing
        else:
            self._db.execute(f"DELETE FROM frontier WHERE {listed}", (closed,))
        self.waiting.add([number for _, number in rows], -1)
        self._counts["frontier"] -= len(waiting)
        self._counts["errors"] += len(waiting) if state in ERRORS else 0
        for number in domains:
            if number in done.closed_harder:
                self._db.execute(
                    f"UPDATE pages SET state = :state, error_message = :error WHERE domain_id = :domain"
                    f" AND {_UNVISITED} AND error_message IN (SELECT value FROM json_each(:texts) AS words)",
                    {"state": state.value, "error": error, "domain": number, "run": run, "texts": _CLOSING_ERRORS},
                )
