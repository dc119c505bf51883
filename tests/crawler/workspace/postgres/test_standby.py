"""A standby takes over: a real one, by streaming replication. docs/scale.md says what is promised then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from crawler.engine.engine_connection import connect
from crawler.engine.schemas import upgrade
from crawler.pace.decisions import EntryRequest, NotYet, Open
from crawler.workspace.clock import read_clock
from crawler.workspace.door import WorkspaceError
from crawler.workspace.postgres.engine_session import Fenced
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from tests.postgres_server import PostgresServer, own_server, replicate, standby_of


class Pair(NamedTuple):
    primary: PostgresServer
    standby: PostgresServer

    @property
    def url(self) -> str:
        """Both, as a config names them."""
        ports = [self.primary.port, self.standby.port]
        ways = [("127.0.0.1", port) for port in ports]
        return self.primary.url_over(["127.0.0.1", "127.0.0.1"], ways, "postgres")


@pytest.fixture
def pair() -> Iterator[Pair]:
    with own_server(is_durable=False) as primary:
        with connect(primary.url(), "test") as connection:
            upgrade(connection, WORKSPACE)
        with standby_of(primary, ("127.0.0.1", primary.port)) as standby:
            replicate(primary, is_synchronous=True)
            yield Pair(primary, standby)


def test_who_goes_on_at_the_promoted_engine_waits_the_whole_delay_and_who_held_anything_starts_anew(
    pair: Pair, tmp_path: Path
) -> None:
    before, onlooker = EngineWorkspace(tmp_path, pair.url), EngineWorkspace(tmp_path, pair.url)
    before.prepare()
    assert before.claim("a.test") is not None
    gate = before.gate("a.test", read_clock)
    assert gate.try_enter(EntryRequest(run=1, delay_ms=0, limit=9)).admission == Open(1)
    gate.finish()
    before.write_document("run", b"{}")  # durable, so what came before is too, here and there
    assert onlooker.document("run") == b"{}"
    with pytest.raises(WorkspaceError, match="it is a standby, and only copies another one"):
        EngineWorkspace(tmp_path, pair.standby.url()).document("run")

    before.session.execute("UPDATE gates SET ended_us = ended_us - 600000000")
    before.write_document("run", b"{} ")
    pair.primary.crash()
    with connect(pair.standby.url(), "test") as connection:
        connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
        connection.execute("SELECT pg_promote(true, 30)")  # its control file has the old timeline for a while

    assert onlooker.document("run") == b"{} ", "nothing that was acknowledged is lost"
    assert onlooker.session.era != before.session.era
    with pytest.raises(Fenced, match="another copy of the engine has taken over"):
        before.document("run")
    heir = onlooker.gate("a.test", read_clock)
    entry = heir.try_enter(EntryRequest(run=1, delay_ms=60_000, limit=9))
    assert isinstance(entry.admission, NotYet) and entry.admission.at_ns - entry.at.mono_ns > 50_000_000_000
    assert heir.read().sent == 1
    for each in (before, onlooker):
        each.close()
