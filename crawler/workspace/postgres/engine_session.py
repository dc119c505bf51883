"""One process's connection to the engine, its lease there, and a thread for what must not wait.

**The connection.** A call that finds the engine away waits until it is back, if a stage has said so (`endure`), else it
raises. Calls are repeated on a new connection, so they are written to be made twice.

**The lease.** A process that holds anything (a role, a domain, slots, a request) is a row in `holders`, renewed by one
statement. Whoever finds that row's process gone, or its lease run out, fences it: the row says so for good, everything
that it held is free, and every later write of that process is refused. A process on this machine is gone when it is no
more; one elsewhere when its connection has been closed for a while, or its lease has run out.

After a new connection all domains that the process holds are taken anew: whatever the engine lost when it went down,
no request follows another too soon.

A renewal that lies in the future was made before the engine's clock was set back. Whoever asks for that process first
says so in its row: its lease is a whole one from then on. One that lives renews it, as ever.

A process that has given back everything is no holder any more: its row goes with the last role.

**The thread.** Greenlets of a fetcher must not wait for the engine: answers of web servers would time out meanwhile,
and that would look like the servers' fault. Their calls are made by this thread, many gates in one statement.
"""

from __future__ import annotations

import errno
import logging
import math
import os
import platform
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol, TypeVar

import psycopg

from crawler.engine.advice import advised
from crawler.engine.engine_connection import EngineError, EngineUnreachable, connect, reason_of
from crawler.engine.place import place_of
from crawler.engine.schemas import require
from crawler.model.shown_text import plain
from crawler.workspace.clock import boot_id
from crawler.workspace.door import LeaseLost, StoppedWhileAway, Unreachable, WorkspaceError
from crawler.workspace.postgres.engine_clock import EngineClock
from crawler.workspace.postgres.workspace_schema import WORKSPACE

T = TypeVar("T")
Connection = psycopg.Connection[Any]

LEASE = 30  # seconds, where nobody says otherwise
RENEWALS = 6  # in a lease
TICK = 0.01  # seconds from one statement of gates to the next: calls gather meanwhile
_RIDE = 0.02  # seconds in which a call that nobody waits for goes with one that somebody waits for
HOLD = 0.25  # seconds in which a call may be taken back, for another one that says the same and more
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0  # seconds between tries to connect
_LOST = (psycopg.OperationalError, psycopg.InterfaceError)

# The clock was set back after this renewal: when it was made is not known, but it was not later than now.
_RENEWED_BY_NOW = """
UPDATE holders SET renewed_us = now, until_us = now + greatest(0, until_us - renewed_us)
FROM clock_us() AS now WHERE id = %s AND NOT is_fenced AND renewed_us > now
"""
_RELEASE_ROLE = """
WITH released AS (UPDATE roles SET holder = NULL WHERE role = %(role)s AND token = %(token)s)
DELETE FROM holders h WHERE h.id = %(me)s::bigint AND NOT h.is_fenced AND h.slots = 0 AND %(may_leave)s
    AND NOT EXISTS (SELECT FROM gates g WHERE g.holder = h.id)
    AND NOT EXISTS (SELECT FROM roles r WHERE r.holder = h.id AND r.role <> %(role)s)
RETURNING h.id
"""
_OUTLIVED = "this process was away from the engine for longer than its lease, and others have taken over its work"
_REPLACED = "another copy of the engine has taken over, which may lack what this process wrote last"

log = logging.getLogger("sumi.engine")


class Fenced(LeaseLost):
    """See `LeaseLost`. The row of this process says so, for good."""

    def __init__(self, message: str = _OUTLIVED) -> None:
        OSError.__init__(self, errno.ESTALE, message)

    def __str__(self) -> str:
        return str(self.strerror)


class Gone(Unreachable):
    """The engine cannot be reached, and nobody waits for it."""

    def __init__(self, problem: Exception) -> None:
        OSError.__init__(self, errno.ENOTCONN, advised(str(problem)))

    def __str__(self) -> str:
        return str(self.strerror)


