"""PURE. The URL of the engine: what it means, and how it is shown. Nothing here ever shows a password."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import parse_qsl, unquote, urlsplit

SCHEMES = ("postgresql://", "postgres://")
ENCODED = "characters like %, /, ?, # and @ in a user name or password are written as %25, %2F, %3F, %23 and %40"
# A password in a text: after the user name of a URL, and in `password=…` of a query or a list of settings.
_IN_URL = re.compile(r"(?i)(postgres(?:ql)?://)[^\s\"']*@")
_IN_SETTING = re.compile(r"(?i)\b((?:ssl)?password\s*[=:]\s*)('[^']*'|\"[^\"]*\"|[^\s&\"',;]+)")


@dataclass(frozen=True, slots=True)
class Place:
    """The parts of an engine's URL that may be shown."""

    host: str  # empty: a socket of this machine; "service NAME": what a service file says, and nobody here knows
    port: str
    database: str

    @property
    def is_local(self) -> bool:
        """Does the connection stay on this machine?"""
        names = self.host.split(",")
        return all(not name or name.startswith("/") or name == "localhost" or _is_loopback(name) for name in names)

    def __str__(self) -> str:
        host = self.host if self.host and not self.host.startswith("/") else "this machine"
        return f"{self.database or 'its usual database'} on {host}{f', port {self.port}' if self.port else ''}"


def place_of(url: str, environ: Mapping[str, str] | None = None) -> Place:
    """The place that a URL names. Raises ValueError for one that names none.

    What it leaves open, the driver takes from its environment: with `environ`, so is it here.
    """
    if not url.startswith(SCHEMES):
        raise ValueError("it does not begin with postgresql://")
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    _require_encoded(url, query)
    # Several hosts (a pair of which one fails over to the other) have commas, which `urlsplit` takes for one name.
    hosts = parts.netloc.rpartition("@")[2]
    names, ports = [], []
    for each in hosts.split(","):
        name, _, port = each.rpartition(":") if ":" in each.rpartition("]")[2] else (each, "", "")
        names.append(unquote(name).strip("[]"))
        ports.append(port)
    host = query.get("host", ",".join(names) if any(names) else "")
    given = environ or {}
    if not host:
        service = query.get("service") or given.get("PGSERVICE")
        host = f"service {service}" if service else given.get("PGHOST", "")
        query = {"hostaddr": given["PGHOSTADDR"], **query} if given.get("PGHOSTADDR") else query
    if query.get("hostaddr") and Place(host, "", "").is_local:  # the address is what is connected to
        host = query["hostaddr"]
    port = query.get("port", ports[0])
    if port and not port.replace(",", "").isdigit():
        raise ValueError("its port is no number")
    database = query.get("dbname", unquote(parts.path.removeprefix("/")))
    return Place(host, port or given.get("PGPORT", ""), database)


def _require_encoded(url: str, query: Mapping[str, str]) -> None:
    """Raises ValueError where a raw character of a password would be taken for the end of it, or of more."""
    parts = urlsplit(url)
    is_cut = "@" in parts.path or any("@" in name for name in query)
    if parts.netloc.count("@") > 1 or "#" in url or is_cut:
        raise ValueError(ENCODED)


def given_settings(url: str) -> frozenset[str]:
    """Names of the settings in a URL's query."""
    return frozenset(name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True))


def without_credentials(text: str) -> str:
    """A text for people or logs, without what looks like the credentials of an engine."""
    return _IN_SETTING.sub(r"\1…", _IN_URL.sub(r"\1…@", text))


def _is_loopback(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
