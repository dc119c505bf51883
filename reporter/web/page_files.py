"""The HTML pages and the static files, both from this package.

A page is `pages/NAME.html`; `{{name}}` in it is replaced by escaped text. Static files are `static/…`, with an ETag.
"""

from __future__ import annotations

import re
from hashlib import sha256
from html import escape
from importlib.resources import files
from mimetypes import guess_type

from starlette.responses import Response

from reporter.web.problems import Problem

_PLACE = re.compile(r"\{\{([a-z_]+)\}\}")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9]+)*")
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def filled(name: str, **values: str) -> str:
    """A page with its places filled; a place without a value is empty."""
    text = (files("reporter.web") / "pages" / f"{name}.html").read_text("utf-8")
    return _PLACE.sub(lambda place: escape(values.get(place[1], "")), text)


def has_page(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and (files("reporter.web") / "pages" / f"{name}.html").is_file()


def static_file(path: str, known: str | None = None) -> Response:
    """A file under static/. `known` is the client's If-None-Match."""
    parts = path.split("/")
    place = files("reporter.web") / "static"
    for part in parts:
        if _NAME.fullmatch(part) is None:
            raise Problem(404, "no-such-file", "there is no such file")
        place = place / part
    if not place.is_file():
        raise Problem(404, "no-such-file", "there is no such file")
    content = place.read_bytes()
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if known == tag:
        return Response(status_code=304, headers=headers)
    suffix = f".{parts[-1].rpartition('.')[2]}"
    kind = _TYPES.get(suffix) or guess_type(parts[-1])[0] or "application/octet-stream"
    return Response(content, media_type=kind, headers=headers)
