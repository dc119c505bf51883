"""What a stage looks at in every round, and what it tells: its heartbeat, flags, small documents, in one statement.

A process of a crawl goes round ten times a second and more. What it sees is a quarter of a second old at most, or as
new as the last time that it asked to look again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from crawler.engine.packed_arrays import texts
from crawler.workspace.postgres.engine_session import EngineSession
from crawler.workspace.seals import sealed, unsealed

LOOK_EVERY = 0.25  # seconds

_LOOK = (
    "SELECT 'flag', name, NULL::bytea FROM flags"
    " UNION ALL SELECT 'document', name, content FROM documents WHERE name = ANY(%(documents)s)"
)
_BEAT_AND_LOOK = (
    "WITH beat AS (INSERT INTO heartbeats VALUES (%(name)s, %(content)s)"
    f" ON CONFLICT (name) DO UPDATE SET content = excluded.content) {_LOOK}"
)


class Glances:
    """The last look of one process. Safe to use from every thread: one of them looks, the others see what was."""

    def __init__(self, session: EngineSession, own_flags: Callable[[], Iterable[str]]) -> None:
        """`own_flags` says which flags are set on this machine alone."""
        self._session = session
        self._own_flags = own_flags
        self._looked_at = 0.0
        self._flags: frozenset[str] = frozenset()
        self._documents: dict[str, bytes | None] = {}  # those that were asked for

    def forget(self) -> None:
        """Look again when somebody asks next."""
        self._looked_at = 0.0

    def flags(self) -> frozenset[str]:
        """Names of the flags that are set."""
        self._look_if_due()
        return self._flags

    def document(self, name: str) -> bytes | None:
        """A document; None: there is none, or it is damaged."""
        if name not in self._documents:
            self._documents[name] = None
            self.forget()
        self._look_if_due()
        return self._documents[name]

    def beat(self, name: str, content: bytes) -> None:
        """Replace a heartbeat, and look."""
        self._look(_BEAT_AND_LOOK, {"name": name, "content": sealed(content)})

    def _look_if_due(self) -> None:
        if time.monotonic() - self._looked_at >= LOOK_EVERY or not self._looked_at:
            self._look(_LOOK, {})

    def _look(self, statement: str, values: dict[str, object]) -> None:
        self._looked_at = time.monotonic()
        names = list(self._documents)
        rows = self._session.execute(statement, {**values, "documents": texts(names)})
        self._flags = frozenset(self._own_flags()).union(name for kind, name, _ in rows if kind == "flag")
        found = {name: unsealed(content) for kind, name, content in rows if kind == "document"}
        for name in names:
            self._documents[name] = found.get(name)
