"""The schemas in the engine's database: one for each concern, made and upgraded step by step.

    WORKSPACE = Schema("sumi_workspace", (FIRST, SECOND))     # a step: the SQL from one version to the next

    upgrade(connection, WORKSPACE)     make it, or bring it to the newest version (`sumi-ripple engine init`)
    require(connection, WORKSPACE)     raise EngineError with a sentence if it is missing, old, newer or somebody else's

A schema's version is the number of its steps that were taken, in its table `schema_version`. Steps are never edited:
a change is a new step. Each is taken in a transaction of its own, under a lock, so that two programs that start at the
same time take it once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crawler.engine.engine_connection import EngineError

if TYPE_CHECKING:
    import psycopg

_LOCK = 0x53756D69_52697070  # any number that only this program uses
_PROGRAM = "sumi-ripple"


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema of this program: its name in the database, and the steps to its newest version."""

    name: str
    steps: tuple[str, ...]

    @property
    def newest(self) -> int:
        return len(self.steps)


def version_of(connection: psycopg.Connection[Any], schema: Schema) -> int | None:
    """The version that is there: 0 for none at all. None: a schema of this name that this program did not make."""
    found = connection.execute(
        "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %s), to_regclass(%s) IS NOT NULL",
        (schema.name, f"{schema.name}.schema_version"),
    ).fetchone()
    assert found is not None
    is_there, has_version = found
    if not has_version:
        return None if is_there else 0
    row = connection.execute(
        f"SELECT version FROM {schema.name}.schema_version WHERE program = %s", (_PROGRAM,)
    ).fetchone()
    return row[0] if row else None


def require(connection: psycopg.Connection[Any], schema: Schema) -> None:
    """Raise EngineError unless the schema is there in the version that this program reads."""
    version = version_of(connection, schema)
    if version == schema.newest:
        return
    where = f"the engine's database {connection.info.dbname}"
    if version is None:
        raise EngineError(_foreign(schema, where))
    if version == 0:
        raise EngineError(f"{where} has no schema {schema.name} yet; make it with: sumi-ripple engine init CONFIG")
    if version < schema.newest:
        raise EngineError(
            f"the schema {schema.name} in {where} has version {version}, this program needs {schema.newest}; "
            "bring it up to date with: sumi-ripple engine init CONFIG"
        )
    raise EngineError(_newer(schema, where, version))


def upgrade(connection: psycopg.Connection[Any], schema: Schema) -> int:
    """Make the schema, or bring it up to date; returns the number of steps taken. Raises EngineError."""
    where = f"the engine's database {connection.info.dbname}"
    taken = 0
    while True:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            version = version_of(connection, schema)
            if version is None:
                raise EngineError(_foreign(schema, where))
            if version > schema.newest:
                raise EngineError(_newer(schema, where, version))
            if version == schema.newest:
                return taken
            if version == 0:
                connection.execute(f"CREATE SCHEMA {schema.name}")
                connection.execute(
                    f"CREATE TABLE {schema.name}.schema_version (program text PRIMARY KEY, version integer NOT NULL)"
                )
                connection.execute(f"INSERT INTO {schema.name}.schema_version VALUES (%s, 0)", (_PROGRAM,))
            connection.execute(f"SET LOCAL search_path TO {schema.name}")
            connection.execute(schema.steps[version])
            connection.execute(f"UPDATE {schema.name}.schema_version SET version = %s", (version + 1,))
            taken += 1


def _foreign(schema: Schema, where: str) -> str:
    return (
        f"the schema {schema.name} in {where} was not made by this program; name another database in [engine] url, "
        "or move that schema away"
    )


def _newer(schema: Schema, where: str, version: int) -> str:
    return (
        f"the schema {schema.name} in {where} has version {version}, newer than this program, which reads "
        f"{schema.newest}; use the version that made it"
    )
