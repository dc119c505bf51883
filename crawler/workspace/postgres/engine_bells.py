"""Bells by NOTIFY. A bell inside of one process is a pipe; the engine carries the others, outside of all transactions
with data. They carry no data, and a lost ring costs only time.
"""

from __future__ import annotations

import math
import os
import select
import threading
import time
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import sql

from crawler.engine.engine_connection import EngineError, connect
from crawler.workspace.postgres.engine_session import Connection, EngineSession

_LISTEN_AGAIN = 2.0  # seconds
_PATIENCE = 5  # seconds for a connection that only bells need


class Bells:
    """The bells of one process."""

    def __init__(self, session: EngineSession, url: str) -> None:
        self._session = session
        self._url = url
        self._here: dict[str, EngineBell] = {}

    def listen(self, name: str) -> EngineBell:
        self._session.execute("INSERT INTO bells VALUES (%s) ON CONFLICT DO NOTHING", (name,))
        bell = self._here[name] = EngineBell(self, name, self._url)
        return bell

    def ring(self, name: str) -> None:
        """Rings within a tick are one."""
        bell = self._here.get(name)
        if bell is not None:
            bell.ring()
            return

        def notify(connection: Connection) -> None:
            connection.execute("SELECT pg_notify(%s, '')", (_channel(name),))

        self._session.soon(f"ring {name}", notify)

    def names(self) -> list[str]:
        return [name for (name,) in self._session.execute("SELECT name FROM bells ORDER BY name")]

    def forget(self, name: str) -> None:
        self._here.pop(name, None)


class EngineBell:
    """See `crawler.workspace.door.Bell`."""

    def __init__(self, bells: Bells, name: str, url: str) -> None:
        self._bells = bells
        self._name = name
        self._url = url
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)
        self._closing = threading.Lock()
        self._is_closed = False
        self._connection: psycopg.Connection[Any] | None = None
        self._tried_at = 0.0
        self._connect()

    def ring(self) -> None:
        with self._closing:
            if not self._is_closed:
                with suppress(BlockingIOError):
                    os.write(self._writer, b"!")

    def wait(self, seconds: float) -> bool:
        give_up = time.monotonic() + max(0.0, seconds)
        while True:
            if self._connection is None:
                self._connect()
            poller = select.poll()
            poller.register(self._reader, select.POLLIN)
            if self._connection is not None and self._heard():
                return True
            if self._connection is not None:  # it is lost where the engine went away
                poller.register(self._connection.fileno(), select.POLLIN)
            left = max(0.0, give_up - time.monotonic())
            ready = {descriptor for descriptor, _ in poller.poll(math.ceil(left * 1000))}
            if self._reader in ready:
                os.read(self._reader, 65536)
                return True
            if not ready:
                return False

    def close(self) -> None:
        self._bells.forget(self._name)
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
            os.close(self._reader)
            os.close(self._writer)
        if self._connection is not None:
            self._connection.close()

    def _connect(self) -> None:
        """Listen, if the engine is there; without it every wait runs its full time."""
        if time.monotonic() - self._tried_at < _LISTEN_AGAIN and self._tried_at:
            return
        self._tried_at = time.monotonic()
        with suppress(EngineError, psycopg.Error):
            connection = connect(self._url, f"bell {self._name}", seconds=_PATIENCE)
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(_channel(self._name))))
            self._connection = connection

    def _heard(self) -> bool:
        """Has somebody rung this bell since the last look? Takes what has arrived, and does not wait."""
        assert self._connection is not None
        try:
            return any(True for _ in self._connection.notifies(timeout=0))
        except psycopg.Error:
            self._connection.close()
            self._connection = None
            return False


def _channel(name: str) -> str:
    """A bell's channel: PostgreSQL cuts names at 63 bytes."""
    return f"sumi bell {name}"[:60]
