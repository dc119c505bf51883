"""The workspace in PostgreSQL: `EngineWorkspace` is what `crawler.workspace.door.Workspace` describes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from crawler.engine.engine_connection import EngineError, EngineUnreachable, connect
from crawler.engine.schemas import upgrade, version_of
from crawler.model.moments import Moment
from crawler.workspace.bookmarks import Bookmark, BookmarkMove
from crawler.workspace.door import LONGEST_REQUEST_MS, STAGES, BusyWork, Claim, RoleTaken, WorkspaceError
from crawler.workspace.files.activity_file import ActivityFile
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.log import BEGINNING, Cursor
from crawler.workspace.postgres import job_windows
from crawler.workspace.postgres.claim_rows import ClaimRow, claim_domains, release_claims
from crawler.workspace.postgres.engine_bells import Bells, EngineBell
from crawler.workspace.postgres.engine_session import (
    LEASE,
    Connection,
    EngineSession,
    Fenced,
    Gone,
    durably,
    process_words,
)
from crawler.workspace.postgres.gate_rows import GateRow
from crawler.workspace.postgres.glances import Glances
from crawler.workspace.postgres.record_logs import HintRecords, RecordSync, ResultRecords, in_one
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from crawler.workspace.seals import sealed, unsealed
from crawler.workspace.unfinished import NOTE

ARCHIVE = "archive/results"  # below the folder of a machine, unless the config says otherwise
_SLOTS_LOCK = 0x53756D69_536C6F74  # any number that only this program uses
# Those that were killed while they held nothing are fenced by nobody. Who is connected has locked its number.
_FORGET_HOLDERS = """
WITH old AS MATERIALIZED (
    SELECT h.id FROM holders h, clock_us() AS now
    WHERE h.until_us < now - %(before)s AND h.id IS DISTINCT FROM %(me)s::bigint
        AND (h.is_fenced OR h.slots = 0
            AND NOT EXISTS (SELECT FROM gates g WHERE g.holder = h.id)
            AND NOT EXISTS (SELECT FROM roles r WHERE r.holder = h.id))
        AND NOT EXISTS (SELECT FROM gates g WHERE g.flight_by = h.id AND g.is_in_flight AND g.flight_until_us > now)
)
DELETE FROM holders WHERE id IN (SELECT id FROM old WHERE pg_try_advisory_xact_lock(id))
"""
_KEPT_TABLES = ("holders", "roles", "eras")


class RoleRow:
    """A role that this process holds. See `crawler.workspace.door.Held`."""

    def __init__(self, session: EngineSession, role: str, token: int) -> None:
        self._session = session
        self._role = role
        self._token = token
        self._is_held = True

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            with suppress(Fenced, Gone):  # then it is free already, or others will find out
                self._session.release_role(self._role, self._token)


class SlotCounts:
    """See `crawler.workspace.door.Slots`: a number in each holder's row, changed under one lock."""

    def __init__(self, session: EngineSession, limit: int) -> None:
        self._session = session
        self._limit = limit
        self.held = 0

    def acquire(self, wanted: int) -> None:
        if wanted > 0:
            self._change(wanted)

    def give_back(self, count: int) -> None:
        if count > 0 and self.held:
            self._change(-min(count, self.held))

    def close(self) -> None:
        with suppress(Fenced, Gone):
            self.give_back(self.held)

    def _change(self, by: int) -> None:
        def work(connection: Connection) -> int:
            me = self._session.join()
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SLOTS_LOCK,))
                if by > 0:
                    self._free_dead(connection, me)
                rows = connection.execute(
                    "UPDATE holders SET slots = %(held)s + least(%(by)s, greatest(0, %(limit)s - (SELECT"
                    " coalesce(sum(slots), 0) FROM holders WHERE NOT is_fenced)))::integer"
                    " WHERE id = %(me)s RETURNING slots",
                    {"held": self.held, "by": by, "limit": self._limit, "me": me},
                ).fetchall()
                return int(rows[0][0])

        self.held = self._session.run(work)

    def _free_dead(self, connection: Connection, me: int) -> None:
        others = connection.execute(
            "SELECT id FROM holders WHERE slots > 0 AND NOT is_fenced AND id <> %s", (me,)
        ).fetchall()
        for (other,) in others:
            self._session.free_of_dead(connection, other)


