"""The lease of a process in the engine: what becomes of it when the process, its connection or the engine goes."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from crawler.engine.engine_connection import connect
from crawler.engine.schemas import upgrade
from crawler.model.records import RunEvent, dump
from crawler.pace.decisions import Busy, EntryRequest, NotYet, Open
from crawler.workspace.bookmarks import Bookmark, BookmarkMove
from crawler.workspace.clock import read_clock
from crawler.workspace.door import RoleTaken, WorkspaceError
from crawler.workspace.log import Cursor
from crawler.workspace.postgres.claim_rows import claim_domains
from crawler.workspace.postgres.engine_session import Connection, Fenced, Gone
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from crawler.workspace.reading import read_records
from tests.crawler.workspace.engine_opener import EngineOpener
from tests.places import ROOT
from tests.postgres_server import PostgresServer, own_server

WISH = EntryRequest(run=1, delay_ms=60_000, limit=9)

_HOLDER = """
    import sys
    from pathlib import Path
    from crawler.pace.decisions import EntryRequest
    from crawler.workspace.clock import read_clock
    from crawler.workspace.postgres.engine_workspace import EngineWorkspace
    workspace = EngineWorkspace(Path(sys.argv[1]), sys.argv[2])
    held = [workspace.take_role("ingest"), workspace.claim("a.test"), workspace.slots(2)]
    held[2].acquire(2)
    gate = workspace.gate("a.test", read_clock)
    gate.try_enter(EntryRequest(run=1, delay_ms=60000, limit=9))
    print(held[1].token, flush=True)
    sys.stdin.read()
