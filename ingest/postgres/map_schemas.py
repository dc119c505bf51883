"""Maps as schemas of the engine's database. A map is made under another name and renamed when it is whole."""

from __future__ import annotations

from collections.abc import Callable

from crawler.database.dialect import Said, for_postgres
from crawler.database.map_errors import MapLost, StoreError
from crawler.database.map_session import EngineFault, MapSession
from crawler.engine.engine_connection import EngineError, EngineUnreachable
from crawler.model.map_place import EngineMap

_PATIENCE = "10s"  # for readers of a schema that is to be renamed or removed


def open_writer(place: EngineMap, purpose: str = "ingest", say: Callable[[str], Said] = for_postgres) -> MapSession:
    """A session that may write. Raises StoreError."""
    try:
        return MapSession(place, purpose, say)
    except EngineUnreachable as problem:
        raise MapLost(str(problem)) from None
    except EngineError as problem:
        raise StoreError(str(problem)) from None


def has_schema(session: MapSession, schema: str) -> bool:
    return session.plain("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone() is not None


def exists(place: EngineMap) -> bool:
    """Is there a schema of this name? Raises StoreError."""
    session = open_writer(place, "maps")
    try:
        return has_schema(session, place.schema)
    except EngineFault as problem:
        raise StoreError(f"the engine failed: {problem}") from None
    finally:
        session.close()


def remove(place: EngineMap) -> None:
    """Remove a map that this program made for a while. Raises StoreError."""
    _change(place, f"DROP SCHEMA IF EXISTS {_name(place)} CASCADE")


def put_in_place(scratch: EngineMap, place: EngineMap, kept: EngineMap | None = None) -> None:
    """Give the scratch map the name of `place`; the map that is there is kept under another name. Raises StoreError."""
    aside = f"ALTER SCHEMA {_name(place)} RENAME TO {_name(kept)};" if kept is not None else ""
    _change(scratch, f"{aside} ALTER SCHEMA {_name(scratch)} RENAME TO {_name(place)}")


def rename(place: EngineMap, to: EngineMap) -> None:
    """Raises StoreError."""
    _change(place, f"ALTER SCHEMA {_name(place)} RENAME TO {_name(to)}")


def _change(place: EngineMap, sql: str) -> None:
    session = open_writer(place, "maps")
    try:
        session.plain(f"BEGIN; SET LOCAL lock_timeout = '{_PATIENCE}'; {sql}; COMMIT")
    except EngineFault as problem:
        raise StoreError(f"the engine failed: {problem}") from None
    finally:
        session.close()


def _name(place: EngineMap) -> str:
    return '"' + place.schema.replace('"', '""') + '"'