class GoneAtTheEnd(Gone, StoppedWhileAway):
    """The engine cannot be reached, and who waited for it was told to end."""

    def __init__(self, problem: Exception) -> None:
        StoppedWhileAway.__init__(self, str(problem))


class Waiter(Protocol):
    """How greenlets wait: `crawler.net.hub.Hub` is one."""

    @property
    def is_here(self) -> bool:
        """Is this call made by one of its greenlets?"""

    def wait_for_callback(self, begin: Callable[[Callable[[T], None]], None], seconds: float) -> T:
        """Call `begin(done)` and return the value that `done` is called with, from any thread."""


def machine_name() -> str:
    """This machine, as far as process numbers mean anything: its boot and its namespace of processes."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 (it is no path)
    except OSError:
        namespace = ""
    return f"{boot_id()}{namespace}"


def machine_words() -> str:
    """The same, and after a blank what people call this machine."""
    return f"{machine_name()} {platform.node()}"


def process_words(machine: str, pid: int) -> str:
    """A holder's process, for people: `process 4711 on build-7`."""
    name, _, called = machine.partition(" ")
    if name == machine_name():
        return f"process {pid} on this machine"
    return f"process {pid} on {plain(called, 100) or 'another machine'}"


def is_alive(pid: int) -> bool:
    """Is there a process of this number on this machine? A dead one that nobody has waited for is none."""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            return file.read().rpartition(b")")[2].split()[:1] not in ([b"Z"], [b"X"])
    except ProcessLookupError:
        return False
    except OSError:
        return True


