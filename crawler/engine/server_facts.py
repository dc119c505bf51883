"""What the engine says of itself: its version, this connection's encryption, and settings that promises rest on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """`encryption` is empty for a connection without any."""

    version: str
    encryption: str
    connections: int
    max_connections: int
    is_standby: bool
    settings: dict[str, str]

    def cautions(self) -> list[str]:
        """Settings under which a promise does not hold, in words."""
        found = []
        if self.settings["fsync"] == "off":
            found.append("fsync is off: a power cut of the engine's machine may destroy the whole database")
        if self.settings["full_page_writes"] == "off":
            found.append("full_page_writes is off: a power cut may leave pages half written, if the disk does")
        if self.is_standby:
            found.append("this is a standby, which cannot be written to: name the primary")
        if self.max_connections - self.connections < 20:
            found.append(f"{self.connections} of {self.max_connections} connections are taken; every process needs two")
        return found


def server_facts(connection: psycopg.Connection[Any]) -> ServerFacts:
    """The facts of the server behind this connection."""
    encryption = connection.execute(
        "SELECT version || ' ' || cipher FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl"
    ).fetchone()
    names = ("fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names", "server_version")
    settings = {name: str((connection.execute(f"SHOW {name}").fetchone() or ("",))[0]) for name in names}
    counted = connection.execute(
        "SELECT count(*), current_setting('max_connections')::integer, pg_is_in_recovery() FROM pg_stat_activity"
        " WHERE backend_type = 'client backend'"
    ).fetchone()
    assert counted is not None
    return ServerFacts(
        settings.pop("server_version"),
        encryption[0] if encryption else "",
        int(counted[0]),
        int(counted[1]),
        bool(counted[2]),
        settings,
    )


def schema_sizes(connection: psycopg.Connection[Any], schema: str) -> list[tuple[str, int, int]]:
    """(table, rows by the planner's estimate, bytes with indexes) of a schema's tables, the largest first."""
    return connection.execute(
        "SELECT c.relname, greatest(s.n_live_tup, 0), pg_total_relation_size(c.oid) FROM pg_class c"
        " JOIN pg_stat_all_tables s ON s.relid = c.oid WHERE s.schemaname = %s AND c.relkind IN ('r', 'p')"
        " ORDER BY 3 DESC, 1",
        (schema,),
    ).fetchall()
