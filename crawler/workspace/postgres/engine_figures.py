"""Figures about the workspace in the engine, for `sumi-ripple engine stats`."""

from __future__ import annotations

from dataclasses import dataclass

from crawler.workspace.postgres.engine_session import Connection
from crawler.workspace.postgres.workspace_schema import WORKSPACE


@dataclass(frozen=True, slots=True)
class EngineFigures:
    """`processes` have a lease that has not run out, `machines` are theirs; `leased` domains, `in_flight` requests.

    A renewal or an entry that lies in the future was made before the engine's clock was set back, and tells nothing:
    a process that lives counts again with its next renewal.
    """

    processes: int
    machines: int
    leased: int
    in_flight: int
    domains: int
    job_domains: int
    windows: int
    logs: dict[str, tuple[int, int]]  # name → segments, bytes, in the engine
    archived: dict[str, tuple[int, int]]  # the same of segments that left it for an archive
    roles: list[str]  # that are taken


def engine_figures(connection: Connection) -> EngineFigures:
    """The figures as they are now."""
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(f"SET LOCAL search_path TO {WORKSPACE.name}")
        processes = connection.execute(
            "SELECT count(*), count(DISTINCT machine) FROM holders, clock_us() AS now"
            " WHERE NOT is_fenced AND until_us > now AND renewed_us <= now"
        ).fetchone() or (0, 0)
        gates = connection.execute(
            "SELECT count(holder),"
            " count(*) FILTER (WHERE is_in_flight AND flight_until_us > now AND entered_us <= now), count(*)"
            " FROM gates, clock_us() AS now"
        ).fetchone() or (0, 0, 0)
        jobs = connection.execute(
            "SELECT (SELECT count(*) FROM job_domains), (SELECT count(*) FROM windows)"
        ).fetchone() or (0, 0)
        logs = connection.execute(
            "SELECT l.name, count(s.number) FILTER (WHERE s.archive IS NULL), count(s.archive),"
            " coalesce(sum(s.bytes) FILTER (WHERE s.archive IS NULL), 0)::bigint,"
            " coalesce(sum(s.bytes) FILTER (WHERE s.archive IS NOT NULL), 0)::bigint"
            " FROM logs l LEFT JOIN segments s ON s.log = l.id GROUP BY l.name ORDER BY l.name"
        ).fetchall()
        roles = connection.execute("SELECT role FROM roles WHERE holder IS NOT NULL ORDER BY role").fetchall()
    sizes = {name: (count, size) for name, count, _, size, _ in logs}
    archived = {name: (count, size) for name, _, count, _, size in logs if count}
    taken = [role for (role,) in roles]
    return EngineFigures(
        processes[0], processes[1], gates[0], gates[1], gates[2], jobs[0], jobs[1], sizes, archived, taken
    )