class EngineSession:
    """See the module. `run` is safe to call from every thread."""

    def __init__(self, url: str, lease: int = LEASE) -> None:
        self._url = url
        self._lease = lease
        self.renew_every = lease / RENEWALS  # seconds
        # A process elsewhere whose connection is closed may be about to open another.
        self._gone_after_us = lease * 1_000_000 // RENEWALS
        self.place = place_of(url, os.environ)
        self.clock = EngineClock()
        self.era = ""  # the engine's identity and timeline
        self.generation = 0  # of the connection
        self._using = threading.RLock()
        self._connection: Connection | None = None
        self._pid = os.getpid()
        self._is_over: Callable[[], bool] | None = None
        self._waiter: Waiter | None = None
        self.holder: int | None = None
        self.claimed: set[str] = set()  # domains
        self.gates_used: dict[str, Any] = {}  # domain → the gate by which the last request went
        self._is_fenced = False
        self._why_fenced = _OUTLIVED
        self._line: _Line | None = None

    def __del__(self) -> None:
        connection = getattr(self, "_connection", None)
        if connection is not None and self._pid == os.getpid():
            connection.close()

    # -- for the workspace -----------------------------------------------------------------------------

    def endure(self, is_over: Callable[[], bool]) -> None:
        """From now on a call waits while the engine is away, until `is_over` says that nobody wants it any more."""
        self._is_over = is_over

    def wait_in(self, waiter: Waiter) -> None:
        """Let calls of this waiter's greenlets wait there."""
        self._waiter = waiter

    def run(self, work: Callable[[Connection], T]) -> T:
        """The outcome of `work` on the connection; made again where the connection was lost. Raises WorkspaceError."""
        waiter = self._waiter
        if waiter is None or not waiter.is_here:
            return self._run(work)
        line = self._started_line()

        def begin(done: Done) -> None:
            line.add(work, done)

        outcome, problem = waiter.wait_for_callback(begin, math.inf)
        if problem is not None:
            raise problem
        return outcome  # type: ignore[no-any-return]

    def later(self, make: Callable[[], Callable[[Connection], Any]], *, can_wait: bool = True) -> LaterCall:
        """Do the work that `make` returns, later: within `HOLD` seconds where greenlets ask, else before this returns.

        Not `can_wait`: within some 20 ms.
        """
        waiter = self._waiter
        is_here = waiter is not None and waiter.is_here
        call = LaterCall(self, waiter if is_here else None, make)
        if not is_here:
            call.send()
        elif can_wait:
            self._started_line().hold(call)
        else:
            call.send(is_awaited=False)
        return call

    def hurry(self) -> None:
        """Somebody waits for what was begun."""
        if self._line is not None:
            self._line.hurry()

    def execute(self, statement: str, values: Any = (), *, is_durable: bool = False) -> list[Any]:
        """The rows that a statement returns. `is_durable`: it survives the engine's machine when this returns."""

        def work(connection: Connection) -> list[Any]:
            if is_durable:
                return durably(connection, statement, values)
            cursor = connection.execute(statement, values, binary=True)
            return cursor.fetchall() if cursor.description is not None else []

        return self.run(work)

    @contextmanager
    def transaction_beside(self, purpose: str) -> Iterator[Connection]:
        """A durable transaction on a connection of its own, which may take long: the lease is renewed meanwhile.

        It is made whole or not at all, and not if others have taken over what this process holds. Raises
        WorkspaceError. Nothing is repeated.
        """
        me = self.join()
        try:
            with connect(self._url, purpose, dead_after=self._lease) as connection, connection.transaction():
                connection.execute(f"SET LOCAL search_path TO {WORKSPACE.name}")
                connection.execute("SET LOCAL synchronous_commit TO on")
                yield connection
                mine = "SELECT FROM holders WHERE id = %s AND NOT is_fenced FOR SHARE"
                if not connection.execute(mine, (me,)).fetchall():
                    raise Fenced
        except EngineError as problem:
            raise WorkspaceError(str(problem)) from None
        except psycopg.Error as problem:
            raise self._refused(problem) from None

    def soon(self, key: str, work: Callable[[Connection], Any]) -> None:
        """Do this from the thread, soon; a second one with the same key replaces the first."""
        self._started_line().add_soon(key, work)

    def close(self) -> None:
        """Give up everything that this process holds, and the connection."""
        if self._line is not None:
            self._line.stop()
            self._line = None
        with self._using:
            if self._connection is not None and self._pid == os.getpid():
                with suppress(*_LOST):
                    if self.holder is not None and not self._is_fenced:
                        fence(self._connection, self.holder)
                        if not self.gates_used:  # else the row tells whose requests are out
                            self._connection.execute("DELETE FROM holders WHERE id = %s", (self.holder,))
                    self._connection.close()
            self._connection = None

    # -- the connection ----------------------------------------------------------------------------------

    def _run(self, work: Callable[[Connection], T]) -> T:
        while True:
            with self._using:
                connection = self._connected()
                try:
                    return work(connection)
                except psycopg.errors.TransactionRollback as problem:  # a deadlock: one of the two goes first
                    log.debug("again: %s", reason_of(problem))
                except _LOST as problem:
                    if not connection.closed and not connection.broken:
                        raise self._refused(problem) from None
                    log.debug("the connection to the engine is lost: %s", reason_of(problem))
                    self._connection = None
                except psycopg.Error as problem:
                    raise self._refused(problem) from None

    def _refused(self, problem: Exception) -> WorkspaceError:
        return WorkspaceError(f"the engine {self.place} refused a statement: {reason_of(problem)}")

    def _connected(self) -> Connection:
        if self._pid != os.getpid():  # a child of the process that made this: the parent's connection is not ours
            self._connection, self.holder, self._line, self._pid = None, None, None, os.getpid()
            self.claimed = set()
        if self._is_fenced:
            raise Fenced(self._why_fenced)
        if self._connection is not None and not self._connection.closed:
            return self._connection
        pause, away_since = _FIRST_PAUSE, 0.0
        while True:
            try:
                self._connection = self._open()
                break
            except EngineUnreachable as problem:
                if self._is_over is None:
                    raise Gone(problem) from None
                if self._is_over():
                    raise GoneAtTheEnd(problem) from None
                if not away_since:
                    away_since = time.monotonic()
                    log.warning("%s; nothing is requested until it is back", problem)
            except EngineError as problem:
                raise WorkspaceError(str(problem)) from None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        if away_since:
            log.warning("The engine is back after %.0f s", time.monotonic() - away_since)
        return self._connection

    def _open(self) -> Connection:
        connection = connect(self._url, "workspace", dead_after=self._lease)
        try:
            require(connection, WORKSPACE)
            connection.execute(f"SET search_path TO {WORKSPACE.name}")
            connection.execute("SET synchronous_commit TO off")
            self._enter_era(_note_era(connection))
            asked = time.monotonic_ns()
            (now_us,) = connection.execute("SELECT clock_us()").fetchone() or (0,)
            self.clock.note(asked, time.monotonic_ns(), now_us)
            self.generation += 1
            if self.holder is not None:
                self._take_anew(connection)
        except _LOST as problem:
            connection.close()
            raise EngineUnreachable(f"cannot reach the engine {self.place}: {reason_of(problem)}") from None
        except BaseException:
            connection.close()
            raise
        return connection

    def _enter_era(self, era: str) -> None:
        """A process that holds anything ends with its era: of what it knows to be durable, the copy may lack the last.

        Else it would move a bookmark past a result that is gone. Its successor goes by what the copy has. Nothing is
        said in the copy, where this holder's number may be another's.
        """
        before, self.era = self.era, era
        if self.holder is not None and before not in ("", era):
            self._is_fenced, self._why_fenced = True, _REPLACED
            raise Fenced(_REPLACED)

    # -- the lease ---------------------------------------------------------------------------------------

    def join(self) -> int:
        """Become a holder; returns the number. What it holds is free again when this process is gone."""
        if self.holder is not None and self._pid == os.getpid():
            return self.holder

        def work(connection: Connection) -> int:
            rows = durably(
                connection,
                "INSERT INTO holders (machine, pid, joined_us, renewed_us, until_us)"
                " SELECT %s, %s, now, now, now + %s FROM clock_us() AS now RETURNING id",
                (machine_words(), os.getpid(), self._lease * 1_000_000),
            )
            number = int(rows[0][0])
            connection.execute("SELECT pg_advisory_lock(%s)", (number,))
            return number

        with self._using:
            number = self.holder if self.holder is not None and self._pid == os.getpid() else self._run(work)
            self.holder = number
        self._started_line()
        return number

    def renew(self, connection: Connection) -> None:
        """Renew the lease of everything that this process holds, by one statement."""
        if self.holder is None:
            return
        rows = connection.execute(
            "UPDATE holders SET renewed_us = now, until_us = now + %s, joined_us = least(joined_us, now)"
            " FROM clock_us() AS now WHERE id = %s AND NOT is_fenced RETURNING now",
            (self._lease * 1_000_000, self.holder),
        ).fetchall()
        if not rows:
            self._is_fenced = True
            raise Fenced

    def release_role(self, role: str, token: int) -> None:
        """Give back a role, durably. Who holds nothing else is no holder any more."""
        me, generation = (self.holder if self._pid == os.getpid() else None), self.generation

        def work(connection: Connection) -> None:
            self.holder = None  # if this is made again on a new connection, the row may be gone
            values = {"role": role, "token": token, "me": me, "may_leave": not self.gates_used}
            if durably(connection, _RELEASE_ROLE, values):
                connection.execute("SELECT pg_advisory_unlock(%s)", (me,))
            elif connection.execute("SELECT FROM holders WHERE id = %s", (me,)).fetchall():
                self.holder = me
                if self.generation != generation:
                    self._take_anew(connection)

        try:
            self.run(work)
        except WorkspaceError:
            self.holder = me if self._pid == os.getpid() else None
            raise

    def _take_anew(self, connection: Connection) -> None:
        """The connection is new: take all domains anew. Taking one counts as a request that ended just now."""
        with connection.transaction():
            self.renew(connection)
            connection.execute(
                "UPDATE holders SET joined_us = clock_us() WHERE id = %s",
                (self.holder,),
            )
            connection.execute(
                # The engine may have lost the last changes: no version that was seen before it went down comes again.
                "UPDATE gates SET token = token + 1, version = version + 1000000,"
                " ended_us = CASE WHEN entered_us IS NULL THEN NULL ELSE clock_us() END"
                " WHERE holder = %s OR (flight_by = %s AND is_in_flight)",
                (self.holder, self.holder),
            )
        connection.execute("SELECT pg_advisory_lock(%s)", (self.holder,))

    def free_of_dead(self, connection: Connection, holder: int) -> bool:
        """Fence a holder whose process is gone, or whose lease has run out. False: it lives."""
        rows = connection.execute(
            "SELECT h.machine, h.pid, h.until_us < now OR h.is_fenced, h.renewed_us < now - %s,"
            " mine.joined_us < now - %s, h.renewed_us > now"
            " FROM clock_us() AS now, holders h LEFT JOIN holders mine ON mine.id = %s WHERE h.id = %s",
            (self._gone_after_us, self._gone_after_us, self.holder, holder),
        ).fetchall()
        if not rows:
            fence(connection, holder)
            return True
        machine, pid, is_over, is_quiet, am_old, is_later = rows[0]
        if machine.partition(" ")[0] == machine_name() and pid != os.getpid() and not is_alive(pid):
            fence(connection, holder, is_certain=True)
            return True
        if is_over or (is_quiet and am_old and not _has_session(connection, holder)):
            fence(connection, holder)
            return True
        if is_later:
            connection.execute(_RENEWED_BY_NOW, (holder,))
        return False

    def is_held_by_me(self, holder: int | None) -> bool:
        return holder is not None and holder == self.holder

    # -- the thread --------------------------------------------------------------------------------------

    @property
    def can_hold(self) -> bool:
        """Are there greenlets, whose calls may be held?"""
        return self._waiter is not None

    @property
    def has_line(self) -> bool:
        """Is there a thread that makes calls?"""
        line = self._line
        return line is not None and line.is_alive

    def _started_line(self) -> _Line:
        line = self._line
        if line is not None and self._pid == os.getpid():  # no greenlet waits here for a statement that is under way
            return line
        with self._using:
            if self._line is None:
                self._line = _Line(self)
                self._line.start()
            return self._line


