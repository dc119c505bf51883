"""The schemas of this program in the engine's database: what they take, and those that were moved aside."""

from __future__ import annotations

import platform
import re
from datetime import UTC, datetime
from pathlib import Path

import orjson
from psycopg import sql

from crawler.engine.engine_connection import connect
from crawler.model.map_place import LIVE
from crawler.workspace.keeping import OldSchema, Part
from crawler.workspace.postgres.engine_session import Connection
from crawler.workspace.postgres.workspace_schema import WORKSPACE

_OURS = re.compile(rf"(?:{WORKSPACE.name}|{LIVE})(?:_[a-z0-9_]+)?")
_ASIDE = re.compile(r".+_(?:old|before)_(\d{8})_(\d{6})(?:_\d+)?")
_DOOMED = "sumi_purging_"  # a schema that is being deleted; what a killed purge leaves goes with the next one
_DAY = 86_400


class EngineSchemas:
    """See `crawler.workspace.keeping.Schemas`. `archive`: where results that left the engine are on this machine."""

    def __init__(self, url: str, archive: Path) -> None:
        self._url = url
        self._archive = archive

    def parts(self, now: float, map_shares: tuple[float, float]) -> list[Part]:
        with connect(self._url, "storage") as connection:
            sizes = _sizes(connection)
            results = _table_size(connection, "records") if WORKSPACE.name in sizes else 0
            written = _shares_written(connection, now) if results else (0.0, 0.0)
        of_map = sum(size for name, size in sizes.items() if name.startswith(LIVE) and not _ASIDE.fullmatch(name))
        aside = [size for name, size in sizes.items() if _ASIDE.fullmatch(name)]
        state = sizes.get(WORKSPACE.name, 0) - results
        found = [
            _part("engine: map", of_map, map_shares),
            _part("engine: results", results, written),
            Part("engine: state", size=state),
            Part("engine: aside", size=sum(aside)),
        ]
        return [part for part in found if part.size]

    def old(self) -> list[OldSchema]:
        with connect(self._url, "storage") as connection:
            sizes = _sizes(connection)
        found = [(name, size, _ASIDE.fullmatch(name)) for name, size in sizes.items()]
        return sorted(OldSchema(name, size, _time(*match.groups())) for name, size, match in found if match)

    def mark(self, names: list[str]) -> list[Path]:
        places: list[Path] = []
        with connect(self._url, "purge") as connection, connection.transaction():
            for name in names:
                places += self._archives(connection, name)
                _do(connection, "ALTER SCHEMA {} RENAME TO {}", name, _DOOMED + name.removeprefix("sumi_"))
        return places

    def drop_marked(self) -> int:
        with connect(self._url, "purge") as connection:
            rows = connection.execute("SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s)", (_DOOMED,))
            doomed = [name for (name,) in rows.fetchall()]
            for name in doomed:
                _do(connection, "DROP SCHEMA {} CASCADE", name)
        return len(doomed)

    def archives(self, name: str) -> list[Path]:
        with connect(self._url, "storage") as connection:
            return self._archives(connection, name)

    def _archives(self, connection: Connection, name: str) -> list[Path]:
        """The folders on this machine with results of the crawl in this schema."""
        if not _has_archives(connection, name):
            return []
        statement = sql.SQL("SELECT machine, folder FROM {}.archives").format(sql.Identifier(name))
        places = {
            place
            for machine, folder in connection.execute(statement).fetchall()
            for place in (self._archive / Path(folder).name, *([Path(folder)] if machine == platform.node() else []))
        }
        return sorted(place for place in places if place.is_dir())


def _sizes(connection: Connection) -> dict[str, int]:
    """Bytes on the engine's disk, by schema."""
    rows = connection.execute(
        "SELECT n.nspname, coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_namespace n"
        " LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'm', 'S') GROUP BY n.nspname"
    ).fetchall()
    return {name: size for name, size in rows if _OURS.fullmatch(name)}


def _part(name: str, size: int, shares: tuple[float, float]) -> Part:
    return Part(name, size=size, last_day=int(size * shares[0]), last_week=int(size * shares[1]))


def _table_size(connection: Connection, table: str) -> int:
    place = f"{WORKSPACE.name}.{table}"
    row = connection.execute("SELECT pg_total_relation_size(to_regclass(%s))", (place,)).fetchone()
    return int(row[0]) if row and row[0] else 0


def _shares_written(connection: Connection, now: float) -> tuple[float, float]:
    """The shares of the live results in segments whose last line is of the last 24 hours, and of the last 7 days."""
    rows: list[tuple[int, bytes]] = connection.execute(
        f"SELECT s.bytes, r.body FROM {WORKSPACE.name}.segments s CROSS JOIN LATERAL (SELECT body"
        f" FROM {WORKSPACE.name}.records r WHERE r.log = s.log AND r.segment = s.number ORDER BY start DESC LIMIT 1) r"
        f" WHERE s.log IN (SELECT id FROM {WORKSPACE.name}.logs WHERE name LIKE 'results/%')"
    ).fetchall()
    every = max(1, sum(size for size, _ in rows))
    day, week = (datetime.fromtimestamp(now - days * _DAY, UTC).isoformat() for days in (1, 7))
    return (
        sum(size for size, body in rows if _at(body) >= day) / every,
        sum(size for size, body in rows if _at(body) >= week) / every,
    )


def _at(body: bytes) -> str:
    try:
        return str(orjson.loads(body).get("at", ""))
    except (ValueError, AttributeError):
        return ""


def _has_archives(connection: Connection, name: str) -> bool:
    row = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (f"{name}.archives",)).fetchone()
    return bool(row and row[0])


def _time(day: str, second: str) -> float:
    try:
        return datetime.strptime(day + second, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


def _do(connection: Connection, statement: str, *names: str) -> None:
    connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
