"""The domain map as one HTML page: template, style, scripts and data in one file.

    write_map(database: MapPlace, target: Path, *, most: int = DEFAULT_DOMAINS) -> MapData

The page needs no server and no network, and asks for nothing: its Content-Security-Policy allows one style and one
script, both by their hash. Data goes in as JSON that can end no element. Raises `MapError` of `crawler.database`, and
`MapNotWritten`.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import orjson

from crawler.database.completed_map import live_database
from crawler.model.errors import SumiError
from crawler.model.map_place import MapPlace
from crawler.workspace.atomic import write_atomically
from reporter.map.layout_file import keep_places, kept_places
from reporter.map.map_data import DEFAULT_DOMAINS, MapData, map_data

_START = """
const data = JSON.parse(document.getElementById("data").textContent);
globalThis.sumiRippleMap = startMapPage(document, data, createCanvasMap);
"""
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class MapNotWritten(SumiError):
    """The page cannot be written; an older one is still there."""


def write_map(database: MapPlace, target: Path, *, most: int = DEFAULT_DOMAINS) -> MapData:
    """Write the page; a reader sees the old one or the new one."""
    live = live_database(database)
    found = map_data(database, most, kept_places(live))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, page(found.content).encode())
    except OSError as problem:
        raise MapNotWritten(f"cannot write {target}: {problem.strerror or problem}") from None
    if live == database:
        keep_places(database, found.places())
    return found


def page(content: dict[str, Any]) -> str:
    """The whole page as text."""
    style = _part("map_page.css")
    script = _part("canvas_map.js") + _part("map_page.js") + _START
    allowed = f"script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    made = _part("map_page.html")
    for name, text in (("policy", policy), ("style", style), ("script", script), ("data", embedded_json(content))):
        before, _, after = made.partition(f"{{{name}}}")
        made = before + text + after
    return made


def embedded_json(content: Any) -> str:
    """JSON for a script element: no character of it can end the element, or a line of a script."""
    text = orjson.dumps(content).decode("utf-8", "replace")
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def _part(name: str) -> str:
    return (files("reporter.map") / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