def durably(connection: Connection, statement: str, values: Any) -> list[Any]:
    """The rows that a statement returns, which survives the engine's machine when this returns. One round trip."""
    with connection.pipeline():
        connection.execute("BEGIN")
        connection.execute("SET LOCAL synchronous_commit TO on")
        cursor = connection.execute(statement, values)
        connection.execute("COMMIT")
    return cursor.fetchall() if cursor.description is not None else []


def fence(connection: Connection, holder: int, *, is_certain: bool = False) -> None:
    """Let nothing that this holder writes take effect any more, and free what it held, durably.

    Its domains count as asked just now. Its requests may still be out, until their time is up; `is_certain`: its
    process is no more, and neither are they.
    """
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit TO on")
        connection.execute(
            "UPDATE holders SET is_fenced = true, slots = 0, until_us = least(until_us, clock_us()) WHERE id = %s",
            (holder,),
        )
        connection.execute(
            "UPDATE gates SET holder = CASE WHEN holder = %(id)s THEN NULL ELSE holder END,"
            " token = token + 1, version = version + 1,"
            " flight_until_us = CASE WHEN %(certain)s THEN 0 ELSE flight_until_us END,"
            " ended_us = CASE WHEN entered_us IS NULL THEN NULL ELSE clock_us() END"
            " WHERE holder = %(id)s OR (flight_by = %(id)s AND is_in_flight)",
            {"id": holder, "certain": is_certain},
        )
        connection.execute("UPDATE roles SET holder = NULL WHERE holder = %s", (holder,))


