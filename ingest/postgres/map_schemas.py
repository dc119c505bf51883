"""Maps as schemas of the engine's database. A map is made under another name and renamed when it is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from crawler.database.dialect import Said, for_postgres
from crawler.database.map_errors import MapLost, StoreError
from crawler.database.map_session import EngineFault, MapSession
from crawler.engine.engine_connection import EngineError, EngineUnreachable
from crawler.model.map_place import EngineMap

_MAKER = 0x53756D69  # first half of the number of a maker's lock; any that only this program uses
_MADE = r"^sumi_map(_[a-z0-9_]+)?_(replay|preview)_[0-9]+(_[0-9a-f]+)?$"  # names of schemas that are there for a while
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


@contextmanager
def made_here(place: EngineMap) -> Iterator[None]:
    """This process makes a map there, for a while: its lock says that it lives. What dead ones left is removed first.

    The lock goes with the connection, so a killed maker has none. Raises StoreError.
    """
    session = open_writer(place, "maps")
    try:
        with _said():
            session.plain("SELECT pg_advisory_lock(%s::int, hashtext(%s))", (_MAKER, place.schema))
            _remove_left(session, place.schema)
        yield
    finally:
        session.close()


def remove_left(place: EngineMap) -> None:
    """Remove what killed makers of maps have left in this engine. Raises StoreError."""
    session = open_writer(place, "maps")
    try:
        with _said():
            _remove_left(session, place.schema)
    finally:
        session.close()


def _remove_left(session: MapSession, own: str) -> None:
    """Schemas whose maker is dead: nobody holds its lock, nor that of a writer."""
    found = session.plain("SELECT nspname FROM pg_namespace WHERE nspname ~ %s", (_MADE,)).fetchall()
    for name in [name for (name,) in found if name != own]:
        session.plain("BEGIN")
        (is_left,) = session.plain(
            "SELECT pg_try_advisory_xact_lock(%s::int, hashtext(%s)) AND pg_try_advisory_xact_lock(hashtext(%s))",
            (_MAKER, name, f"sumi-ripple {name}"),
        ).fetchone()
        if is_left:
            session.plain(f"DROP SCHEMA IF EXISTS {_quoted(name)} CASCADE")
        session.plain("COMMIT")


def put_in_place(scratch: EngineMap, place: EngineMap, kept: EngineMap | None = None) -> None:
    """Give the scratch map the name of `place`; the map that is there is kept under another name. Raises StoreError."""
    aside = f"ALTER SCHEMA {_name(place)} RENAME TO {_name(kept)};" if kept is not None else ""
    _change(scratch, f"{aside} {renaming(scratch, place)}")


def renaming(place: EngineMap, to: EngineMap) -> str:
    """The statement that gives a map another name, for a transaction that does more."""
    return f"ALTER SCHEMA {_name(place)} RENAME TO {_name(to)}"


def rename(place: EngineMap, to: EngineMap) -> None:
    """Raises StoreError."""
    _change(place, renaming(place, to))


def _change(place: EngineMap, sql: str) -> None:
    session = open_writer(place, "maps")
    try:
        with _said():
            session.plain(f"BEGIN; SET LOCAL lock_timeout = '{_PATIENCE}'; {sql}; COMMIT")
    finally:
        session.close()


@contextmanager
def _said() -> Iterator[None]:
    try:
        yield
    except EngineFault as problem:
        raise StoreError(f"the engine failed: {problem}") from None


def _name(place: EngineMap) -> str:
    return _quoted(place.schema)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