class EngineWorkspace:
    """A workspace in the database at `url`. What one machine alone needs is below its folder `root`.

    `archive`: where results that leave the engine go, and are looked for. `lease`: seconds that this process may be
    silent before others take over its work.
    """

    def __init__(self, root: Path, url: str, archive: Path | None = None, *, lease: int = LEASE) -> None:
        self._url = url
        self._local = FileWorkspace(root)
        self.session = EngineSession(url, lease)
        self.layout = self._local.layout
        self.results = ResultRecords(self.session, self.layout, archive or root / ARCHIVE)
        self.releases = HintRecords(self.session, "releases")
        self.feed = HintRecords(self.session, "feed")
        self.orders = HintRecords(self.session, "orders")
        self.logs = self._local.logs
        self._bells = Bells(self.session, url)
        self._glances = Glances(self.session, self._local.flags)

    @property
    def name(self) -> str:
        return self._local.name

    def endure(self, is_over: Callable[[], bool]) -> None:
        self.session.endure(is_over)

    def wait_in(self, waiter: Any) -> None:
        self.session.wait_in(waiter)

    def close(self) -> None:
        """Give up everything that this process holds. Without it, that is found out by others."""
        self.session.close()

    # -- the workspace itself ----------------------------------------------------------------------------

    def exists(self) -> bool:
        try:
            with connect(self._url, "look") as connection:
                return bool(version_of(connection, WORKSPACE))
        except EngineUnreachable as problem:
            raise Gone(problem) from None
        except EngineError as problem:
            raise WorkspaceError(str(problem)) from None

    def check_format(self) -> None:
        self._local.check_format()
        self.session.run(lambda connection: None)  # it refuses another version of the schema

    def prepare(self, *, is_to_be_cleared: bool = False) -> None:
        self._local.prepare(is_to_be_cleared=is_to_be_cleared)
        self.check_format()

    def free_bytes(self) -> int | None:
        return self._local.free_bytes()

    def is_open_to_others(self) -> bool:
        return self._local.is_open_to_others()

    def prepare_outputs(self) -> None:
        self._local.prepare_outputs()

    def move_aside(self, stamp: str, recent_seconds: float, *, is_whole: bool = False) -> list[str]:
        kept = f"{WORKSPACE.name}_old_{''.join(c if c.isalnum() else '_' for c in stamp.lower())}"
        # A crawl in files that lies in this machine's folder is another one, and stays with all that belongs to it.
        files = (
            [] if self._local.results.writers() else self._local.move_aside(stamp, recent_seconds, is_whole=is_whole)
        )
        if not self.holds_crawl():
            self.session.execute("DELETE FROM documents WHERE name = %s", (NOTE,), is_durable=True)
            return files

        def work(connection: Connection) -> None:
            with connection.transaction():
                connection.execute(f"ALTER SCHEMA {WORKSPACE.name} RENAME TO {kept}")
                upgrade(connection, WORKSPACE)
                connection.execute(f"SET LOCAL search_path TO {WORKSPACE.name}")
                for table in _KEPT_TABLES:
                    connection.execute(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM {kept}.{table}")
                # Rows of processes that ended are gone; their numbers come never again all the same.
                connection.execute(
                    "SELECT setval(pg_get_serial_sequence('holders', 'id'), last_value, is_called)"
                    f" FROM {kept}.holders_id_seq"
                )
                connection.execute(f"SELECT setval('window_numbers', last_value) FROM {kept}.window_numbers")
                # Clocks go on, budgets begin anew: a record without a run is new to the first one.
                connection.execute(
                    "INSERT INTO gates (domain, token, version, entered_us, ended_us, used_us)"
                    f" SELECT domain, token, version + 1, entered_us, ended_us, used_us FROM {kept}.gates"
                    f" WHERE used_us > {kept}.clock_us() - %s",
                    (int(recent_seconds * 1_000_000),),
                )

        self.session.run(work)
        return [f"{kept} in the engine", *files]

    def holds_crawl(self) -> bool:
        """Has anybody crawled here, or brought a crawl here as a whole?"""
        return self.session.run(holds_crawl)

    def is_aside(self, stamp: str) -> bool:
        kept = f"{WORKSPACE.name}_old_{''.join(c if c.isalnum() else '_' for c in stamp.lower())}"
        found = self.session.execute("SELECT FROM pg_namespace WHERE nspname = %s", (kept,))
        return bool(found) or self._local.is_aside(stamp)

    # -- roles -------------------------------------------------------------------------------------------

    def take_role(self, role: str) -> RoleRow:
        def work(connection: Connection) -> int | None:
            me = self.session.join()  # here: no other thread gives back this process's last role meanwhile
            for _ in range(2):
                rows = durably(
                    connection,
                    "INSERT INTO roles VALUES (%(role)s, %(me)s, 1) ON CONFLICT (role) DO UPDATE"
                    " SET holder = %(me)s, token = roles.token + 1 WHERE roles.holder IS NULL RETURNING token",
                    {"role": role, "me": me},
                )
                if rows:
                    return int(rows[0][0])
                held = connection.execute("SELECT holder FROM roles WHERE role = %s", (role,)).fetchall()
                by = held[0][0] if held else None
                if by is None or not self.session.free_of_dead(connection, by):
                    return None
            return None

        token = self.session.run(work)
        if token is None:
            words = f"the engine {self.session.place}"
            raise RoleTaken(role, words, self.who_has(role), instead="name another database in [engine] url")
        return RoleRow(self.session, role, token)

    def is_role_taken(self, role: str) -> bool:
        def work(connection: Connection) -> bool:
            held = connection.execute("SELECT holder FROM roles WHERE role = %s", (role,)).fetchall()
            by = held[0][0] if held else None
            return by is not None and not self.session.free_of_dead(connection, by)

        return self.session.run(work)

    def who_has(self, role: str) -> str:
        rows = self.session.execute(
            "SELECT h.machine, h.pid FROM roles r JOIN holders h ON h.id = r.holder WHERE r.role = %s", (role,)
        )
        return process_words(*rows[0]) if rows else ""

    def roles(self) -> list[str]:
        return [role for (role,) in self.session.execute("SELECT role FROM roles ORDER BY role")]

    # -- domains -----------------------------------------------------------------------------------------

    def claim(self, domain: str) -> ClaimRow | None:
        return self.claim_all([domain]).get(domain)

    def claim_all(self, domains: Collection[str]) -> dict[str, ClaimRow]:
        def work(connection: Connection) -> dict[str, int]:
            return claim_domains(connection, self.session, self.session.join(), domains)

        tokens = self.session.run(work)
        return {domain: ClaimRow(self.session, domain, token) for domain, token in tokens.items()}

    def release_all(self, claims: Collection[Claim]) -> None:
        release_claims(self.session, [claim for claim in claims if isinstance(claim, ClaimRow)])

    def bookmark(self, domain: str) -> Bookmark:
        return self.bookmarks([domain])[domain]

    def bookmarks(self, domains: Collection[str]) -> dict[str, Bookmark]:
        return job_windows.read_bookmarks(self.session, domains)

    def save_bookmarks(self, moves: Collection[BookmarkMove], *, after: Callable[[], None] | None = None) -> None:
        work = partial(job_windows.move_bookmarks, moves=moves)
        if isinstance(after, RecordSync) and moves:
            after.together(work)
            return
        if after is not None:
            after()
        if moves:
            self.session.run(lambda connection: in_one(connection, self.session, work))

    @property
    def bookmarks_go_with_results(self) -> bool:
        return True

    def job_writer(self) -> job_windows.JobWindows:
        return job_windows.JobWindows(self.session)

    def jobs(self, domain: str, start: Cursor = BEGINNING) -> job_windows.JobReader:
        return job_windows.JobReader(self.session, domain, start)

    def domains_with_jobs(self) -> list[str]:
        return [domain for (domain,) in self.session.execute("SELECT domain FROM job_domains ORDER BY domain")]

    def waiting_job_bytes(self) -> Mapping[str, int]:
        return job_windows.waiting_bytes(self.session)

    def gate(self, domain: str, clock: Callable[[], Moment], longest_ms: int = LONGEST_REQUEST_MS) -> GateRow:
        return GateRow(self.session, domain, clock, longest_ms, self.results)

    def slots(self, limit: int) -> SlotCounts:
        return SlotCounts(self.session, limit)

    def activity(self, name: str) -> ActivityFile:
        return self._local.activity(name)

    def busy_work(self) -> list[BusyWork]:
        return self._local.busy_work()

    # -- robots.txt --------------------------------------------------------------------------------------

    def robots(self, host: str) -> bytes | None:
        return self._sealed("SELECT content FROM robots WHERE host = %s", host)

    def keep_robots(self, host: str, content: bytes) -> None:
        self.results.flush()  # who finds it here must find its record in a log, too
        self.session.execute(
            "INSERT INTO robots VALUES (%s, %s, clock_us()) ON CONFLICT (host) DO UPDATE"
            " SET content = excluded.content, at_us = excluded.at_us",
            (host, sealed(content)),
        )

    def forget_idle(self, seconds: float) -> int:
        before = int(seconds * 1_000_000)
        removed = 0
        for statement in (
            "DELETE FROM robots WHERE at_us < clock_us() - %s RETURNING 1",
            "DELETE FROM gates WHERE used_us < clock_us() - %s AND holder IS NULL AND NOT is_in_flight RETURNING 1",
        ):
            removed += len(self.session.execute(statement, (before,)))
        self.session.execute(_FORGET_HOLDERS, {"before": before, "me": self.session.holder})
        return removed

    # -- flags, bells, heartbeats ------------------------------------------------------------------------

    def is_flagged(self, word: str, stage: str | None = None) -> bool:
        flags = self._glances.flags()
        return word in flags or (stage is not None and f"{word}.{stage}" in flags)

    def flags(self) -> list[str]:
        """Those of the crawl, and the flag files in this machine's own folder, which its processes alone obey."""
        found = set(self._local.flags())
        found |= {name for (name,) in self.session.execute("SELECT name FROM flags")}
        names = [_flag(word, stage) for word in ("pause", "stop") for stage in (None, *STAGES)]
        return [name for name in names if name in found]

    def set_flag(self, word: str, stage: str | None = None) -> None:
        self._glances.forget()
        statement = "INSERT INTO flags VALUES (%s) ON CONFLICT DO NOTHING"
        self.session.execute(statement, (_flag(word, stage),), is_durable=True)

    def clear_flag(self, word: str, stage: str | None = None) -> bool:
        self._glances.forget()
        was_here = self._local.clear_flag(word, stage)
        statement = "DELETE FROM flags WHERE name = %s RETURNING name"
        return bool(self.session.execute(statement, (_flag(word, stage),), is_durable=True)) or was_here

    def bell(self, name: str) -> EngineBell:
        return self._bells.listen(name)

    def ring(self, name: str) -> None:
        self._bells.ring(name)

    def bells(self) -> list[str]:
        return self._bells.names()

    def beat(self, name: str, content: bytes) -> None:
        with suppress(WorkspaceError):
            self._glances.beat(name, content)

    def heartbeats(self) -> dict[str, bytes]:
        found = self.session.execute("SELECT name, content FROM heartbeats ORDER BY name")
        beats = {name: unsealed(content) for name, content in found}
        return {name: content for name, content in beats.items() if content is not None}

    def heartbeat(self, name: str) -> bytes | None:
        return self._sealed("SELECT content FROM heartbeats WHERE name = %s", name)

    def record_crash(self, name: str, text: str) -> str:
        return self._local.record_crash(name, text)

    # -- small documents ---------------------------------------------------------------------------------

    def document(self, name: str) -> bytes | None:
        return self._sealed("SELECT content FROM documents WHERE name = %s", name)

    def glance(self, name: str) -> bytes | None:
        return self._glances.document(name)

    def look_again(self) -> None:
        self._glances.forget()

    def write_document(self, name: str, content: bytes) -> None:
        self._glances.forget()
        self.session.execute(
            "INSERT INTO documents VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET content = excluded.content",
            (name, sealed(content)),
            is_durable=True,
        )

    def _sealed(self, statement: str, name: str) -> bytes | None:
        rows = self.session.execute(statement, (name,))
        return unsealed(rows[0][0]) if rows else None


def holds_crawl(connection: Connection) -> bool:
    """See `EngineWorkspace.holds_crawl`."""
    rows = connection.execute(
        "SELECT EXISTS (SELECT FROM logs WHERE name LIKE 'results/%%')"
        " OR EXISTS (SELECT FROM documents WHERE name <> %s)",
        (NOTE,),
    ).fetchall()
    return bool(rows[0][0])


def _flag(word: str, stage: str | None) -> str:
    return word if stage is None else f"{word}.{stage}"