def _has_session(connection: Connection, holder: int) -> bool:
    """Is a connection of this holder open? It has locked its number."""
    with connection.transaction():
        rows = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (holder,)).fetchall()
        return not rows[0][0]


def _note_era(connection: Connection) -> str:
    """The engine's identity and timeline. If it is another than before, every domain waits its whole delay first.

    The timeline is that of the log that is being written: after a promotion the control file has the one before until
    the next checkpoint.
    """
    rows = connection.execute(
        "SELECT s.system_identifier, CASE WHEN pg_is_in_recovery() THEN NULL"
        " ELSE substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END FROM pg_control_system() s"
    ).fetchall()
    identity, timeline = rows[0]
    if timeline is None:
        raise EngineUnreachable("cannot use the engine yet: it is a standby, and only copies another one")
    era = f"{identity % 2**64:016x}{int(timeline, 16):016x}"
    known = connection.execute("SELECT era FROM eras").fetchall()
    if known == [(era,)]:
        return era
    with connection.transaction():
        connection.execute("LOCK TABLE eras IN EXCLUSIVE MODE")
        known = connection.execute("SELECT era FROM eras").fetchall()
        if known != [(era,)]:
            connection.execute("DELETE FROM eras")
            connection.execute("INSERT INTO eras (era) VALUES (%s)", (era,))
            connection.execute(
                "UPDATE gates SET version = version + 1, ended_us = clock_us() WHERE ended_us IS NOT NULL"
            )
    return era