"""


def event(number: int) -> bytes:
    return dump(RunEvent(number, "2026-01-01T00:00:00.000Z", "started"))


def runs_in(workspace: EngineWorkspace, writer: str = "fetcher-01") -> list[int]:
    return [record.run for record, _ in read_records(workspace.results.reader(writer), RunEvent)]


def run_out(workspace: EngineWorkspace, other: EngineWorkspace) -> None:
    """Let the lease of a workspace run out: it could not be renewed for so long."""
    other.session.execute("UPDATE holders SET until_us = 0 WHERE id = %s", (workspace.session.holder,))


def drop(workspace: EngineWorkspace, other: EngineWorkspace) -> None:
    """End the connection of a workspace, as an administrator or a network does."""

    def pid(connection: psycopg.Connection[object]) -> int:
        return connection.info.backend_pid

    other.session.execute("SELECT pg_terminate_backend(%s)", (workspace.session.run(pid),))


@pytest.fixture
def holder(opener: EngineOpener, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    code = [sys.executable, "-c", textwrap.dedent(_HOLDER), str(tmp_path / "workspace"), opener.url]
    process = subprocess.Popen(code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    yield process
    process.kill()
    process.communicate()


def test_everything_that_a_killed_process_held_is_free_again(
    workspace: EngineWorkspace, holder: subprocess.Popen[bytes]
) -> None:
    """`kill -9` with a request out, on this machine: the request is over, and counts as ended when that is seen."""
    assert holder.stdout is not None
    token = int(holder.stdout.readline())
    slots = workspace.slots(2)
    slots.acquire(2)
    gate = workspace.gate("a.test", read_clock)
    assert (workspace.is_role_taken("ingest"), workspace.claim("a.test"), slots.held) == (True, None, 0)
    assert gate.try_enter(WISH).admission == Busy()
    holder.kill()
    holder.wait()
    claim = workspace.claim("a.test")
    slots.acquire(2)
    assert claim is not None and claim.token > token
    assert (workspace.is_role_taken("ingest"), slots.held) == (False, 2)
    entry = gate.try_enter(WISH)
    assert isinstance(entry.admission, NotYet) and entry.admission.at_ns > entry.at.mono_ns + 55_000_000_000
    assert gate.read().sent == 1


def test_a_process_that_was_away_for_too_long_is_fenced_for_good(
    opener: EngineOpener, workspace: EngineWorkspace
) -> None:
    """As one that was stopped, or cut off: once another has taken one of its domains, nothing of it takes effect."""
    other = opener()
    for domain in ("a.test", "b.test"):
        assert workspace.claim(domain) is not None
    log = workspace.results.writer("fetcher-01", segment_bytes=1 << 20, gathers=True)
    log.append(event(1))
    log.sync()
    log.append(event(2))
    gate = workspace.gate("b.test", read_clock)
    workspace.job_writer().write("b.test", [])
    run_out(workspace, other)
    claim = other.claim("a.test")
    assert claim is not None and claim.token > 1
    move = BookmarkMove("b.test", Bookmark(Cursor(9, 9)))
    with pytest.raises(Fenced, match="others have taken over its work"):
        workspace.save_bookmarks([move], after=log.begin_sync())
    with pytest.raises(Fenced):
        log.append(event(3))
    with pytest.raises(Fenced):
        workspace.save_bookmarks([move])
    with pytest.raises(Fenced):
        gate.try_enter(WISH)
    with pytest.raises(Fenced):
        workspace.document("run")
    workspace.beat("fetcher-01", b"{}")  # what a process does while it ends does not fail
    assert other.bookmark("b.test") == Bookmark()
    assert runs_in(other) == [1]
    assert other.claim("b.test") is not None, "everything that it held is free"


def test_a_lease_that_ran_out_while_nobody_wanted_it_goes_on(opener: EngineOpener, workspace: EngineWorkspace) -> None:
    assert workspace.claim("a.test") is not None
    run_out(workspace, opener())
    gate = workspace.gate("a.test", read_clock)
    assert gate.try_enter(WISH).admission == Open(1)


def test_after_a_lost_connection_domains_are_taken_anew_and_wait_their_delay(
    opener: EngineOpener, workspace: EngineWorkspace
) -> None:
    other = opener()
    claim = workspace.claim("a.test")
    gate = workspace.gate("a.test", read_clock)
    assert claim is not None
    assert isinstance(gate.try_enter(WISH).admission, Open)
    drop(workspace, other)
    gate.finish()
    short = EntryRequest(run=1, delay_ms=30_000, limit=9)
    entry = gate.try_enter(short)
    assert isinstance(entry.admission, NotYet) and entry.admission.at_ns - entry.at.mono_ns > 25_000_000_000
    assert other.session.execute("SELECT token > %s FROM gates", (claim.token,)) == [(True,)]
    assert other.claim("a.test") is None, "it is still mine"
    assert gate.record.sent == other.gate("a.test", read_clock).read().sent == 1


def test_a_role_outlives_a_lost_connection(opener: EngineOpener, workspace: EngineWorkspace) -> None:
    other = opener()
    role = workspace.take_role("ingest")
    drop(workspace, other)
    with pytest.raises(RoleTaken):
        other.take_role("ingest")
    assert workspace.flags() == []
    role.release()
    other.take_role("ingest").release()


def test_a_process_elsewhere_is_gone_when_its_connection_has_been_closed_for_a_while(
    opener: EngineOpener, workspace: EngineWorkspace
) -> None:
    other = opener()
    assert workspace.claim("a.test") is not None
    other.session.join()
    other.session.execute("UPDATE holders SET machine = 'another' WHERE id = %s", (workspace.session.holder,))
    assert other.claim("a.test") is None
    workspace.session._line.stop()  # type: ignore[union-attr]
    workspace.session._connection.close()  # type: ignore[union-attr]
    assert other.claim("a.test") is None, "it may be about to open another"
    other.session.execute("UPDATE holders SET renewed_us = renewed_us - 6000000, joined_us = joined_us - 6000000")
    claim = None
    for _ in range(200):  # the engine notices a closed connection in its own time
        claim = claim or other.claim("a.test")
    assert claim is not None


HOUR = 3_600_000  # milliseconds


def silence(workspace: EngineWorkspace, other: EngineWorkspace) -> None:
    """As a process on another machine that was cut off: its connection seems open, and it renews nothing."""
    workspace.session._line.stop()  # type: ignore[union-attr]
    other.session.execute("UPDATE holders SET machine = 'another' WHERE id = %s", (workspace.session.holder,))


def test_when_the_clock_was_set_back_a_silent_process_keeps_what_it_has_for_one_lease(opener: EngineOpener) -> None:
    engine, silent, other = opener.clock(), opener(), opener()
    silent.take_role("ingest")
    silent.slots(2).acquire(2)
    assert silent.claim("a.test") is not None
    silence(silent, other)
    slots = other.slots(2)
    engine.pass_ms(-HOUR)
    slots.acquire(2)
    assert (other.claim("a.test"), other.is_role_taken("ingest"), slots.held) == (None, True, 0)
    engine.pass_ms(29_000)
    assert (other.claim("a.test"), other.is_role_taken("ingest")) == (None, True)
    engine.pass_ms(2_000)
    slots.acquire(2)
    assert (other.is_role_taken("ingest"), slots.held) == (False, 2)
    assert other.claim("a.test") is not None
    with pytest.raises(Fenced):
        silent.session.run(silent.session.renew)


def test_when_the_clock_was_set_back_a_closed_connection_is_seen_as_soon_as_ever(opener: EngineOpener) -> None:
    engine, silent, other = opener.clock(), opener(), opener()
    assert silent.claim("a.test") is not None
    assert other.claim("b.test") is not None
    silence(silent, other)
    silent.session._connection.close()  # type: ignore[union-attr]
    engine.pass_ms(-HOUR)
    other.session.run(other.session.renew)
    assert other.claim("a.test") is None
    engine.pass_ms(6_000)
    claim = None
    for _ in range(200):  # the engine notices a closed connection in its own time
        claim = claim or other.claim("a.test")
    assert claim is not None


def test_when_the_clock_was_set_back_a_process_that_renews_its_lease_keeps_what_it_has(opener: EngineOpener) -> None:
    engine, alive, other = opener.clock(), opener(), opener()
    assert alive.claim("a.test") is not None
    silence(alive, other)
    for step in (-HOUR, 25_000, 25_000, -HOUR, 25_000):
        engine.pass_ms(step)
        assert other.claim("a.test") is None
        alive.session.run(alive.session.renew)
    assert alive.session.execute("SELECT FROM holders WHERE is_fenced") == []


def holders(workspace: EngineWorkspace) -> set[int]:
    return {number for (number,) in workspace.session.execute("SELECT id FROM holders")}


def test_a_process_that_gave_everything_back_is_no_holder_any_more(
    opener: EngineOpener, workspace: EngineWorkspace
) -> None:
    roles = [workspace.take_role(role) for role in ("fetcher-01", "sender")]
    first = workspace.session.holder
    claim = workspace.claim("a.test")
    slots = workspace.slots(2)
    slots.acquire(1)
    assert claim is not None and holders(workspace) == {first}
    roles.pop().release()
    assert holders(workspace) == {first}, "it has another role"
    claim.release()
    roles.pop().release()
    assert holders(workspace) == {first}, "it has slots"
    slots.close()
    role = workspace.take_role("fetcher-01")
    gate = workspace.gate("b.test", read_clock)
    assert gate.try_enter(WISH).admission == Open(1)
    role.release()
    assert holders(workspace) == {first}, "it has a request out"
    gate.finish()
    gate.close()
    workspace.take_role("fetcher-01").release()
    assert holders(workspace) == set()
    role = workspace.take_role("fetcher-01")
    assert holders(workspace) == {workspace.session.holder} and workspace.session.holder not in (None, first)
    other = opener()
    with pytest.raises(RoleTaken):
        other.take_role("fetcher-01")
    workspace.close()
    assert holders(other) == {other.session.holder}


def test_a_process_whose_connection_is_lost_while_it_gives_back_its_last_role_is_not_fenced(
    opener: EngineOpener, workspace: EngineWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine may have done it, and only the answer was lost."""
    role = workspace.take_role("ingest")
    execute, lost = psycopg.Connection.execute, []

    def lose(connection: Connection, statement: str, *values: object, **more: object) -> object:
        if "pg_advisory_unlock" in statement and not lost:
            lost.append(statement)
            connection.close()
            raise psycopg.OperationalError("the connection is lost")
        return execute(connection, statement, *values, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(psycopg.Connection, "execute", lose)
    role.release()
    assert lost and holders(workspace) == set()
    workspace.take_role("ingest").release()


def test_a_role_given_back_while_the_connection_is_lost_leaves_the_others_with_their_process(
    opener: EngineOpener, workspace: EngineWorkspace
) -> None:
    roles = [workspace.take_role(role) for role in ("ingest", "sender")]
    drop(workspace, opener())
    roles[0].release()
    other = opener()
    assert (other.is_role_taken("ingest"), other.is_role_taken("sender")) == (False, True)
    workspace.session.run(workspace.session.renew)
    assert workspace.session.holder in holders(other)


def test_rows_of_processes_that_were_killed_are_forgotten_after_a_while(opener: EngineOpener) -> None:
    """Nobody fences one that held nothing. A connection that is open, and all that is held, keep a row."""
    engine, other = opener.clock(), opener()
    idle, holding, silent = opener(), opener(), opener()
    assert [each.session.join() for each in (idle, silent)] and holding.claim("a.test") is not None
    for each in (idle, holding):
        silence(each, other)
        each.session._connection.close()  # type: ignore[union-attr]
    silence(silent, other)
    engine.pass_ms(HOUR)
    kept = {holding.session.holder, silent.session.holder}
    for _ in range(200):  # the engine notices a closed connection in its own time
        other.forget_idle(1800)
        if holders(other) == kept:
            break
    assert holders(other) == kept
    assert other.claim("a.test") is not None
    engine.pass_ms(HOUR)
    for _ in range(200):
        other.forget_idle(1800)
    assert holding.session.holder not in holders(other), "what was fenced is forgotten, too"


def test_no_number_of_a_process_is_given_again_when_the_crawl_is_moved_aside(
    opener: EngineOpener, workspace: EngineWorkspace
) -> None:
    """One that was fenced long ago may wake up, and must not take another's row for its own."""
    workspace.session.join()
    number = workspace.session.holder
    workspace.write_document("run", b"{}")
    workspace.close()
    another = opener()
    assert holders(another) == set()
    assert another.move_aside("now", 60.0)
    assert number is not None and another.session.join() > number


def test_in_another_era_every_domain_waits_its_whole_delay(opener: EngineOpener, workspace: EngineWorkspace) -> None:
    """A copy of the engine took over, and may lack the last requests."""
    gate = workspace.gate("a.test", read_clock)
    assert isinstance(gate.try_enter(EntryRequest(run=1, delay_ms=0, limit=9)).admission, Open)
    gate.finish()
    workspace.session.execute("UPDATE eras SET era = 'another'")
    workspace.session.execute("UPDATE gates SET ended_us = ended_us - 600000000")
    heir = opener().gate("a.test", read_clock)
    entry = heir.try_enter(WISH)
    assert isinstance(entry.admission, NotYet) and entry.admission.at_ns - entry.at.mono_ns > 55_000_000_000


def test_a_process_that_holds_anything_ends_where_a_copy_of_the_engine_took_over(
    opener: EngineOpener, workspace: EngineWorkspace
) -> None:
    """The copy may lack results that this process knows to be durable: no bookmark of it may move past them."""
    other = opener()
    assert workspace.claim("a.test") is not None
    for each in (workspace, other):
        each.flags()
        each.session.era = "the one before"
    drop(workspace, opener())
    with pytest.raises(Fenced, match="another copy of the engine has taken over"):
        workspace.flags()
    with pytest.raises(Fenced, match="another copy"):
        workspace.save_bookmarks([BookmarkMove("a.test", Bookmark(Cursor(9, 9)))])
    drop(other, opener())
    assert other.flags() == [], "it holds nothing"


# -- the engine itself ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with own_server() as made:
        with connect(made.url(), "test") as connection:
            upgrade(connection, WORKSPACE)
        yield made


def test_an_engine_that_crashes_and_comes_back_has_lost_nothing_that_was_synced(
    server: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Who endures goes on as if nothing had been; finished visits wait in memory meanwhile."""
    workspace = EngineWorkspace(tmp_path, server.url())
    workspace.prepare()
    workspace.endure(lambda: False)
    assert workspace.claim("a.test") is not None
    log = workspace.results.writer("fetcher-01", segment_bytes=1 << 20, gathers=True)
    log.append(event(1))
    log.sync()
    log.append(event(2))
    role = workspace.take_role("ingest")
    workspace.keep_robots("a.test", b"{}")  # which writes the log first
    log.append(event(3))
    server.crash()
    threading.Timer(0.5, server.start).start()
    with caplog.at_level(logging.WARNING, "sumi.engine"):
        log.sync()
    assert runs_in(workspace) == [1, 2, 3], "what is in no memory any more was not lost either"
    with pytest.raises(RoleTaken):
        EngineWorkspace(tmp_path, server.url()).take_role("ingest")
    role.release()
    gate = workspace.gate("a.test", read_clock)
    assert gate.try_enter(WISH).admission == Open(1)
    assert ["nothing is requested until it is back" in caplog.text, "The engine is back" in caplog.text] == [True, True]
    workspace.close()


def test_an_engine_that_is_away_is_a_sentence_for_who_does_not_wait(server: PostgresServer, tmp_path: Path) -> None:
    workspace = EngineWorkspace(tmp_path, server.url())
    workspace.prepare()
    server.stop()
    try:
        with pytest.raises(Gone, match=r"cannot reach the engine postgres on 127\.0\.0\.1") as refused:
            workspace.flags()
        assert isinstance(refused.value, WorkspaceError) and server.url().split(":")[2].split("@")[0] not in str(
            refused.value
        )
        is_over = iter([False, True]).__next__
        workspace.endure(is_over)
        with pytest.raises(Gone):
            workspace.flags()
    finally:
        server.start()
    assert workspace.flags() == []
    workspace.close()


def test_domains_whose_claim_was_made_but_not_answered_are_claimed_by_the_next_try(
    opener: EngineOpener, workspace: EngineWorkspace
) -> None:
    """Else this process would hold them and do nothing, and nobody else could."""
    session = workspace.session
    session.join()
    tries = []

    def cut_off(connection: Connection) -> dict[str, int]:
        found = claim_domains(connection, session, session.join(), ["a.test", "b.test"])
        tries.append(found)
        if len(tries) == 1:
            session.claimed.clear()  # as it is where the answer is lost
            connection.close()
            raise psycopg.OperationalError("the connection is lost")
        return found

    assert set(session.run(cut_off)) == {"a.test", "b.test"}
    assert len(tries) == 2 and tries[1]["a.test"] > tries[0]["a.test"]
    assert opener().claim("a.test") is None
