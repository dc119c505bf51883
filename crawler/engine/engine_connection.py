"""Connections to the engine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from crawler.engine.place import ENCODED, given_settings, place_of, without_credentials
from crawler.model.errors import SumiError

if TYPE_CHECKING:
    import psycopg

LEAST_VERSION = 150000  # PostgreSQL 15
CONNECT_SECONDS = 10
DEAD_AFTER = 30  # seconds in which either end gives up a connection whose other end says nothing any more
MISSING = "[engine] url needs psycopg, which is not installed; install it with: pip install 'sumi-ripple[postgresql]'"


class EngineError(SumiError):
    """The engine cannot be used; the message says why and what to do, without credentials."""


class EngineUnreachable(EngineError):
    """There is no connection to the engine just now."""


def connect(
    url: str,
    purpose: str,
    *,
    autocommit: bool = True,
    seconds: int = CONNECT_SECONDS,
    dead_after: int = DEAD_AFTER,
) -> psycopg.Connection[Any]:
    """A connection to the engine at this URL. `purpose` is what the engine's own views call it. Raises EngineError.

    Off this machine it is encrypted, and the server's certificate is checked, unless the URL has an `sslmode` of its
    own: off the machine that the connection goes to, whatever of the URL, the environment or a service file says so.
    A dead peer is noticed within `dead_after` seconds, here and by the engine: locks of a machine that was cut off
    are free again by then. Where the URL names several hosts, the one that takes writes is meant.
    """
    driver = _psycopg()
    try:
        place = place_of(url, os.environ)
    except ValueError as problem:
        raise EngineError(f"[engine] url is no URL of a PostgreSQL database: {problem}") from None
    given = given_settings(url)
    probing = {"keepalives_interval": max(1, dead_after // 6), "keepalives_count": 3}
    probing["keepalives_idle"] = max(1, dead_after - 4 * probing["keepalives_interval"])
    engines_end = [f"-c tcp_{name}={value}" for name, value in probing.items()]
    settings: dict[str, Any] = {
        "application_name": f"sumi-ripple {purpose}",
        "connect_timeout": seconds,
        **probing,
        "tcp_user_timeout": dead_after * 1000,
        "options": " ".join([*engines_end, f"-c tcp_user_timeout={dead_after * 1000}"]),
    }
    if "," in place.host:
        settings["target_session_attrs"] = "read-write"
    if place.is_local:
        settings["hostaddr"] = ""  # neither the environment nor a service file may lead elsewhere
    elif "sslmode" not in given:
        settings["sslmode"] = "verify-full"
        if "sslrootcert" not in given:
            settings["sslrootcert"] = "system"
    settings = {name: value for name, value in settings.items() if name not in given}
    try:
        connection: psycopg.Connection[Any] = driver.connect(
            url, autocommit=autocommit, prepare_threshold=2, **settings
        )
    except driver.OperationalError as problem:
        raise EngineUnreachable(f"cannot reach the engine {place}: {reason_of(problem)}{_hint(problem)}") from None
    except (driver.Error, ValueError):  # its words may repeat a part of the URL
        raise EngineError(f"[engine] url, for {place}, is no URL that PostgreSQL reads; {ENCODED}") from None
    if connection.info.server_version < LEAST_VERSION:
        found = connection.info.parameter_status("server_version")
        connection.close()
        raise EngineError(f"the engine {place} is PostgreSQL {found}; version 15 or newer is needed")
    return connection


def reason_of(problem: Exception) -> str:
    """The first line of an error of the engine, without credentials."""
    text = str(problem).strip() or type(problem).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return without_credentials(lines[0] if lines else text).rstrip(".")


def _hint(problem: Exception) -> str:
    text = str(problem).lower()
    if "certificate" in text or "ssl" in text:
        return (
            "; off this machine the connection is encrypted and the server's certificate checked: name its authority "
            "with ?sslrootcert=FILE in [engine] url, or give up the check with ?sslmode=require"
        )
    if "password" in text or "authentication" in text:
        return "; the password may stand in ~/.pgpass or PGPASSWORD"
    return ""


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise EngineError(MISSING) from None
    return psycopg