Done = Callable[[tuple[Any, BaseException | None]], None]
_LOOK_EVERY = 1.0  # seconds between looks whether the thread that is to answer is still there


class LaterCall:
    """A call that nobody waits for yet: it is sent after a while, unless it is taken back before. For every thread.

    Invariant: it is taken back or sent, never both. `work` is what was sent.
    """

    def __init__(
        self, session: EngineSession, waiter: Waiter | None, make: Callable[[], Callable[[Connection], Any]]
    ) -> None:
        self._session = session
        self._waiter = waiter
        self._make = make
        self._guard = threading.Lock()
        self._is_taken_back = False
        self._answer: tuple[Any, BaseException | None] | None = None
        self._waiting: Done | None = None
        self.due = time.monotonic() + HOLD
        self.work: Any = None

    def take_back(self) -> bool:
        """Is it not sent, and will it never be? False: `outcome` tells what came of it."""
        with self._guard:
            self._is_taken_back = self.work is None
            return self._is_taken_back

    def begin(self) -> bool:
        """Make the work, to be sent by whoever asks. False: it was taken back, or is sent already."""
        with self._guard:
            if self._is_taken_back or self.work is not None:
                return False
            self.work = self._make()
            return True

    def send(self, *, is_awaited: bool = True) -> None:
        """Send it now, if that was not done yet."""
        if not self.begin():
            return
        if self._waiter is None:
            self._answer = (self._session._run(self.work), None)
        else:
            self._session._started_line().add(self.work, self.done, is_awaited=is_awaited)

    def done(self, answer: tuple[Any, BaseException | None]) -> None:
        """Called by the thread, once."""
        with self._guard:
            self._answer, waiting = answer, self._waiting
        if waiting is not None:
            waiting(answer)

    def outcome(self) -> Any:
        """Wait for the answer; every thread may. Raises what the call raised."""
        answer = self._answer
        if answer is None:
            self._session.hurry()
            if self._waiter is not None and self._waiter.is_here:
                answer = self._waiter.wait_for_callback(self._wait, math.inf)
            else:
                answer = self._wait_in_thread()
        if answer[1] is not None:
            raise answer[1]
        return answer[0]

    def _wait(self, done: Done) -> None:
        with self._guard:
            self._waiting = done
            answer = self._answer
        if answer is not None:
            done(answer)

    def _wait_in_thread(self) -> tuple[Any, BaseException | None]:
        answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._wait(answers.put)
        while True:
            try:
                return answers.get(timeout=_LOOK_EVERY)
            except queue.Empty:
                if not self._session.has_line:
                    raise Gone(EngineError("the connection to the engine is closed")) from None


class Batched(Protocol):
    """Work that can be done together with other work of its kind."""

    def __call__(self, connection: Connection) -> Any:
        """Do it alone."""

    def with_others(self, connection: Connection, others: Iterable[Any]) -> list[Any]:
        """Do it and others of its kind with one statement; returns the outcomes, this one's first."""


