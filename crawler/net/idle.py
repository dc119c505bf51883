"""Connections at rest, kept for the next request to the same origin."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from crawler.net.connection import Connection, Origin


class IdleConnections:
    """At most `limit` connections; the one that rested longest is closed first. For every thread."""

    def __init__(self, limit: int) -> None:
        self._limit = max(0, limit)
        self._resting: OrderedDict[int, Connection] = OrderedDict()
        self._by_origin: dict[Origin, list[Connection]] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def pop(self, origin: Origin) -> Connection | None:
        """A connection that can carry another request, or None."""
        while True:
            with self._lock:
                connections = self._by_origin.get(origin)
                if not connections:
                    return None
                connection = connections[-1]
                self._remove(connection)
            if time.monotonic() < connection.reusable_until and connection.is_quiet():
                return connection
            connection.close()

    def put(self, connection: Connection) -> None:
        surplus: list[Connection] = []
        with self._lock:
            if self._is_closed:
                surplus.append(connection)
            else:
                self._resting[id(connection)] = connection
                self._by_origin.setdefault(connection.origin, []).append(connection)
                while len(self._resting) > self._limit:
                    oldest = next(iter(self._resting.values()))
                    self._remove(oldest)
                    surplus.append(oldest)
        for one in surplus:
            one.close()

    def _remove(self, connection: Connection) -> None:
        del self._resting[id(connection)]
        connections = self._by_origin[connection.origin]
        connections.remove(connection)
        if not connections:
            del self._by_origin[connection.origin]

    def __len__(self) -> int:
        return len(self._resting)

    def close(self) -> None:
        """Close all, for good; connections that are put here later are closed at once."""
        with self._lock:
            self._is_closed = True
            connections = list(self._resting.values())
            self._resting.clear()
            self._by_origin.clear()
        for connection in connections:
            connection.drop()
