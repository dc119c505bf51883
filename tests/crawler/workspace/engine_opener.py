"""Workspaces in the tests' PostgreSQL, and a clock of the engine that tests can move."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from crawler.engine.engine_connection import connect
from crawler.model.moments import Moment
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from tests.crawler.pace.clocks import Clock
from tests.postgres_server import clean_database


class EngineOpener:
    """Every call opens the workspace as another process would: with a connection and a lease of its own."""

    def __init__(self, url: str, root: Path) -> None:
        self.url = url
        self._root = root
        self._opened: list[EngineWorkspace] = []
        self._clocks: list[EngineTestClock] = []

    def __call__(self) -> EngineWorkspace:
        made = EngineWorkspace(self._root, self.url)
        self._opened.append(made)
        return made

    def clock(self) -> EngineTestClock:
        self._clocks.append(EngineTestClock(self.url))
        return self._clocks[-1]

    def close(self) -> None:
        for each in self._opened:
            each.close()
        for clock in self._clocks:
            clock.close()


@contextmanager
def opener_in(folder: Path) -> Iterator[EngineOpener]:
    """Opens an empty workspace, whose folder lies in this one."""
    with clean_database(WORKSPACE) as url:
        made = EngineOpener(url, folder / "workspace")
        made().prepare()
        yield made
        made.close()


class EngineTestClock(Clock):
    """The clock of this machine and of the engine at once: it stands still until it is moved."""

    def __init__(self, url: str) -> None:
        self._connection: psycopg.Connection[Any] = connect(url, "test clock")
        self._connection.execute("CREATE SCHEMA sumi_test CREATE TABLE clock (us bigint)")
        self._connection.execute("INSERT INTO sumi_test.clock VALUES (0)")
        self.install()
        super().__init__()

    def install(self) -> None:
        """Let the engine go by this clock. To be repeated where the schema was made anew."""
        self._connection.execute(
            "CREATE OR REPLACE FUNCTION sumi_workspace.clock_us() RETURNS bigint LANGUAGE sql VOLATILE AS"
            " $$ SELECT us FROM sumi_test.clock $$"
        )

    @property
    def now(self) -> Moment:
        return self._now

    @now.setter
    def now(self, moment: Moment) -> None:
        self._now = moment
        self._connection.execute("UPDATE sumi_test.clock SET us = %s", (moment.mono_ns // 1000,))

    def close(self) -> None:
        """Give the engine its own clock back."""
        self._connection.execute("DROP SCHEMA sumi_test CASCADE")
        self._connection.execute(
            "CREATE OR REPLACE FUNCTION sumi_workspace.clock_us() RETURNS bigint LANGUAGE sql VOLATILE AS"
            " $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$"
        )
        self._connection.close()