class _Line:
    """The thread: calls of greenlets in the order in which they came, gates together; renewals; what is for soon."""

    def __init__(self, session: EngineSession) -> None:
        self._session = session
        self._calls: queue.SimpleQueue[tuple[Any, Done, bool] | None] = queue.SimpleQueue()  # is it awaited?
        self._held: deque[LaterCall] = deque()  # in the order in which they are due
        self._soon: dict[str, Callable[[Connection], Any]] = {}
        self._guard = threading.Lock()
        self._renewed_at = time.monotonic()
        self._begun_at = 0.0
        self._is_stopped = False
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        self._is_stopped = True
        self._calls.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join(5)

    def add(self, work: Callable[[Connection], Any], done: Done, *, is_awaited: bool = True) -> None:
        self._calls.put((work, done, is_awaited))

    def hold(self, call: LaterCall) -> None:
        """Make this call when it is due. The thread need not be woken: it looks in time."""
        self._held.append(call)

    def hurry(self) -> None:
        """Calls that nobody waited for are awaited now."""
        self._calls.put(None)

    def add_soon(self, key: str, work: Callable[[Connection], Any]) -> None:
        with self._guard:
            is_first = not self._soon
            self._soon[key] = work
        if is_first:
            self._calls.put(None)

    def _work(self) -> None:
        while not self._is_stopped:
            calls = self._gather()
            try:
                self._do(calls)
                self._do_soon()
                if time.monotonic() - self._renewed_at > self._session.renew_every:
                    self._renewed_at = time.monotonic()
                    self._session._run(self._session.renew)
            except WorkspaceError as problem:
                if isinstance(problem, Fenced):
                    log.warning("%s", problem)
                    self._refuse_all(problem)
                    return
                if self._session._is_over is not None and not self._session._is_over():
                    log.warning("%s", problem)
        self._do(self._due_calls())

    def _refuse_all(self, problem: BaseException) -> None:
        """This process is fenced: whoever asks is told so."""
        while not self._is_stopped:
            call = self._calls.get()
            if call is not None:
                call[1]((None, problem))

    def _gather(self) -> list[tuple[Any, Done]]:
        """Calls that came since the last ones were begun, a tick ago at least; none if something else is due."""
        calls: list[tuple[Any, Done]] = []
        until = time.monotonic() + self._session.renew_every / 4
        if self._session.can_hold:  # what is held while this waits is due later
            until = min(until, time.monotonic() + HOLD, self._held[0].due if self._held else math.inf)
        while True:
            try:
                call = self._calls.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                break
            if call is None:
                break
            calls.append(call[:2])
            if call[2]:
                break
            until = min(until, time.monotonic() + _RIDE)
        calls += self._due_calls()
        if not calls:
            return []
        # The first call of a while is made at once; under load a tick's calls are one statement.
        time.sleep(max(0.0, self._begun_at + TICK - time.monotonic()))
        self._begun_at = time.monotonic()
        while True:
            try:
                call = self._calls.get_nowait()
            except queue.Empty:
                return calls
            if call is not None:
                calls.append(call[:2])

    def _due_calls(self) -> list[tuple[Any, Done]]:
        """Held calls that nobody has taken back in their time."""
        calls: list[tuple[Any, Done]] = []
        now = time.monotonic()
        while self._held and (self._held[0].due <= now or self._is_stopped):
            call = self._held.popleft()
            try:
                if call.begin():
                    calls.append((call.work, call.done))
            except Exception:  # whoever needs it takes it back, and sees the error then
                log.exception("internal error in a call that was put off")
        return calls

    def _do(self, calls: list[tuple[Any, Done]]) -> None:
        """Do the calls. A domain has one call at a time, so their order does not matter."""
        together = [call for call in calls if hasattr(call[0], "with_others")]
        apart = [call for call in calls if not hasattr(call[0], "with_others")]
        if together:
            first, *others = [work for work, _ in together]
            try:
                outcomes = self._session._run(lambda connection: first.with_others(connection, others))
            except BaseException as problem:
                for _, done in together:
                    done((None, problem))
            else:
                for (_, done), outcome in zip(together, outcomes, strict=True):
                    done((outcome, None))
        for work, done in apart:
            try:
                outcome = self._session._run(work)
            except BaseException as problem:
                done((None, problem))
            else:
                done((outcome, None))

    def _do_soon(self) -> None:
        with self._guard:
            due, self._soon = self._soon, {}
        for work in due.values():
            self._session._run(work)
